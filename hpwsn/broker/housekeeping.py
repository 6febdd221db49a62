"""Housekeeping: applies retention to the journal and to the pull points at a fixed interval.

Undelivered notifications of a subscription are exempt from retention; its queue limits bound them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from hpwsn.background import BackgroundTask
from hpwsn.broker.broker import Broker
from hpwsn.broker.subscriptions.subscription import State
from hpwsn.errors import JournalUnavailable
from hpwsn.settings import Config
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression

log = logging.getLogger(__name__)

INTERVAL = 30.0
"""Seconds between two prunings."""


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """The retention of delivered notifications and dead letters: ages in seconds, sizes in bytes."""

    age: float
    bytes: int
    id_window: float
    dead_letter_age: float
    dead_letter_limit: int

    @classmethod
    def of(cls, config: Config) -> RetentionPolicy:
        """The policy of the settings."""
        journal, letters = config.journal, config.dead_letters
        # Remove old entries before the journal is full and refuses publishers.
        room = journal.max_bytes * 3 // 4 if journal.max_bytes else journal.retention_bytes
        return cls(
            age=journal.retention_age,
            bytes=min(journal.retention_bytes, room),
            id_window=journal.id_window,
            dead_letter_age=letters.age,
            dead_letter_limit=letters.limit,
        )


class Housekeeping(BackgroundTask):
    """Prunes the journal and the pull points every INTERVAL seconds."""

    def __init__(
        self,
        broker: Broker,
        policy: RetentionPolicy,
        *,
        needed_from: Callable[[], int | None] | None = None,
    ) -> None:
        """`needed_from` returns the first offset that other nodes may still need, or None."""
        super().__init__(self._run_periodically)
        self._broker = broker
        self._policy = policy
        self._needed_from = needed_from or (lambda: None)

    async def _run_periodically(self) -> None:
        while True:
            await asyncio.sleep(INTERVAL)
            try:
                await self.tidy()
            except JournalUnavailable as error:
                log.warning("the journal could not be pruned: %s", error)

    async def tidy(self) -> None:
        """Remove data past retention, and release open topics that no longer have a current message."""
        broker, policy = self._broker, self._policy
        await broker.pull_points.trim()
        for subscription in broker.subscriptions:
            broker.delivery.expire(subscription)
        needs, needs_all = self._needs()
        head = broker.delivery.head
        pruned = await broker.journal.prune(
            broker.clock(),
            id_window=policy.id_window,
            retention_age=policy.age,
            retention_bytes=policy.bytes,
            needs=needs,
            needs_all=needs_all,
            head=head,
            dead_letter_age=policy.dead_letter_age,
            dead_letter_limit=policy.dead_letter_limit,
        )
        for topic in map(Topic.parse, pruned.forgotten):
            current = broker.tree.current(topic)
            if current is None or current <= head:
                broker.tree.release(topic)

    def _needs(self) -> tuple[dict[str, int], int | None]:
        """The acknowledged offsets after which entries are needed, by topic and for all topics."""
        waiting: dict[tuple[TopicExpression, ...], int] = {}
        for subscription in self._broker.subscriptions:
            cursor = subscription.cursor
            # A Renew within the grace period continues an expired subscription at its cursor.
            if cursor.backlog or cursor.behind or subscription.state is State.EXPIRED:
                topics = subscription.topics
                waiting[topics] = min(cursor.acknowledged, waiting.get(topics, cursor.acknowledged))
        needs: dict[str, int] = {}
        for topics, cursor_at in waiting.items():
            for key in self._broker.tree.keys(topics) or ():
                needs[key] = min(cursor_at, needs.get(key, cursor_at))
        elsewhere = self._needed_from()
        everywhere = [waiting[()]] if () in waiting else []
        if elsewhere is not None:
            everywhere.append(elsewhere - 1)
        return needs, min(everywhere, default=None)
