"""Readings in the log: what the history and the duplicate check read again after a restart.

The log is read in pages of runs, on the topics below `sensors` and `virtual`. Both readers are told how far
they have got, and ask until nothing is left.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from hpwsn.background import in_slices
from hpwsn.journal.journal import Journal
from hpwsn.notification import Run
from hpwsn.sensors.readings.reading_run import numbered_readings

AT_ONCE = 5000
"""Entries of one page."""
ROOM = 8 << 20
"""Bytes of one page."""


class LogPage(NamedTuple):
    """Runs with the offsets of their first members; the log was read up to and including `upto`."""

    runs: Sequence[tuple[int, Run]]
    upto: int


class ReadingLog:
    """Reads a node's log; `topics` gives the keys of the topics to look at, and `head` the last offset."""

    def __init__(
        self, journal: Journal, topics: Callable[[], Collection[str]], head: Callable[[], int]
    ) -> None:
        self._journal = journal
        self._topics = topics
        self._head = head

    async def page(self, after: int) -> LogPage:
        """The next runs after an offset."""
        head, topics = self._head(), self._topics()
        if after >= head or not topics:
            return LogPage((), max(after, head))
        scan = await self._journal.scan_runs(after, limit=AT_ONCE, topics=topics, head=head, room=ROOM)
        return LogPage(scan.runs, scan.upto)

    async def keys(self, after: int) -> tuple[int, list[tuple[str, int]]]:
        """The sensors and times of the next readings after an offset, and how far the log was read."""
        runs, upto = await self.page(after)
        found: list[tuple[str, int]] = []

        def look() -> Iterator[None]:
            for first, run in runs:
                for _, reading in numbered_readings(first, (run,)):
                    found.append((reading.sensor, reading.time))
                yield

        await in_slices(look())
        return upto, found
