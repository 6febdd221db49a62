"""Pacing: how many datagrams may be under way to a receiver, so that no buffer on the way overflows. Pure.

The receiver says how far it has come, how many datagrams that were, and how much its own buffer lets be under
way; the sender counts what it has sent beyond that. A lost datagram counts as arrived once a later one has.
The sender begins small and doubles while nearly all arrives; where much is lost, something on the way
overflows and it halves. When nothing is heard for a while, it goes on with half as much, and after several
such turns it has to greet anew, since the receiver may have begun another life.
"""

from __future__ import annotations

from collections import deque

FIRST_WINDOW = 64 * 1024
SMALLEST_WINDOW = 20 * 1024
MAX_STALLS = 5
ADJUST_INTERVAL = 16
"""Datagrams after which the window is judged anew."""
TOLERATED_LOSS = 0.12
"""The share of lost datagrams that a bad network may lose anyway, however slowly one sends."""


def cost(size: int) -> int:
    """What a datagram takes of a receiver's buffer; the kernel counts whole pages and its own structures."""
    return 2 * size + 1024


class Pacer:
    """Counts what is under way in one session."""

    def __init__(self) -> None:
        self._sent: deque[tuple[int, int]] = deque()
        self._highest = -1
        self._adjusted_at, self._missing = -1, 0
        self.window = FIRST_WINDOW
        self.in_flight = 0
        self.stalls = 0

    def may_send(self) -> bool:
        """Whether one more datagram may go."""
        return self.in_flight < self.window

    def sent(self, counter: int, size: int) -> None:
        """Note a datagram that went."""
        self._sent.append((counter, cost(size)))
        self.in_flight += cost(size)

    def feedback(self, highest: int, received: int, allowed: int) -> None:
        """The receiver has got so many, up to that counter, and lets so much be under way."""
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
        """Nothing was heard for a while: take all for lost, go on slower; whether that is still of use."""
        self._sent.clear()
        self.in_flight = 0
        self.window = max(self.window // 2, SMALLEST_WINDOW)
        self.stalls += 1
        return self.stalls < MAX_STALLS
