"""MPS, the measure of the thesis on the original HPwsn: messages received / elapsed time, every 500 messages.

The figures are noted while messages come in, and printed afterwards: in the thesis, too, printing disturbed
what it measured.
"""

import sys
import time
from collections.abc import Callable, Iterator

EVERY = 500
"""Messages between two lines."""


class MpsMeter:
    """The elapsed time at every so many messages, counted from a start."""

    def __init__(self, every: int = EVERY, clock: Callable[[], float] = time.perf_counter) -> None:
        self._every = every
        self._clock = clock
        self._count_before: int | None = None
        self._next = every
        self.points: list[tuple[int, float]] = []
        """Messages received since the start, and the seconds that they took."""

    def start(self, count: int) -> None:
        """Count from here: so many messages came before."""
        self._count_before, self._began, self._next = count, self._clock(), self._every

    def stop(self) -> None:
        """Count no more."""
        self._count_before = None

    def note(self, count: int) -> bool:
        """Take the number of all messages so far; True if another line is due."""
        if self._count_before is None or (received := count - self._count_before) < self._next:
            return False
        self.points.append((received, self._clock() - self._began))
        # A read may bring more messages than lie between two lines.
        self._next = received - received % self._every + self._every
        return True

    def lines(self) -> Iterator[str]:
        """A line for each point."""
        return (mps_line(count, seconds) for count, seconds in self.points)


def mps_line(count: int, seconds: float) -> str:
    """The counter, the elapsed time, and their quotient."""
    return f"{count:,} messages in {seconds:.3f} s, MPS {count / seconds if seconds else 0:,.0f}"


def print_mps(name: str, meter: MpsMeter) -> None:
    """Print what a meter noted, for a person who watches."""
    for line in meter.lines():
        print(f"    {name}: {line}", file=sys.stderr)
    sys.stderr.flush()
