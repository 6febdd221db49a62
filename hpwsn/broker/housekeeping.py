"""Keeps the journal within its bounds: forgets what has been read by everybody and is too old or too much.

What a subscription still waits for is never touched here, whatever the bounds say.
"""

from __future__ import annotations

import asyncio
import logging

from hpwsn.broker.broker import Broker
from hpwsn.errors import JournalUnavailable
from hpwsn.settings import JournalSettings

log = logging.getLogger(__name__)

INTERVAL = 30.0
"""Seconds between two looks."""


class Housekeeping:
    """Prunes the journal now and then."""

    def __init__(self, broker: Broker, settings: JournalSettings) -> None:
        self._broker = broker
        self._settings = settings
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Stop."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(INTERVAL)
            try:
                await self.prune()
            except JournalUnavailable as error:
                log.warning("the journal could not be pruned: %s", error)

    async def prune(self) -> None:
        """Remove what is past retention and no longer waited for."""
        settings = self._settings
        await self._broker.journal.prune(
            self._broker.clock(),
            id_window=settings.id_window,
            retention_age=settings.retention_age,
            retention_bytes=settings.retention_bytes,
            keep_after=self._needed_after(),
        )

    def _needed_after(self) -> int:
        needed = self._broker.delivery.head
        for subscription in self._broker.subscriptions:
            cursor = subscription.cursor
            if cursor.waiting or cursor.behind:
                needed = min(needed, cursor.acknowledged)
        return needed
