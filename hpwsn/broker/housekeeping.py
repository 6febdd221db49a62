"""Keeps the journal within its bounds: forgets what everybody has and what is too old or too much.

What a subscription still waits for is never touched here, whatever the bounds say: the limits of its own
queue are for that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from hpwsn.background import Background
from hpwsn.broker.broker import Broker
from hpwsn.broker.subscriptions.subscription import State
from hpwsn.errors import JournalUnavailable
from hpwsn.settings import Config
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression

log = logging.getLogger(__name__)

INTERVAL = 30.0
"""Seconds between two looks."""


class Housekeeping(Background):
    """Prunes the journal and the pull points now and then."""

    def __init__(self, broker: Broker, config: Config) -> None:
        super().__init__(self._run_now_and_then)
        self._broker = broker
        self._config = config
        self.needed_from: Callable[[], int | None] = lambda: None
        """The offset from which on other nodes may need everything."""

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
        for subscription in broker.subscriptions:
            broker.delivery.expire(subscription)
        needs, needs_all = self._needs()
        head = broker.delivery.head
        pruned = await broker.journal.prune(
            broker.clock(),
            id_window=journal.id_window,
            retention_age=journal.retention_age,
            retention_bytes=self._retained_bytes(),
            needs=needs,
            needs_all=needs_all,
            head=head,
            dead_letter_age=letters.age,
            dead_letter_limit=letters.limit,
        )
        for topic in map(Topic.parse, pruned.forgotten):
            current = broker.tree.current(topic)
            if current is None or current <= head:
                broker.tree.release(topic)

    def _needs(self) -> tuple[dict[str, int], int | None]:
        """From where on somebody waits for each topic, and for every topic."""
        waiting: dict[tuple[TopicExpression, ...], int] = {}
        for subscription in self._broker.subscriptions:
            cursor = subscription.cursor
            # An expired one gets nothing now, but a Renew may bring it back to where it was.
            if cursor.backlog or cursor.behind or subscription.state is State.EXPIRED:
                topics = subscription.topics
                waiting[topics] = min(cursor.acknowledged, waiting.get(topics, cursor.acknowledged))
        needs: dict[str, int] = {}
        for topics, cursor_at in waiting.items():
            for key in self._broker.tree.keys(topics) or ():
                needs[key] = min(cursor_at, needs.get(key, cursor_at))
        elsewhere = self.needed_from()
        everywhere = [waiting[()]] if () in waiting else []
        if elsewhere is not None:
            everywhere.append(elsewhere - 1)
        return needs, min(everywhere, default=None)

    def _retained_bytes(self) -> int:
        """Less than the journal may have in all: old entries make room before publishers are refused."""
        journal = self._config.journal
        return min(journal.retention_bytes, journal.max_bytes * 3 // 4 or journal.retention_bytes)
