"""Counts the calls of functions of some packages in all threads, and how often they lead into another module.

A call is the start of a function, method, lambda or coroutine whose file lies in one of the packages. Not
calls are: the resumption of a coroutine or generator, a comprehension, and the body of a module. A module
change is a call in another module than the previous call in the same thread; the first call of each thread
is one as well. A return is not a change.

A turn is a call from outside of the packages, such as an event loop makes, with all calls within it. In a
thread that loops within the packages, a turn ends where the thread waits. Turns that also occur while the
process is idle, such as those of timers, are left out.
"""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType

_GENERATOR = 0x20 | 0x80 | 0x200
"""The flags of generators, coroutines and asynchronous generators, see `inspect`."""
_NOT_FUNCTIONS = frozenset({"<module>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})

WAITS = 0.02
"""Seconds between two calls of a thread after which the thread counts as having waited."""

Turn = tuple[tuple[str, str], ...]
"""The module and the function of each call."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The number of calls, and how often each module was entered from another one."""

    calls: int
    entered: Mapping[str, int]

    @property
    def changes(self) -> int:
        """The number of module changes."""
        return sum(self.entered.values())

    @property
    def modules(self) -> int:
        """The number of different modules."""
        return len(self.entered)


def count(trails: Iterable[Sequence[str]]) -> Trace:
    """The trace of one trail per thread: the module of each call, in order."""
    calls, entered = 0, Counter[str]()
    for trail in trails:
        calls += len(trail)
        entered.update(trail[:1])
        entered.update(after for before, after in pairwise(trail) if before != after)
    return Trace(calls, dict(entered.most_common()))


class CallRecorder:
    """A profiler of each thread that starts after `install`; it notes the calls between `begin` and `end`."""

    def __init__(self, packages: Iterable[Path], clock: Callable[[], float] = time.monotonic) -> None:
        self._packages = tuple(packages)
        self._clock = clock
        self._latest: dict[int, float] = {}
        self._modules: dict[str, str | None] = {}
        self._threads: dict[int, list[list[tuple[str, str]]]] = defaultdict(lambda: [[]])
        self._idle: set[Turn] = set()
        self._recording = False

    def install(self) -> None:
        """Watch each thread that starts from now on."""
        threading.setprofile(self._profile)

    def begin(self) -> None:
        """Forget all calls, and note those that follow."""
        self._threads.clear()
        self._latest.clear()
        self._recording = True

    def learn(self) -> None:
        """Leave out from now on the turns since `begin`, in which the process was idle."""
        self._recording = False
        self._idle.update(tuple(turn) for turns in self._threads.values() for turn in turns)

    @property
    def calls(self) -> int:
        """The number of calls since `begin`."""
        return sum(map(len, self._trails()))

    def end(self) -> Trace:
        """What was called since `begin`."""
        self._recording = False
        return count(self._trails())

    def _trails(self) -> list[list[str]]:
        return [
            [module for turn in turns if tuple(turn) not in self._idle for module, _ in turn]
            for turns in list(self._threads.values())
        ]

    def _profile(self, frame: FrameType, event: str, _: object) -> None:
        if not self._recording or event != "call" or not (module := self._module(frame.f_code.co_filename)):
            return
        thread, now = threading.get_ident(), self._clock()
        turns = self._threads[thread]
        if now - self._latest.get(thread, now) > WAITS or self._is_called_from_outside(frame):
            turns.append([])
        self._latest[thread] = now
        code = frame.f_code
        if code.co_name not in _NOT_FUNCTIONS and not _resumes(code, frame.f_lasti):
            turns[-1].append((module, code.co_qualname))

    def _is_called_from_outside(self, frame: FrameType) -> bool:
        caller = frame.f_back
        while caller and not self._module(caller.f_code.co_filename):
            caller = caller.f_back
        return caller is None

    def _module(self, file: str) -> str | None:
        """The dotted name of a file in one of the packages."""
        if file not in self._modules:
            self._modules[file] = next(
                (
                    ".".join(Path(file).relative_to(package.parent).with_suffix("").parts)
                    for package in self._packages
                    if Path(file).is_relative_to(package)
                ),
                None,
            )
        return self._modules[file]


def _resumes(code: CodeType, at: int) -> bool:
    """Whether a coroutine or generator goes on; the argument of RESUME is 0 at its start, see `dis`."""
    return bool(code.co_flags & _GENERATOR and code.co_code[at + 1] & 3)
