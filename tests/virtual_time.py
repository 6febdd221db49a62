"""An event loop whose clock jumps to the next timer, so that a test of hours takes milliseconds.

For code whose clock and timers are those of the loop, and that uses neither sockets nor threads: while one
of them is awaited, the clock stands still only if no timer is set.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Jumps(selectors.DefaultSelector):
    """Does not wait for a time, but moves the clock on."""

    jump: Callable[[float], None]

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0 if timeout is None or timeout > 0 else timeout)
        if found or timeout == 0:
            return found
        if timeout is None:
            return super().select(None)
        self.jump(timeout)
        return []


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Begins at 0 seconds."""

    def __init__(self) -> None:
        self._now = 0.0
        selector = _Jumps()
        super().__init__(selector)
        selector.jump = self._jump

    def time(self) -> float:
        """The virtual time."""
        return self._now

    def _jump(self, seconds: float) -> None:
        self._now += seconds


def run(test: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in a loop of its own."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(test)
