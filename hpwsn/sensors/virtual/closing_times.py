"""When windows of running virtual sensors close: one timer for all of them.

The node's clock decides, which may jump; so the timer looks at it at least every second while something
runs. After a small step back, windows wait until the clock has made up for it; after one of more than
SET_BACK, they begin anew. Those that are due together are handed over together, at most AT_ONCE in a turn
of the event loop.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Callable, Sequence
from itertools import count
from typing import Generic, Protocol, TypeVar

log = logging.getLogger(__name__)

AT_ONCE = 500
LONGEST_WAIT = 1.0
"""Seconds between two looks at the clock."""
SET_BACK = 60_000
"""Milliseconds by which the clock goes back before windows begin anew."""


class Closing(Protocol):
    """What has windows that close."""

    closed: bool
    """Whether it is over, so that no window of it is closed any more."""

    @property
    def due(self) -> int:
        """When its next window closes, in milliseconds since 1970."""

    def begin_anew(self, now: int) -> None:
        """Go on with the windows that are open at `now`, since the clock was set back."""


T = TypeVar("T", bound=Closing)


class ClosingTimes(Generic[T]):
    """The running sensors by the time at which their next window closes."""

    def __init__(self, clock: Callable[[], float], close: Callable[[Sequence[T], int], None]) -> None:
        """`close` is called with those that are due, and closes their windows up to the time it gets."""
        self._clock = clock
        self._close = close
        self._heap: list[tuple[int, int, T]] = []
        self._number = count()
        self._latest = 0
        """The latest time that the clock had since it was set back."""
        self._timer: asyncio.TimerHandle | None = None

    def now(self) -> int:
        """The node's time in milliseconds since 1970."""
        return int(self._clock() * 1000)

    def add(self, running: T) -> None:
        """Close the windows of a sensor from now on, until it is closed itself."""
        heapq.heappush(self._heap, (running.due, next(self._number), running))
        self._wait()

    def stop(self) -> None:
        """Close no more windows."""
        self._heap.clear()
        self._wait()

    def _look(self) -> None:
        now = self.now()
        if now < self._latest - SET_BACK:
            self._begin_anew(now)
        self._latest = max(now, self._latest)
        due: list[T] = []
        while self._heap and self._heap[0][0] <= now and len(due) < AT_ONCE:
            running = heapq.heappop(self._heap)[2]
            if not running.closed:
                due.append(running)
        try:
            if due:
                self._close(due, now)
        finally:
            for running in due:
                heapq.heappush(self._heap, (running.due, next(self._number), running))
            self._wait()

    def _begin_anew(self, now: int) -> None:
        seconds = (self._latest - now) / 1000
        log.warning("the clock was set back by %.0f s; virtual sensors go on from there", seconds)
        self._latest = now
        running = [each for _, _, each in self._heap if not each.closed]
        for each in running:
            each.begin_anew(now)
        self._heap = [(each.due, next(self._number), each) for each in running]
        heapq.heapify(self._heap)

    def _wait(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._heap and self._heap[0][2].closed:
            heapq.heappop(self._heap)
        if self._heap:
            # The first millisecond in which the clock has reached the time.
            pause = self._heap[0][0] / 1000 - self._clock()
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(min(max(pause, 0.0005), LONGEST_WAIT), self._look)
