"""Pacing: how many datagrams may be under way to a receiver, so that its buffer never overflows. Pure.

The receiver says how far it has come and how much may be under way; the sender counts what it has sent beyond
that. A lost datagram counts as arrived once a later one has. When nothing is heard for a while, either the
datagrams or the word of them were lost: the sender goes on with half as much, and after several such turns it
has to greet anew, since the receiver may have begun another life.
"""

from __future__ import annotations

from collections import deque

FIRST_WINDOW = 32 * 1024
SMALLEST_WINDOW = 20 * 1024
GIVE_UP = 5


def cost(size: int) -> int:
    """What a datagram takes of a receiver's buffer; the kernel counts whole pages and its own structures."""
    return 2 * size + 1024


class Pacer:
    """Counts what is under way in one session."""

    def __init__(self) -> None:
        self._sent: deque[tuple[int, int]] = deque()
        self._window = FIRST_WINDOW
        self._highest = -1
        self.under_way = 0
        self.stalls = 0

    def may_send(self) -> bool:
        """Whether one more datagram may go."""
        return self.under_way < self._window

    def sent(self, counter: int, size: int) -> None:
        """Note a datagram that went."""
        self._sent.append((counter, cost(size)))
        self.under_way += cost(size)

    def heard(self, highest: int, window: int) -> None:
        """The receiver has seen this counter, and lets so much be under way."""
        if highest < self._highest:
            return
        self._highest = highest
        self._window = max(window, SMALLEST_WINDOW)
        self.stalls = 0
        while self._sent and self._sent[0][0] <= highest:
            self.under_way -= self._sent.popleft()[1]

    def stalled(self) -> bool:
        """Nothing was heard for a while: take all for lost, go on slower; whether that is still of use."""
        self._sent.clear()
        self.under_way = 0
        self._window = max(self._window // 2, SMALLEST_WINDOW)
        self.stalls += 1
        return self.stalls < GIVE_UP
