"""How many receivers already have a notification, for notifications that wait in a queue of discipline cet.

A transmission is a delivery to another subscription that wants the notification, or to a carrier that takes
it to another node. Counts are kept only while the offset waits in the memory of such a queue, together with
the time of the notification. Where no queue has this discipline nothing is kept; a delivery costs one check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(slots=True)
class Watched:
    """A waiting notification: the queues in which it waits, who has it, and when it was accepted."""

    queues: int
    others: int
    time: float


class Transmissions:
    """The counts of a node, shared by all its queues."""

    def __init__(self) -> None:
        self.watched: dict[int, Watched] = {}
        """By offset; empty unless a queue of this discipline has a backlog."""
        self.carried_before: Callable[[int], int] = _no_carrier
        """How many carriers have an offset; asked when counts are taken anew, as after a restart."""

    def enter(self, offset: int, time: float, others: int) -> None:
        """A notification begins to wait in one more queue; `others` is used if it waits in no queue yet."""
        known = self.watched.get(offset)
        if known is None:
            self.watched[offset] = Watched(1, others, time)
        else:
            known.queues += 1

    def leave(self, offsets: Iterable[int]) -> None:
        """Notifications no longer wait in one of the queues; the last queue ends their counts."""
        for offset in offsets:
            known = self.watched.get(offset)
            if known is not None:
                known.queues -= 1
                if known.queues <= 0:
                    del self.watched[offset]

    def delivered(self, offsets: Iterable[int]) -> None:
        """A subscription got these."""
        for offset in offsets:
            known = self.watched.get(offset)
            if known is not None:
                known.others += 1

    def carried(self, offsets: Iterable[int]) -> None:
        """A carrier took these: one transmission of each."""
        self.delivered(offsets)

    def others(self, offset: int) -> int:
        """How many have this waiting notification."""
        known = self.watched.get(offset)
        return 0 if known is None else known.others

    def time(self, offset: int) -> float:
        """When this waiting notification was accepted."""
        known = self.watched.get(offset)
        return 0.0 if known is None else known.time


def _no_carrier(offset: int) -> int:
    return 0
