"""The open windows of one virtual sensor, and the readings in them.

Window k holds all readings with a time from k·every, included, to (k+1)·every, excluded, since 1970. It is
closed `lateness` after its end by the node's clock, which is an argument. Readings come in any order; one
that comes again is held once, and one whose window is closed is late. Times are in whole milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hpwsn.sensors.templates.combining import WindowReadings

MADE_UP = 600_000
"""Milliseconds for which windows are made up that could not be closed in time; the last one always is."""


class ClosedWindow(NamedTuple):
    """The end of a window, which is the time of its result, and the readings that it held."""

    end: int
    readings: WindowReadings


class ReadingWindows:
    """Takes readings, and hands over each window when it closes."""

    def __init__(self, every: int, lateness: int, now: int, room: int) -> None:
        """Begin with the windows that are not closed at `now`; hold at most `room` readings."""
        self._every = every
        self._lateness = lateness
        self.room = room
        self._held: dict[int, dict[tuple[str, int], float]] = {}
        self._count = 0
        self._next = self._open_at(now)
        self.late = 0
        """Readings that came after their window was closed."""
        self.refused = 0
        """Readings for which there was no room."""

    @property
    def begin(self) -> int:
        """The beginning of the oldest window that is open."""
        return self._next * self._every

    @property
    def due(self) -> int:
        """When the oldest open window closes."""
        return self.begin + self._every + self._lateness

    def __len__(self) -> int:
        return self._count

    def resume(self, since: int, now: int, *, make_up: bool) -> None:
        """Go on after a result whose window ended at `since`, before the first window is closed.

        With `make_up`, windows are handed over that should have been closed since: the last one, and all of
        the last ten minutes.
        """
        number = since // self._every
        if number > self._next:
            if since <= now:
                self._skip_to(number)
        elif make_up:
            self._next = min(self._next, max(number, self._oldest_at(now)))

    def go_back(self, now: int) -> None:
        """Open the windows again that are not closed at `now`, after the clock was set back."""
        self._next = min(self._next, self._open_at(now))

    def add(self, sensor: str, time: int, value: float) -> None:
        """Hold a reading until its window closes."""
        number = time // self._every
        if number < self._next:
            self.late += 1
            return
        window = self._held.get(number)
        if window is None:
            window = self._held[number] = {}
        key = (sensor, time)
        if key in window:
            return
        if self._count >= self.room:
            self.refused += 1
            return
        window[key] = value
        self._count += 1

    def close(self, now: int) -> Iterator[ClosedWindow]:
        """The windows that are due, oldest first, with empty ones; each is closed when it is handed over."""
        # After a long suspension only recent windows are worth a result.
        self._skip_to(self._oldest_at(now))
        while self.due <= now:
            readings = self._held.pop(self._next, {})
            self._count -= len(readings)
            self._next += 1
            yield ClosedWindow(self.begin, readings)

    def _open_at(self, now: int) -> int:
        """The number of the oldest window that is not closed at a time."""
        return (now - self._lateness) // self._every

    def _oldest_at(self, now: int) -> int:
        """The number of the oldest window that is still worth a result."""
        return self._open_at(now - max(MADE_UP, self._every))

    def _skip_to(self, number: int) -> None:
        if number <= self._next:
            return
        self._next = number
        for passed in [each for each in self._held if each < number]:
            self._count -= len(self._held.pop(passed))
