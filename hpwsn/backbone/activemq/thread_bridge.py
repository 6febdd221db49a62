"""Passes the events of a STOMP link from its threads to the event loop: in order, messages in batches."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from hpwsn.backbone.activemq.stomp_link import Incoming


class Bridge:
    """A link listener that runs its callbacks in the event loop; many messages need one callback."""

    def __init__(
        self,
        *,
        up: Callable[[str], None],
        down: Callable[[str], None],
        messages: Callable[[Sequence[Incoming]], None],
        receipt: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._up = up
        self._down = down
        self._messages = messages
        self._receipt = receipt
        self._waiting: deque[Incoming] = deque()
        self._called = False

    def up(self, host: str) -> None:
        """A session has started."""
        self._call(self._up, host)

    def down(self, reason: str) -> None:
        """The session has ended, or could not be started."""
        self._call(self._down, reason)

    def message(self, message: Incoming) -> None:
        """A message was received."""
        self._waiting.append(message)
        if not self._called:
            self._called = True
            self._call(self._hand_over)

    def receipt(self, number: str) -> None:
        """ActiveMQ has confirmed a transaction."""
        self._call(self._receipt, number)

    def _hand_over(self) -> None:
        self._called = False  # before the loop, so that a later message schedules another call
        batch = []
        while self._waiting:
            batch.append(self._waiting.popleft())
        if batch:
            self._messages(batch)

    def _call(self, function: Callable[..., None], *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the event loop is closed
            self._loop.call_soon_threadsafe(function, *arguments)
