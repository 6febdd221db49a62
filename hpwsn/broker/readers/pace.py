"""The pace of a long connection: at most so many events in any second, and a count of those left out.

A person watches a topic that may get thousands of events a second. Of each second, the first events are sent.
The others are skipped: they are matched with the filter, so that their number is exact, but not encoded. The
client is told the number before its next event, and at the latest after TELL_AFTER seconds.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from hpwsn.broker.readers.log_pages import Page, Stretch

SECOND = 1.0
"""The span in which the limit holds, wherever it begins."""
NEVER = float("-inf")
TELL_AFTER = 1.0
"""Seconds after which a client learns what was skipped, if no event comes before."""


class Pace:
    """Counts the events of one connection; times are those of the event loop's clock."""

    __slots__ = ("_sent", "_total", "due", "limit", "skipped", "upto")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._sent: deque[tuple[float, int]] = deque()
        self._total = 0
        self.skipped = 0
        """Events that were skipped and of which the client does not know."""
        self.upto = 0
        """The offset of the last one of them."""
        self.due: asyncio.TimerHandle | None = None
        """When the client will be told."""

    def take(self, count: int, now: float) -> int:
        """How many of the next events may be sent now; they count as sent."""
        sent = self._sent
        while sent and sent[0][0] <= now - SECOND:
            self._total -= sent.popleft()[1]
        taken = min(count, self.limit - self._total)
        if taken:
            sent.append((now, taken))
            self._total += taken
        return taken

    @property
    def full_since(self) -> float:
        """`take` gives nothing until SECOND after this time; -inf if it may give something at once."""
        return self._sent[0][0] if self._sent and self._total >= self.limit else NEVER

    def skip(self, count: int, upto: int) -> None:
        """Leave out so many events, the last of them at an offset."""
        if count:
            self.skipped += count
            self.upto = upto

    def told(self) -> None:
        """Note that the client knows what was skipped."""
        self.skipped = 0

    def admit(self, stretches: Sequence[Stretch], now: float) -> list[Stretch]:
        """The first of these entries, as many as may be sent now; the others are skipped."""
        page = Page(list(stretches))
        offsets = page.offsets
        taken = self.take(len(offsets), now)
        if taken == len(offsets):
            return page.stretches
        self.skip(len(offsets) - taken, offsets[-1])
        return page.first(taken).stretches if taken else []
