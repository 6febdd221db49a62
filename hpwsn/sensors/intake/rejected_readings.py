"""Rejected readings that are kept for inspection: the newest ones, as many as allowed, also over restarts.

Each is a line of JSON in a file that only its owner may read. The file is cut to what memory has once it has
twice as many lines. A thread writes, so that the event loop never waits for the disk. A long reading is kept
as the beginning of its text.
"""

from __future__ import annotations

import json
import logging
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from hpwsn.durable_files import write_atomically
from hpwsn.sensors.readings.checks import Rejection
from hpwsn.sensors.readings.formats import RawReading, Unparsed

log = logging.getLogger(__name__)

LONGEST = 2000
"""Characters of a reading, beyond which only its beginning is kept."""


class Rejected(NamedTuple):
    """A reading that was rejected, and the id of its sensor; None if it names none."""

    sensor: str | None
    rejection: Rejection
    reading: RawReading


class RejectedReadings:
    """The rejected readings of a node. It writes nothing before the first one."""

    def __init__(self, path: Path, *, kept: int, clock: Callable[[], float]) -> None:
        self._path = path
        self._kept = kept
        self._clock = clock
        self._lines: deque[bytes] = deque(maxlen=kept)
        self._last = 0
        """The number of the newest one; numbers grow by one with each."""
        self._written = 0
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="rejected-readings")
        self._failing = False
        if kept:
            self._load()

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, rejected: Sequence[Rejected], source: str) -> None:
        """Keep readings that came by a source, such as `http`, and were rejected now."""
        if not self._kept:
            return
        now = datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="milliseconds")
        lines = []
        for each in rejected[-self._kept :]:
            self._last += 1
            lines.append(_line(self._last, each, source, now))
        self._lines.extend(lines)
        self._written += len(lines)
        if self._written > 2 * self._kept:
            self._written = len(self._lines)
            self._writer.submit(self._write, self._replace, tuple(self._lines))
        else:
            self._writer.submit(self._write, self._append, lines)

    def page(
        self, limit: int, before: int | None = None, sensor: str | None = None, reason: str | None = None
    ) -> tuple[list[dict[str, Any]], int | None]:
        """The newest ones with a number below `before`, and the `before` of the next page or None.

        With a sensor or a reason, only those.
        """
        found: list[dict[str, Any]] = []
        last: int | None = None
        for number, line in self._newest_first(before):
            item: dict[str, Any] = json.loads(line)
            if sensor in (None, item["sensor"]) and reason in (None, item["reason"]):
                if len(found) == limit:
                    return found, last
                del item["n"]
                found.append(item)
                last = number
        return found, None

    def _newest_first(self, before: int | None) -> Iterator[tuple[int, bytes]]:
        skipped = 0 if before is None else max(self._last + 1 - before, 0)
        numbers = range(self._last - skipped, 0, -1)
        return zip(numbers, islice(reversed(self._lines), skipped, None), strict=False)

    def close(self) -> None:
        """Write everything to the disk."""
        self._writer.shutdown()

    # In the writer's thread

    def _write(self, how: Callable[[Sequence[bytes]], None], lines: Sequence[bytes]) -> None:
        try:
            how(lines)
            self._failing = False
        except OSError as error:
            if not self._failing:
                log.warning("rejected readings cannot be written to %s: %s", self._path, error)
            self._failing = True

    def _append(self, lines: Sequence[bytes]) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(b"".join(lines))

    def _replace(self, lines: Sequence[bytes]) -> None:
        write_atomically(self._path, b"".join(lines), mode=0o600)

    # At start

    def _load(self) -> None:
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            log.warning("rejected readings cannot be read from %s: %s", self._path, error)
            return
        lines = [line for line in data.splitlines(keepends=True)[-self._kept :] if _is_whole(line)]
        # Lines that a crash has damaged leave gaps, and numbers have none.
        self._lines.extend(lines)
        self._last = len(self._lines)
        self._written = len(self._lines) if len(lines) == data.count(b"\n") else 2 * self._kept


def _line(number: int, rejected: Rejected, source: str, now: str) -> bytes:
    reading: object = rejected.reading
    if isinstance(reading, Unparsed):
        reading = reading.text
    text = _json(reading)
    if len(text) > LONGEST:
        whole = reading if isinstance(reading, str) else text
        text = _json(f"{whole[:LONGEST]}…")
    rest = {
        "sensor": rejected.sensor,
        "reason": rejected.rejection.reason,
        "detail": rejected.rejection.detail,
        "rejected": now,
        "source": source,
    }
    return f'{{"n": {number}, {_json(rest)[1:-1]}, "reading": {text}}}\n'.encode()


def _json(value: object) -> str:
    """JSON in ASCII; what no JSON has, such as NaN or an endless depth, as text."""
    try:
        return json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return json.dumps(json.dumps(value) if _is_shallow(value) else "nested too deeply to be kept")


def _is_shallow(value: object) -> bool:
    try:
        json.dumps(value)
    except (ValueError, RecursionError):
        return False
    return True


def _is_whole(line: bytes) -> bool:
    try:
        found = json.loads(line)
        return line.endswith(b"\n") and {"n", "sensor", "reason", "reading"} <= found.keys()
    except (ValueError, AttributeError, RecursionError):
        return False
