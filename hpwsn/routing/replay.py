"""A sliding window over the counters of one session: each frame is taken once. Pure.

A counter below the window is refused as well, since nothing is known of it any more; frames that a network
reorders further than the window is wide are lost with that, as they would be late anyway.
"""

WIDTH = 4096


class ReplayWindow:
    """Which of the last counters have been seen, as bits below the highest."""

    def __init__(self, width: int = WIDTH) -> None:
        self._mask = (1 << width) - 1
        self._width = width
        self._seen = 0
        self.highest = -1

    def take(self, counter: int) -> bool:
        """Whether a counter is new; it is not from now on."""
        ahead = counter - self.highest
        if ahead > 0:
            self._seen = ((self._seen << ahead) | 1) & self._mask if ahead < self._width else 1
            self.highest = counter
            return True
        if -ahead >= self._width or self._seen >> -ahead & 1:
            return False
        self._seen |= 1 << -ahead
        return True
