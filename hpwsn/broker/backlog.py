"""What a subscription has missed, found in the log: after a restart, or once it fell out of its window.

Also the present state of its topics, for a subscriber that asks for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from hpwsn.broker.recent import Recent
from hpwsn.broker.subscription import Subscriber, Subscription
from hpwsn.journal.journal import Journal
from hpwsn.journal.records import Stored
from hpwsn.matching.content import ContentFilters
from hpwsn.notification import Notification
from hpwsn.topics.tree import TopicTree

log = logging.getLogger(__name__)

PRESENT = 10_000
"""Most topics whose current messages are sent again when a subscriber asks for the present state."""


class Backlog:
    """Reads on in the log for cursors; `head` is the newest offset that every subscription was offered."""

    def __init__(
        self,
        journal: Journal,
        tree: TopicTree[Subscriber],
        content: ContentFilters,
        recent: Recent,
        head: Callable[[], int],
    ) -> None:
        self._journal = journal
        self._tree = tree
        self._content = content
        self._recent = recent
        self._head = head

    async def look_on(self, subscription: Subscription) -> None:
        """Look through the next stretch of the log for what this subscription missed."""
        # The topics are those of this moment: what comes after it may be on others.
        cursor, head, topics = subscription.cursor, self._head(), self._tree.keys(subscription.topics)
        scan = await self._journal.scan(cursor.seen, limit=cursor.window, topics=topics, head=head)
        wanted = []
        for stored in scan.entries:
            if self._wants(subscription, stored.notification):
                self._recent.put(stored.offset, (stored.notification,))
                wanted.append(stored.offset)
        cursor.refill(wanted, upto=scan.upto, head=self._head())
        if not cursor.counted:
            # With a content filter the log does not tell how many; too few is safe, too many would drop some.
            cursor.count(0 if subscription.content else await self._journal.count(cursor.seen, topics))

    def present(self, subscription: Subscription) -> list[int]:
        """The offsets of its topics' current messages, of those that it has had already."""
        upto = subscription.cursor.acknowledged
        nodes = self._tree.matching(subscription.topics)
        offsets = sorted(node.current for node in nodes if node.current is not None and node.current <= upto)
        if len(offsets) > PRESENT:
            log.warning(
                "subscription %s: of %d topics, the %d with the newest messages are sent again",
                subscription.id,
                len(offsets),
                PRESENT,
            )
        return offsets[-PRESENT:]

    def is_present(self, stored: Stored, subscription: Subscription) -> bool:
        """Whether a message is still its topic's current one, and wanted."""
        topic = stored.notification.topic
        node = None if topic is None else self._tree.find(topic)
        # A newer message has gone out since, or will: an older one after it would be taken for the newest.
        current = node is not None and node.current == stored.offset
        return current and self._wants(subscription, stored.notification)

    def _wants(self, subscription: Subscription, notification: Notification) -> bool:
        if not subscription.content:
            return True
        return self._content.evaluation(notification.payload).holds(subscription.content)
