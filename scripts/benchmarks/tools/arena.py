"""Starts HPwsn and the references, each in its own process on the server's core, and measures them in turns.

All are started before the first measurement, and only one has work at a time.
"""

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks.frame import Options, Row, progress, take_turns
from benchmarks.tools.cores import pin_server, pinning_notes
from benchmarks.tools.load import Busy, Load, Sample
from benchmarks.tools.messages import READING, TOPIC, requests
from benchmarks.tools.mps import MpsMeter, print_mps
from benchmarks.tools.nodes import await_ready, launch, node_arguments, stop
from benchmarks.tools.sink import Tally
from hpwsn_client import SyncClient

LIMIT, FLOOR, SPYNE = "bare Protocol + lxml", "aiohttp + lxml", "Spyne"
NONE, COMMIT = "HPwsn, durability none", "HPwsn, durability commit"
_REFERENCES = {
    LIMIT: ["-m", "benchmarks.tools.limit"],
    FLOOR: ["-m", "benchmarks.tools.floor"],
    SPYNE: ["-m", "benchmarks.tools.floor", "--spyne"],
}
_DURABILITY = {NONE: "journal.durability=none", COMMIT: "journal.durability=commit"}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A server that runs, and what its consumers have got."""

    name: str
    url: str
    pid: int
    tallies: tuple[Tally, ...] = ()
    topic: str = TOPIC
    content: bytes = READING
    partial: bool = False


class Arena:
    """Starts candidates, and ends them with the block."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._stack = ExitStack()
        self._warning = ""

    def __enter__(self) -> Self:
        self.load = self._stack.enter_context(Load(self._options))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    def start(self, *names: str, consumers: int = 0, tally: Callable[[], Tally] = Tally) -> list[Candidate]:
        """References and nodes by the names above."""
        progress("starting " + "; ".join(names))
        return [ready() for ready in [self._launch(name, consumers, tally) for name in names]]

    def _launch(self, name: str, consumers: int, tally: Callable[[], Tally]) -> Callable[[], Candidate]:
        """Begin to start one; the result waits until it is ready."""
        if name not in _REFERENCES:
            return self._launch_node(name, [_DURABILITY[name]], consumers, tally, None)
        tallies, urls = self._consumers(consumers, tally)
        process = launch([*_REFERENCES[name], *urls])
        self._stack.callback(stop, process)

        def ready() -> Candidate:
            url = await_ready(process)
            pin_server(process.pid)
            return Candidate(name, url, process.pid, tallies)

        # It connects to its consumers first, which are there only while the loop runs.
        return (lambda: self.load.run(asyncio.to_thread(ready))) if consumers else ready

    def _launch_node(
        self,
        name: str,
        settings: Sequence[str],
        consumers: int,
        tally: Callable[[], Tally],
        data: Path | None,
    ) -> Callable[[], Candidate]:
        folder = data or Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="hpwsn-bench-")))
        arguments = node_arguments(folder / "data", ["log.level=error", *settings])
        process = launch(arguments)
        self._stack.callback(stop, process)

        def ready() -> Candidate:
            url = await_ready(process)
            pin_server(process.pid)
            return self.subscribe(Candidate(name, url, process.pid), name, TOPIC, consumers, tally)

        return ready

    def node(
        self,
        name: str,
        settings: Sequence[str] = (),
        consumers: int = 0,
        data: Path | None = None,
    ) -> Candidate:
        """A node with some consumers of the usual topic."""
        return self._launch_node(name, settings, consumers, Tally, data)()

    def subscribe(
        self,
        node: Candidate,
        name: str,
        topic: str,
        consumers: int = 1,
        tally: Callable[[], Tally] = Tally,
        dialect: str | None = None,
    ) -> Candidate:
        """The same node under a name, seen by new consumers of a topic."""
        tallies, urls = self._consumers(consumers, tally)
        if urls:
            with SyncClient(node.url) as client:
                for url in urls:
                    client.subscribe(topic, url, dialect=dialect)
        return Candidate(name, node.url, node.pid, tallies, topic)

    def _consumers(self, count: int, tally: Callable[[], Tally]) -> tuple[tuple[Tally, ...], list[str]]:
        tallies = tuple(tally() for _ in range(count))
        return tallies, [self.load.consumer(each) for each in tallies]

    def notes(self) -> tuple[str, ...]:
        """Warnings: one core for both sides, or other processes on the machine."""
        return (*pinning_notes(), *filter(None, (self._warning,)))

    def saturate(self, candidate: Candidate, messages: int = 1, mps: bool = False) -> Sample:
        """One measurement of a candidate; `mps` prints MPS as often as the options say."""
        data = requests(candidate.url, candidate.topic, candidate.content, messages, candidate.partial)
        meter = MpsMeter(self._options.mps) if mps and self._options.mps else None
        sample = self.load.saturate(candidate.url, candidate.pid, data, messages, candidate.tallies, meter)
        if meter is not None:
            print_mps(candidate.name, meter)
        return sample

    def contest(
        self, candidates: Sequence[Candidate], what: str = "", messages: int = 1, mps: bool = False
    ) -> dict[str, Row]:
        """The rates of all, in turns."""
        busy = Busy()
        calls = {
            each.name: busy.rate(each.name, lambda each=each: self.saturate(each, messages, mps))  # type: ignore[misc]
            for each in candidates
        }
        samples = take_turns(calls, self._options.rounds, what)
        self._warning = busy.warning() or self._warning
        return {name: Row.of(name, taken, busy.note(name)) for name, taken in samples.items()}
