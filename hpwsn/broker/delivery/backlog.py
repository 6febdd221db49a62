"""The backlog of a subscription: the notifications that it missed, read from the log.

`Backlog` reads the log after a restart, or when the backlog exceeds the window of the cursor. It also finds
the current messages of a subscription's topics. `Recent` is a cache of the newest notifications, shared by
all subscriptions and bounded in bytes; queues hold offsets only. `JournalWork` limits how many subscriptions
read the journal at the same time.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Sequence

from hpwsn.broker.lifetimes.message_expiry import Sorted, without
from hpwsn.broker.queueing.transmissions import Transmissions
from hpwsn.broker.subscriptions.audience import Audience
from hpwsn.broker.subscriptions.ranked_cursor import RankedCursor
from hpwsn.broker.subscriptions.subscription import Subscriber, Subscription
from hpwsn.errors import JournalUnavailable
from hpwsn.journal.journal import Journal
from hpwsn.journal.store.records import Stored
from hpwsn.matching.content.content_filters import ContentFilters
from hpwsn.notification import INTERNAL, Notification
from hpwsn.topics.tree.tree import TopicTree

log = logging.getLogger(__name__)

OVERHEAD = 512
"""Bytes of memory per notification in addition to its content."""
BATCH_BYTES = 4 * 2**20
"""Content after which no more notifications are added to a send."""
READERS = 8
"""Subscriptions that may read from the journal at the same time."""
MATCHED_AT_ONCE = 32
"""Notifications whose transmissions are counted before the event loop goes on."""
PRESENT = 10_000
"""Maximum number of current messages that are sent when a subscriber asks for the present state."""


class Backlog:
    """Reads the log for cursors; `head` is the newest offset that was matched for all subscriptions."""

    def __init__(
        self,
        journal: Journal,
        tree: TopicTree[Subscriber],
        content: ContentFilters,
        recent: Recent,
        audience: Audience,
        transmissions: Transmissions,
        head: Callable[[], int],
    ) -> None:
        self._audience = audience
        self._transmissions = transmissions
        self._journal = journal
        self._tree = tree
        self._content = content
        self._recent = recent
        self._head = head
        self._gathered: tuple[Sequence[int], Sequence[Notification]] = ((), ())
        self._public: tuple[Sequence[Notification], int] = ((), -1)
        """Notifications that all are for everybody, as of a version of the tree."""

    async def look_on(self, subscription: Subscription) -> None:
        """Read the next part of the log for notifications that this subscription missed."""
        # The topics are those of now, so do not read past `head`: later entries may have new topics.
        cursor, head, topics = subscription.cursor, self._head(), self._tree.keys(subscription.topics)
        scan = await self._journal.scan(cursor.seen, limit=cursor.window, topics=topics, head=head)
        wanted = []
        for stored in scan.entries:
            if self._wants(subscription, stored.notification):
                self._recent.put(stored.offset, (stored.notification,))
                wanted.append(stored.offset)
        if isinstance(cursor, RankedCursor):
            cursor.expect(await self._transmissions_of(subscription, scan.entries))
        cursor.refill(wanted, upto=scan.upto, head=self._head())
        if not cursor.counted:
            # A content filter makes the number unknown: too low is safe, too high would drop notifications.
            cursor.count(0 if subscription.content else await self._journal.count(cursor.seen, topics))

    async def _transmissions_of(
        self, subscription: Subscription, entries: Sequence[Stored]
    ) -> dict[int, tuple[float, int]]:
        """The times of entries, and how many other subscriptions and carriers have each, by their cursors."""
        found = {}
        for number, stored in enumerate(entries, 1):
            offset, notification = stored.offset, stored.notification
            others = self._transmissions.carried_before(offset)
            for each in self._audience.match_each((notification,))[0]:
                # A subscription does not have what was accepted before it was created.
                others += (
                    each is not subscription and each.created <= notification.time and each.cursor.has(offset)
                )
            found[offset] = notification.time, others
            if not number % MATCHED_AT_ONCE:
                await asyncio.sleep(0)
        return found

    def gather(self, offsets: Sequence[int]) -> Sequence[Notification]:
        """As many of the first as memory has and one send may carry.

        Consumers of the same topic ask one after another for the same ones, which then are the same object.
        """
        known, notifications = self._gathered
        if offsets == known:
            return notifications
        found: list[Notification] = []
        size = 0
        for notification in map(self._recent.get, offsets):
            if notification is None or size > BATCH_BYTES:
                break
            found.append(notification)
            size += len(notification.content)
        if found:
            self._gathered = offsets, found
        return found

    def present(self, subscription: Subscription) -> list[int]:
        """The offsets of its topics' current messages, up to the acknowledged offset."""
        upto = subscription.cursor.acknowledged
        nodes = self._tree.matching(subscription.topics)
        offsets = sorted(node.current for node in nodes if node.current is not None and node.current <= upto)
        if len(offsets) > PRESENT:
            log.warning(
                "subscription %s has %d topics; only the newest %d current messages are sent",
                subscription.id,
                len(offsets),
                PRESENT,
            )
        return offsets[-PRESENT:]

    def is_present(self, stored: Stored, subscription: Subscription) -> bool:
        """Whether a message is still the current message of its topic and matches the content filter."""
        topic = stored.notification.topic
        node = None if topic is None else self._tree.find(topic)
        # A newer message is delivered separately; the older one must not arrive after it.
        current = node is not None and node.current == stored.offset
        return current and self._wants(subscription, stored.notification)

    def withheld(self, notification: Notification) -> bool:
        """Whether subscribers must not get it: it, or its topic now, is internal."""
        topic = notification.topic
        return notification.target == INTERNAL or (topic is not None and self._tree.is_internal(topic))

    def concealed(self, offsets: Sequence[int], notifications: Sequence[Notification]) -> Sorted | None:
        """What must not be sent, its topic having become internal, and the rest; None if all may be sent.

        Subscriptions of the same topic send the same list one after another, so the last answer is kept.
        """
        tree = self._tree
        if not tree.has_internal or (self._public[0] is notifications and self._public[1] == tree.version):
            return None
        found = without(self.withheld, offsets, notifications)
        if found.unsent:
            return found
        self._public = notifications, tree.version
        return None

    def _wants(self, subscription: Subscription, notification: Notification) -> bool:
        if self._tree.has_internal and self.withheld(notification):
            return False
        if not subscription.content:
            return True
        return self._content.evaluation(notification.payload).holds(subscription.content)


class Recent:
    """A cache of notifications by offset; the oldest are evicted first.

    The newest notification stays even if it alone is above the limit, so that its subscribers share it.
    """

    __slots__ = ("_kept", "get", "limit", "size")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self._kept: OrderedDict[int, Notification] = OrderedDict()
        self.get = self._kept.get
        """The notification at an offset, or None."""

    def put(self, first: int, notifications: Iterable[Notification]) -> None:
        """Add notifications and evict the oldest."""
        kept, size = self._kept, self.size
        for offset, notification in enumerate(notifications, first):
            if offset not in kept:
                kept[offset] = notification
                size += len(notification.content) + OVERHEAD
        self.size = size
        least = 1 if self.limit else 0
        while self.size > self.limit and len(self._kept) > least:
            _, oldest = self._kept.popitem(last=False)
            self.size -= len(oldest.content) + OVERHEAD

    def __len__(self) -> int:
        return len(self._kept)


class JournalWork:
    """Runs coroutines that read the journal; `failed` is called for a subscription whose work failed."""

    def __init__(self, failed: Callable[[Subscription], None]) -> None:
        self._failed = failed
        self._turns = asyncio.Semaphore(READERS)
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, subscription: Subscription, work: Coroutine[None, None, None]) -> None:
        """Start the work; the subscription is busy until the work or its failure resets that."""
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
                log.exception("subscription %s: the backlog could not be read", subscription.id)
            subscription.progress.busy = False
            subscription.progress.last_error = str(error)
            self._failed(subscription)

    async def close(self) -> None:
        """Wait for the running work."""
        if self._tasks:
            await asyncio.wait(self._tasks)
