"""Who waits until a subscription has handed over all it could."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from hpwsn.broker.subscription import Subscription


class Settling:
    """Futures by subscription; where nobody waits, a subscription that settles costs one look."""

    def __init__(self) -> None:
        self._waiting: dict[Subscription, list[asyncio.Future[None]]] = {}

    async def wait(self, subscriptions: Iterable[Subscription]) -> None:
        """Wait until each of these has settled."""
        loop = asyncio.get_running_loop()
        waiting = []
        for subscription in subscriptions:
            future: asyncio.Future[None] = loop.create_future()
            self._waiting.setdefault(subscription, []).append(future)
            waiting.append(future)
        if waiting:
            await asyncio.wait(waiting)

    def settled(self, subscription: Subscription) -> None:
        """Tell those who wait for it."""
        if not self._waiting:
            return
        for future in self._waiting.pop(subscription, ()):
            if not future.done():
                future.set_result(None)

    def close(self) -> None:
        """Let nobody wait any longer."""
        for subscription in list(self._waiting):
            self.settled(subscription)
