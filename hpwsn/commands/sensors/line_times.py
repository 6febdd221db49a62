"""Gives lines without a time the time at which they were read, so that none gets that of a late request.

A node takes the time of arrival for a reading without one. That is wrong for a line which waited for others,
or for a node that was away, and makes lines of one sensor in one request duplicates of each other. Here two
lines of a sensor never get the same time. What is not a reading is left for the node to reject.
"""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable, Sequence

from hpwsn.sensors.readings.reading_times import time_text

REMEMBERED = 10_000
"""Sensors whose last time is remembered; beyond them, all are forgotten."""


class _Times:
    """The time of each line in milliseconds since 1970, different for all lines of a sensor."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._last: dict[object, int] = {}

    def of(self, sensor: object) -> str:
        now = int(self._clock() * 1000)
        if len(self._last) >= REMEMBERED:
            self._last.clear()
        self._last[sensor] = now = max(now, self._last.get(sensor, now - 1) + 1)
        return time_text(now)


class ObjectTimes:
    """The times of JSON objects, one a line."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._times = _Times(clock)

    def __call__(self, line: bytes) -> bytes:
        """The line, with a time."""
        try:
            found = json.loads(line.decode())
        except (ValueError, RecursionError):
            return line
        if not isinstance(found, dict) or not found or "time" in found:
            return line
        sensor = found.get("sensor")
        moment = self._times.of(sensor if isinstance(sensor, str) else None)
        return b'{"time": "%s", %s' % (moment.encode(), line.lstrip()[1:])


class RowTimes:
    """The times of rows of CSV under a header, which gets a column if it has none for the time."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._times = _Times(clock)
        self._header: bytes | None = None
        self._stamps = False
        self._column: int | None = None

    def __call__(self, line: bytes) -> bytes:
        """The line, with a time."""
        if self._header is None:
            self._header = line
            names = [name.strip() for name in _cells(line)]
            self._stamps = "time" not in names
            self._column = names.index("sensor") if "sensor" in names else None
        if not self._stamps:
            return line
        if line == self._header:
            return line + b",time"
        cells = _cells(line) if self._column is not None else ()
        known = self._column is not None and self._column < len(cells)
        moment = self._times.of(cells[self._column or 0] if known else None)
        return line + b"," + moment.encode()


def _cells(line: bytes) -> Sequence[str]:
    try:
        return next(csv.reader([line.decode("utf-8-sig", "replace")]), ())
    except csv.Error:
        return ()
