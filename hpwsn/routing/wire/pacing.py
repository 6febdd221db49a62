"""Pacing: how many bytes may be in flight to a UDP receiver, so that no buffer on the path overflows. Pure.

The receiver reports the highest counter, the number of received datagrams, and how much its buffer allows
in flight. The sender counts what it sent beyond that. A lost datagram counts as arrived when a later one
has arrived. The window starts small and doubles while nearly everything arrives; it halves when the loss is
high. Without feedback the sender continues with half the window. After several such stalls the session must
be greeted again, because the receiver may have restarted.
"""

from __future__ import annotations

from collections import deque

FIRST_WINDOW = 64 * 1024
SMALLEST_WINDOW = 20 * 1024
MAX_STALLS = 5
ADJUST_INTERVAL = 16
"""Datagrams after which the window is adjusted again."""
TOLERATED_LOSS = 0.12
"""The share of lost datagrams that does not shrink the window: a bad network loses it at any speed."""


def cost(size: int) -> int:
    """Return the bytes of a receiver's buffer that a datagram takes, with the overhead of the kernel."""
    return 2 * size + 1024


class Pacer:
    """Counts the bytes in flight in one session."""

    def __init__(self) -> None:
        self._sent: deque[tuple[int, int]] = deque()
        self._highest = -1
        self._adjusted_at, self._missing = -1, 0
        self.window = FIRST_WINDOW
        self.in_flight = 0
        self.stalls = 0

    def may_send(self) -> bool:
        """Whether another datagram may be sent."""
        return self.in_flight < self.window

    def sent(self, counter: int, size: int) -> None:
        """Count a datagram that was sent."""
        self._sent.append((counter, cost(size)))
        self.in_flight += cost(size)

    def feedback(self, highest: int, received: int, allowed: int) -> None:
        """Handle feedback: the highest counter, the number of datagrams received, and the bytes allowed."""
        if highest < self._highest:
            return
        self._highest = highest
        self.stalls = 0
        while self._sent and self._sent[0][0] <= highest:
            self.in_flight -= self._sent.popleft()[1]
        if highest - self._adjusted_at >= ADJUST_INTERVAL:
            self._adjust_window(highest, highest + 1 - received)
        self.window = max(min(self.window, allowed), SMALLEST_WINDOW)

    def _adjust_window(self, highest: int, missing: int) -> None:
        lost = (missing - self._missing) / (highest - self._adjusted_at)
        self.window = self.window // 2 if lost > TOLERATED_LOSS else self.window * 2
        self._adjusted_at, self._missing = highest, missing

    def stalled(self) -> bool:
        """Count everything in flight as lost, and halve the window; False if the session must start again."""
        self._sent.clear()
        self.in_flight = 0
        self.window = max(self.window // 2, SMALLEST_WINDOW)
        self.stalls += 1
        return self.stalls < MAX_STALLS
