"""Rejected readings that are kept for inspection: the newest ones, as many as allowed, also over restarts.

Each is a line of JSON in a file that only its owner may read. The file is cut to what memory has once it has
twice as many lines. A thread writes, and `add` returns once it has: a crash loses none of what was answered.
Of a long reading, detail or id only the beginning is kept.
"""

from __future__ import annotations

import asyncio
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

from hpwsn.background import in_slices
from hpwsn.durable_files import write_atomically
from hpwsn.sensors.readings.checks import Rejection
from hpwsn.sensors.readings.formats import RawReading, Unparsed

log = logging.getLogger(__name__)

LONGEST = 2000
"""Characters of a reading, beyond which only its beginning is kept."""
LONGEST_DETAIL = 500
"""Characters of the detail, and of the id of a sensor, that are kept."""


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

    async def add(self, rejected: Sequence[Rejected], source: str) -> None:
        """Keep readings that came by a source, such as `http`, and were rejected now.

        They are in the file when this returns, unless the disk refuses them, which is logged.
        """
        if not self._kept:
            return
        now = datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="milliseconds")
        rests: list[str] = []

        def encode() -> Iterator[None]:
            for each in rejected[-self._kept :]:
                rests.append(_fields(each, source, now))
                yield

        await in_slices(encode())
        lines = [f'{{"n": {number}, {rest}}}\n'.encode() for number, rest in enumerate(rests, self._last + 1)]
        self._last += len(lines)
        self._lines.extend(lines)
        self._written += len(lines)
        if self._written > 2 * self._kept:
            self._written = len(self._lines)
            written = self._writer.submit(self._write, self._replace, tuple(self._lines))
        else:
            written = self._writer.submit(self._write, self._append, lines)
        await asyncio.wrap_future(written)

    async def page(
        self, limit: int, before: int | None = None, sensor: str | None = None, reason: str | None = None
    ) -> tuple[list[dict[str, Any]], int | None]:
        """The newest ones with a number below `before`, and the `before` of the next page or None.

        With a sensor or a reason, only those. What is rejected meanwhile is not on the page.
        """
        found: list[dict[str, Any]] = []
        numbers: list[int] = []

        def look() -> Iterator[None]:
            for number, line in self._newest_first(before):
                item: dict[str, Any] = json.loads(line)
                if sensor in (None, item["sensor"]) and reason in (None, item["reason"]):
                    del item["n"]
                    found.append(item)
                    numbers.append(number)
                    if len(found) > limit:
                        return
                yield

        await in_slices(look())
        return found[:limit], numbers[limit - 1] if len(found) > limit else None

    def _newest_first(self, before: int | None) -> Iterator[tuple[int, bytes]]:
        skipped = 0 if before is None else max(self._last + 1 - before, 0)
        numbers = range(self._last - skipped, 0, -1)
        return zip(numbers, islice(reversed(tuple(self._lines)), skipped, None), strict=False)

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
        found = data.splitlines(keepends=True)
        whole = [line for line in found if _is_whole(line)]
        # Lines that a crash has damaged leave gaps, and numbers have none.
        self._lines.extend(whole)
        self._last = len(self._lines)
        # The next line must not follow a damaged one, so that the file is then written anew.
        self._written = len(found) if len(whole) == len(found) else 2 * self._kept


def beginning(data: bytes) -> str:
    """What is kept of data that is not readable, with one character more if there is more."""
    return data[: 4 * (LONGEST + 1)].decode("utf-8", "replace")[: LONGEST + 1]


def _fields(rejected: Rejected, source: str, now: str) -> str:
    """The fields of a line after its number, as JSON without braces."""
    reading: object = rejected.reading
    if isinstance(reading, Unparsed):
        reading = reading.text
    text = _json(reading[: LONGEST + 1] if isinstance(reading, str) else reading)
    if len(text) > LONGEST:
        text = _json(_cut(reading if isinstance(reading, str) else text, LONGEST))
    rest = {
        "sensor": None if rejected.sensor is None else _cut(rejected.sensor, LONGEST_DETAIL),
        "reason": rejected.rejection.reason,
        "detail": _cut(rejected.rejection.detail, LONGEST_DETAIL),
        "rejected": now,
        "source": source,
    }
    return f'{_json(rest)[1:-1]}, "reading": {text}'


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def _json(value: object) -> str:
    """JSON; what no JSON has, such as NaN or an endless depth, as text, and halves of characters as `?`."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    except (ValueError, RecursionError):
        return json.dumps(json.dumps(value) if _is_shallow(value) else "nested too deeply to be kept")
    return text.encode("utf-8", "replace").decode()


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
