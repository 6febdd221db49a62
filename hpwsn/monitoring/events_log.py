"""What happened at a node, for operators: starts and stops, problems, changes, actions; kept over restarts.

Each event is a line of JSON in a file that only its owner may read. Memory has the newest events, as many as
`kept`; the file is cut to them once it has twice as many. A thread writes the lines in order, so that the
event loop never waits for the disk. Of each kind, BURST events and then one every REFILL seconds are listed;
the rest is summed up in one event, so that a thousand Subscribes do not push everything else out.
"""

from __future__ import annotations

import json
import logging
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from hpwsn.durable_files import write_atomically

log = logging.getLogger(__name__)

KEPT = 5000
"""Events that are kept without a setting."""
LONGEST = 1000
"""Characters of a text, beyond which it is cut."""
BURST = 30
"""Events of one kind that are listed at once."""
REFILL = 60.0
"""Seconds after which one more event of a kind is listed."""

START, STOP, CRASH = "start", "stop", "crash"


@dataclass(frozen=True, slots=True)
class Event:
    """One event; `number` grows with every event, also over restarts. `time` is in seconds since 1970."""

    number: int
    time: float
    kind: str
    text: str
    who: str

    def described(self) -> dict[str, str]:
        """The event as the API gives it."""
        time = datetime.fromtimestamp(self.time, UTC).isoformat()
        return {"time": time, "kind": self.kind, "text": self.text, "who": self.who}

    def line(self) -> bytes:
        """The event as a line of the file."""
        fields = {"n": self.number, **self.described()}
        return json.dumps(fields, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


@dataclass(slots=True)
class _Allowance:
    """How many events of a kind may still be listed, and how many were not."""

    left: float
    at: float
    unlisted: int = 0
    last: str = ""
    who: str = ""

    def refill(self, now: float) -> None:
        """Allow more for the time that has passed."""
        self.left = min(BURST, self.left + max(0.0, now - self.at) / REFILL)
        self.at = now


class EventsLog:
    """The events of one process. It writes nothing before the first event."""

    def __init__(self, path: Path, *, clock: Callable[[], float], kept: int = KEPT) -> None:
        self._path = path
        self._clock = clock
        self._kept = kept
        self._events: deque[Event] = deque(maxlen=kept)
        self._allowances: dict[str, _Allowance] = {}
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="events-log")
        self._lines = 0
        self._failing = False
        self._unfinished = False
        self.problem: str | None = None
        """What was wrong with the file when it was read; None if nothing was."""
        self._load()

    def __len__(self) -> int:
        return len(self._events)

    def started(self, text: str) -> bool:
        """Note the start of the process, and before it the crash that it follows; whether there was one."""
        last = next((one.kind for one in self.newest_first() if one.kind in (START, STOP)), None)
        crashed = last != STOP and bool(self._events)
        if crashed:
            self.note(CRASH, "the process ended without a clean stop before this start")
        self.note(START, text)
        if self.problem:
            self.note("problem", self.problem)
        return crashed

    def note(self, kind: str, text: str, who: str = "") -> None:
        """Add an event that happens now; `who` is the principal of an operator's action."""
        now = self._clock()
        allowance = self._allowances.get(kind)
        if allowance is None:
            allowance = self._allowances[kind] = _Allowance(BURST, now)
        allowance.refill(now)
        if allowance.left < 1 or allowance.unlisted:
            allowance.unlisted += 1
            allowance.last, allowance.who = text, who
            return
        allowance.left -= 1
        self._add(now, kind, text, who)

    def tick(self) -> None:
        """List what was summed up, of each kind that may have one more; call it about once a second."""
        now = self._clock()
        for kind, allowance in self._allowances.items():
            if allowance.unlisted:
                allowance.refill(now)
                if allowance.left >= 1:
                    self._sum_up(kind, allowance, now)

    def _sum_up(self, kind: str, allowance: _Allowance, now: float) -> None:
        more, last = allowance.unlisted, allowance.last
        text = last if more == 1 else f"{more} more events of this kind; the last: {last}"
        self._add(now, kind, text, allowance.who)
        allowance.unlisted = 0
        allowance.left -= 1

    def _add(self, time: float, kind: str, text: str, who: str) -> None:
        number = self._events[-1].number + 1 if self._events else 1
        shown = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
        event = Event(number, time, kind, shown, who)
        self._events.append(event)
        self._lines += 1
        if self._lines > 2 * self._kept:
            self._lines = len(self._events)
            self._writer.submit(self._write, self._replace, tuple(self._events))
        else:
            self._writer.submit(self._write, self._append, (event,))

    def newest_first(self) -> Iterator[Event]:
        """All events that are kept."""
        return reversed(self._events)

    def page(self, limit: int, before: int | None = None) -> tuple[list[Event], int | None]:
        """The newest events with a number below `before`, and the `before` of the next page or None."""
        older = (one for one in self.newest_first() if before is None or one.number < before)
        found = list(islice(older, limit + 1))
        return found[:limit], found[limit - 1].number if len(found) > limit else None

    def close(self, text: str = "") -> None:
        """Note the clean stop, if there is a text for it, and write everything to the disk."""
        now = self._clock()
        for kind, allowance in self._allowances.items():
            if allowance.unlisted:
                self._sum_up(kind, allowance, now)
        if text:
            self._add(now, STOP, text, "")
        self._writer.shutdown()

    # In the writer's thread

    def _write(self, how: Callable[[Sequence[Event]], None], events: Sequence[Event]) -> None:
        try:
            how(events)
            self._failing = False
        except OSError as error:
            if not self._failing:
                log.warning("the events log %s cannot be written: %s", self._path, error)
            self._failing = True

    def _append(self, events: Sequence[Event]) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            data = b"".join(one.line() for one in events)
            os.write(descriptor, b"\n" + data if self._unfinished else data)
            self._unfinished = False
        finally:
            os.close(descriptor)

    def _replace(self, events: Sequence[Event]) -> None:
        write_atomically(self._path, b"".join(one.line() for one in events), mode=0o600)

    # At start

    def _load(self) -> None:
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            self.problem = f"the events log {self._path} cannot be read: {error.strerror}"
            log.warning("%s", self.problem)
            return
        self._unfinished = bool(data) and not data.endswith(b"\n")
        lines = data.split(b"\n")
        self._lines = len(lines)
        damaged = 0
        for line in filter(None, lines):
            event = _parse(line)
            if event is None:
                damaged += 1
            else:
                self._events.append(event)
        if damaged:
            self.problem = f"{damaged} lines of the events log {self._path} are damaged and left out"
            log.warning("%s", self.problem)


def _parse(line: bytes) -> Event | None:
    try:
        told: dict[str, Any] = json.loads(line)
        return Event(
            int(told["n"]),
            datetime.fromisoformat(told["time"]).timestamp(),
            str(told["kind"]),
            str(told["text"]),
            str(told["who"]),
        )
    except (ValueError, KeyError, TypeError):
        return None
