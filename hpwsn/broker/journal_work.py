"""Work for a subscription that reads the journal: few at once, and whatever fails is tried again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine

from hpwsn.broker.subscription import Subscription
from hpwsn.errors import JournalUnavailable

log = logging.getLogger(__name__)

READERS = 8
"""Subscriptions that read from the journal at once; a thousand that come back together take turns."""


class JournalWork:
    """Runs coroutines; `failed` is told of a subscription whose work came to nothing."""

    def __init__(self, failed: Callable[[Subscription], None]) -> None:
        self._failed = failed
        self._turns = asyncio.Semaphore(READERS)
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, subscription: Subscription, work: Coroutine[None, None, None]) -> None:
        """Begin; the subscription is busy until the work, or its failure, says otherwise."""
        subscription.progress.busy = True
        task = asyncio.get_running_loop().create_task(self._guard(subscription, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guard(self, subscription: Subscription, work: Coroutine[None, None, None]) -> None:
        try:
            async with self._turns:
                await work
        except Exception as error:
            if not isinstance(error, JournalUnavailable):
                log.exception("subscription %s: its queue could not be read", subscription.id)
            subscription.progress.busy = False
            subscription.progress.last_error = str(error)
            self._failed(subscription)

    async def close(self) -> None:
        """Wait for what has begun."""
        if self._tasks:
            await asyncio.wait(self._tasks)
