"""One subscription's place in the log: which offsets wait for it, and how far the log has been looked at.

Offsets only, never notifications, and at most `window` of them: a subscription that falls further behind
counts the rest and forgets which they were, and its owner reads on from the log. A restart is the same case.
What the log cannot tell, that matching offsets were not wanted at their time, is kept as gaps.
"""

from collections import deque
from collections.abc import Collection, Iterable, Sequence

_NONE: deque[int] = deque(maxlen=0)
"""For all that nothing waits for: an empty deque takes more than half a kilobyte."""


class Cursor:
    """The waiting offsets of one subscription, in log order."""

    ranked = False
    """Whether the next offsets are chosen by rank; if not, they are the oldest."""
    __slots__ = ("acknowledged", "behind", "beyond", "counted", "gaps", "in_gap", "seen", "waiting", "window")

    def __init__(self, acknowledged: int, *, window: int, head: int) -> None:
        self.acknowledged = acknowledged
        self.seen = acknowledged
        self.window = window
        self.behind = acknowledged < head
        self.beyond = 0
        """How many wait after `seen`, once they are counted."""
        self.counted = not self.behind
        self.waiting: deque[int] = _NONE
        self.gaps: tuple[tuple[int, int], ...] = ()
        """First and last offset of each stretch that was passed over while something waited."""
        self.in_gap = False

    @property
    def backlog(self) -> int:
        """How many notifications wait, in memory and beyond."""
        return len(self.waiting) + self.beyond

    def offer(self, offset: int) -> None:
        """Take a matching offset from the live stream."""
        self.in_gap = False
        if offset <= self.seen:
            return
        if self.behind or len(self.waiting) >= self.window:
            self.behind = True
            self.beyond += 1
            return
        self.seen = offset
        if self.waiting is _NONE:
            self.waiting = deque()
        self.waiting.append(offset)

    def offer_run(self, offsets: range) -> None:
        """Take matching offsets that follow each other in the live stream."""
        if self.behind or offsets[0] <= self.seen or len(self.waiting) + len(offsets) > self.window:
            for offset in offsets:
                self.offer(offset)
            return
        self.in_gap = False
        self.seen = offsets[-1]
        if self.waiting is _NONE:
            self.waiting = deque()
        self.waiting.extend(offsets)

    def pass_over(self, offset: int) -> bool:
        """Leave a matching offset of the live stream out; whether all up to it are dealt with."""
        if not self.waiting and not self.behind:
            self.seen = self.acknowledged = max(self.seen, offset)
            self.gaps = ()
            return True
        if self.in_gap and self.gaps:
            self.gaps = (*self.gaps[:-1], (self.gaps[-1][0], offset))
        else:
            self.gaps = (*self.gaps, (offset, offset))
        self.in_gap = True
        return False

    def refill(self, offsets: Iterable[int], *, upto: int, head: int) -> None:
        """Take what a scan of the log found; level with `head` again, the live stream goes on."""
        before = len(self.waiting)
        if self.waiting is _NONE:
            self.waiting = deque()
        self.waiting.extend(offset for offset in offsets if offset > self.seen and not self._in_gaps(offset))
        self.seen = max(self.seen, upto)
        self.behind = self.seen < head
        self.beyond = max(0, self.beyond - (len(self.waiting) - before)) if self.behind else 0
        self.counted = self.counted or not self.behind

    def count(self, beyond: int) -> None:
        """Take the number of those beyond `seen` from the log, as after a restart."""
        self.beyond = beyond
        self.counted = True

    def batch(self, limit: int) -> list[int]:
        """The next offsets to deliver; they wait on until acknowledged."""
        if len(self.waiting) <= limit:
            return list(self.waiting)
        return [self.waiting[index] for index in range(limit)]

    def oldest(self, limit: int) -> list[int]:
        """The offsets that wait longest, in the order of the log."""
        return self.batch(limit)

    def passing(self, offsets: Sequence[int]) -> tuple[int, Sequence[int]]:
        """Where the cursor would be after `settle`, and what would be ahead of it: here nothing."""
        return offsets[-1], ()

    def settle(self, offsets: Sequence[int]) -> Sequence[int]:
        """Be done with the next offsets; return those that are ahead of the cursor now: here none."""
        self.acknowledge(offsets[-1])
        return ()

    def has(self, offset: int) -> bool:
        """Whether the queue is done with an offset."""
        return offset <= self.acknowledged

    def acknowledge(self, upto: int) -> None:
        """Move past everything up to a delivered offset."""
        waiting = self.waiting
        if waiting and waiting[-1] <= upto:
            waiting.clear()
        while waiting and waiting[0] <= upto:
            waiting.popleft()
        self.acknowledged = max(self.acknowledged, upto)
        if self.gaps:
            self.gaps = tuple(gap for gap in self.gaps if gap[1] > self.acknowledged)

    def _in_gaps(self, offset: int) -> bool:
        return any(first <= offset <= last for first, last in self.gaps)

    def skip(self, offsets: Collection[int]) -> None:
        """Pass over offsets that can no longer be had."""
        self.waiting = deque(offset for offset in self.waiting if offset not in offsets)

    def rewind(self, head: int) -> None:
        """Forget what waits and read again from the acknowledged place."""
        self.beyond = self.backlog
        self.waiting = _NONE
        self.seen = self.acknowledged
        self.behind = self.acknowledged < head
