"""What a subscription has missed, found in the log: after a restart, or once it fell out of its window.

Also the present state of its topics, for a subscriber that asks for it.

The newest notifications in memory, shared by every queue, bounded in bytes.

Queues hold offsets; this is where they find most of them. What has been pushed out is read from the
journal.

Work for a subscription that reads the journal: few at once, and whatever fails is tried again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable

from hpwsn.broker.subscriptions.subscription import Subscriber, Subscription
from hpwsn.errors import JournalUnavailable
from hpwsn.journal.journal import Journal
from hpwsn.journal.store.records import Stored
from hpwsn.matching.content.content_filters import ContentFilters
from hpwsn.notification import Notification
from hpwsn.topics.tree.tree import TopicTree

OVERHEAD = 512
"""Bytes that a notification takes beside its content, in objects and in the index."""


class Recent:
    """Notifications by offset, oldest out first."""

    __slots__ = ("_kept", "get", "limit", "size")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self._kept: OrderedDict[int, Notification] = OrderedDict()
        self.get = self._kept.get
        """The notification at an offset, if it is still here."""

    def put(self, first: int, notifications: Iterable[Notification]) -> None:
        """Keep these, at the cost of the oldest."""
        kept, size = self._kept, self.size
        for offset, notification in enumerate(notifications, first):
            if offset not in kept:
                kept[offset] = notification
                size += len(notification.content) + OVERHEAD
        self.size = size
        while self.size > self.limit and self._kept:
            _, oldest = self._kept.popitem(last=False)
            self.size -= len(oldest.content) + OVERHEAD

    def __len__(self) -> int:
        return len(self._kept)


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
