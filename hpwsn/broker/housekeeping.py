"""Keeps the journal within its bounds: forgets what everybody has and what is too old or too much.

What a subscription still waits for is never touched here, whatever the bounds say: the limits of its own
queue are for that.
"""

from __future__ import annotations

import asyncio
import logging

from hpwsn.broker.background import Background
from hpwsn.broker.broker import Broker
from hpwsn.errors import JournalUnavailable
from hpwsn.settings import Config
from hpwsn_client.wsn.topics import Topic

log = logging.getLogger(__name__)

INTERVAL = 30.0
"""Seconds between two looks."""


class Housekeeping(Background):
    """Prunes the journal and the pull points now and then."""

    def __init__(self, broker: Broker, config: Config) -> None:
        super().__init__(self._run_now_and_then)
        self._broker = broker
        self._config = config

    async def _run_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(INTERVAL)
            try:
                await self.tidy()
            except JournalUnavailable as error:
                log.warning("the journal could not be tidied: %s", error)

    async def tidy(self) -> None:
        """Remove what is past retention, and let open topics go whose last message went with it."""
        broker, journal, letters = self._broker, self._config.journal, self._config.dead_letters
        await broker.pull_points.trim()
        needs, needs_all = self._needs()
        head = broker.delivery.head
        pruned = await broker.journal.prune(
            broker.clock(),
            id_window=journal.id_window,
            retention_age=journal.retention_age,
            retention_bytes=journal.retention_bytes,
            needs=needs,
            needs_all=needs_all,
            head=head,
            dead_letter_age=letters.age,
            dead_letter_limit=letters.limit,
        )
        for topic in map(Topic.parse, pruned.forgotten):
            node = broker.tree.find(topic)
            if node is not None and (node.current is None or node.current <= head):
                broker.tree.release(topic)

    def _needs(self) -> tuple[dict[str, int], int | None]:
        """From where on somebody waits for each topic, and for every topic."""
        needs: dict[str, int] = {}
        needs_all: int | None = None
        for subscription in self._broker.subscriptions:
            cursor = subscription.cursor
            if not cursor.backlog and not cursor.behind:
                continue
            topics = self._broker.tree.keys(subscription.topics)
            if topics is None:
                needs_all = min(cursor.acknowledged, cursor.acknowledged if needs_all is None else needs_all)
                continue
            for topic in topics:
                needs[topic] = min(cursor.acknowledged, needs.get(topic, cursor.acknowledged))
        return needs, needs_all
