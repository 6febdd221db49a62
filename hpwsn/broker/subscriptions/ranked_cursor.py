"""The cursor of a queue whose discipline is cet: it gives offsets by rank, and is acknowledged out of order.

`ahead` are the offsets beyond `acknowledged` that are done with. The journal stores them, so that a restart
does not send them again; they are forgotten as the cursor passes them. At most `window` offsets wait or are
ahead at a time: only these are ranked. What comes beyond is younger; it is read from the log, and ranked,
once the window is empty.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence

from hpwsn.broker.queueing.cet_rules import CetRules, Dropped, first_of, stale
from hpwsn.broker.queueing.transmissions import Transmissions
from hpwsn.broker.subscriptions.cursor import Cursor


class RankedCursor(Cursor):
    """The waiting offsets of one subscription, given by rank."""

    ranked = True
    __slots__ = ("_expected", "_transmissions", "ahead", "rules")

    def __init__(
        self,
        acknowledged: int,
        *,
        window: int,
        head: int,
        rules: CetRules,
        transmissions: Transmissions,
        ahead: Iterable[int] = (),
    ) -> None:
        super().__init__(acknowledged, window=window, head=head)
        self.ahead = {offset for offset in ahead if offset > acknowledged}
        self.rules = rules
        self._transmissions = transmissions
        self._expected: Mapping[int, tuple[float, int]] = {}

    def expect(self, known: Mapping[int, tuple[float, int]]) -> None:
        """The times and transmissions of all offsets that are offered or found next."""
        self._expected = known

    def offer(self, offset: int) -> None:
        """Take a matching offset from the live stream."""
        if self.ahead and not self.behind and offset > self.seen:
            self.behind = len(self.waiting) + len(self.ahead) >= self.window
        before = self.seen
        super().offer(offset)
        if self.seen != before:
            self._enter((offset,))

    def offer_run(self, offsets: range) -> None:
        """Take matching offsets that follow each other in the live stream."""
        for offset in offsets:
            self.offer(offset)

    def refill(self, offsets: Iterable[int], *, upto: int, head: int) -> None:
        """Take what a scan of the log found, without what is ahead."""
        before = len(self.waiting)
        super().refill([each for each in offsets if each not in self.ahead], upto=upto, head=head)
        self._enter([self.waiting[index] for index in range(before, len(self.waiting))])
        self._pull_up()

    def count(self, beyond: int) -> None:
        """Take the number of those beyond `seen` from the log, which also counts those ahead."""
        super().count(max(0, beyond - sum(offset > self.seen for offset in self.ahead)))

    def batch(self, limit: int) -> list[int]:
        """The next offsets to deliver, by rank; they wait on until acknowledged."""
        return first_of(self.waiting, limit, self._transmissions)

    def oldest(self, limit: int) -> list[int]:
        """The offsets that wait longest, in the order of the log."""
        return super().batch(limit)

    def stale(self, now: float) -> list[Dropped]:
        """What the rules drop now."""
        return stale(self.waiting, self.rules, self._transmissions, now)

    def acknowledge(self, upto: int) -> None:
        """Move past everything up to an offset."""
        self._transmissions.leave(offset for offset in self.waiting if offset <= upto)
        super().acknowledge(upto)
        self._pull_up()

    def passing(self, offsets: Sequence[int]) -> tuple[int, Sequence[int]]:
        """Where the cursor would be, and which of the offsets would be ahead of it, after `settle`."""
        done = self.ahead.union(offsets)
        first = next((offset for offset in self.waiting if offset not in done), self.seen + 1)
        upto = max((offset for offset in done if offset < first), default=self.acknowledged)
        return max(upto, self.acknowledged), [offset for offset in offsets if offset > upto]

    def settle(self, offsets: Sequence[int]) -> Sequence[int]:
        """Be done with these offsets, wherever they wait; return those that are ahead of the cursor now."""
        self._take_out(set(offsets))
        self.ahead.update(offset for offset in offsets if offset > self.acknowledged)
        self._pull_up()
        return [offset for offset in offsets if offset in self.ahead]

    def skip(self, offsets: Collection[int]) -> None:
        """Pass over offsets that can no longer be had."""
        self.settle(list(offsets))

    def rewind(self, head: int) -> None:
        """Forget what waits and read again from the acknowledged place."""
        self._transmissions.leave(self.waiting)
        super().rewind(head)

    def has(self, offset: int) -> bool:
        """Whether the queue is done with an offset."""
        return offset <= self.acknowledged or offset in self.ahead

    def release(self) -> None:
        """Keep no counts for what waits: the subscription has ended."""
        self._transmissions.leave(self.waiting)
        self.waiting = deque()

    def _enter(self, offsets: Iterable[int]) -> None:
        for offset in offsets:
            time, others = self._expected[offset]
            self._transmissions.enter(offset, time, others)

    def _take_out(self, done: set[int]) -> None:
        if self.waiting:
            self._transmissions.leave(offset for offset in self.waiting if offset in done)
            self.waiting = deque(offset for offset in self.waiting if offset not in done)

    def _pull_up(self) -> None:
        """Move the cursor past all that is done with, up to the first offset that waits."""
        if not self.ahead:
            return
        first = self.waiting[0] if self.waiting else self.seen + 1
        passed = {offset for offset in self.ahead if offset < first}
        if passed:
            super().acknowledge(max(passed))
            self.ahead = {offset for offset in self.ahead if offset > self.acknowledged}
