"""Readers of the log: clients without a subscription, each with a cursor of its own that it brings along.

Owns how far a reader may look and what wakes one that waits. A reader holds one page at most, so that a slow
one costs no memory, and one behind retention goes on with what is left. A commit costs nothing where nobody
reads, else a look-up for its topic and those above it: readers at the end of the log are told the offsets,
all others search. Readers do not hold retention back.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

from lxml import etree

from hpwsn.broker.subscriptions.subscription import Subscriber
from hpwsn.journal.journal import Journal
from hpwsn.journal.store.records import Stored
from hpwsn.notification import Notification
from hpwsn.topics.tree.tree import TopicTree
from hpwsn_client.wsn.soap.names import DIALECT_SIMPLE
from hpwsn_client.wsn.soap.soap_faults import SoapFault
from hpwsn_client.wsn.soap.xml import STORED_LIMITS, parse_xml
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression

P = ParamSpec("P")
T = TypeVar("T")

POLL_BYTES = 4 << 20
"""Size of the notifications in one answer, beyond which it ends."""
FOLLOW_BYTES = 256 << 10
"""The same for one page of a stream, which stays in memory while a slow client takes it."""
FOLLOW_ENTRIES = 100
SEARCHED = 1000
"""Entries that a filter looks at in one go, however few are asked for."""
POLL_WORK = 2.0
"""Seconds that a poll looks for what its filter selects; its answer says how far it came."""
LOOP_BYTES = 64 << 10
"""More than this is worked on in a thread, so that the loop goes on."""


@dataclass(frozen=True, slots=True)
class Query:
    """What a reader wants: a topic with all below it, and of that what a predicate selects."""

    topic: Topic
    wanted: Callable[[etree._Element], bool] | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Some of what a reader wants, the offset up to which all has been looked at, and whether that is all."""

    entries: list[Stored] = field(default_factory=list)
    upto: int = 0
    complete: bool = False


class _Watch:
    """What was committed for a waiting reader since it looked last, as long as that is little."""

    __slots__ = ("news", "offsets", "overflow")

    def __init__(self) -> None:
        self.news = asyncio.Event()
        self.clear()

    def clear(self) -> None:
        self.offsets: list[int] = []
        self.overflow = False
        self.news.clear()

    def offer(self, offset: int) -> None:
        if len(self.offsets) < FOLLOW_ENTRIES:
            self.offsets.append(offset)
        else:
            self.overflow = True
        self.news.set()


class Readers:
    """Reads for whoever asks, and wakes those that wait; `head` tells how far the log is processed."""

    def __init__(
        self,
        journal: Journal,
        tree: TopicTree[Subscriber],
        head: Callable[[], int],
        *,
        subtree: bool = True,
    ) -> None:
        self._journal = journal
        self._tree = tree
        self._subtree = subtree
        self._watches: dict[Topic, set[_Watch]] = {}
        self._waiting: dict[Topic, int] = {}
        self.head = head
        self.closed = False
        self.on_waiting: Callable[[Topic, bool], None] = lambda topic, waiting: None
        """Told of a topic for which somebody begins to wait, and when nobody does any more."""

    def check(self, topic: Topic) -> None:
        """Raise the fault for a topic that a fixed tree does not hold, or that has no subtree to name."""
        TopicExpression.of(topic, DIALECT_SIMPLE)
        if self._tree.fixed and topic not in self._tree:
            raise self._tree.unsupported(topic)

    def committed(self, first: int, notifications: Sequence[Notification]) -> None:
        """Wake whoever waits for one of these."""
        if not self._watches:
            return
        for offset, notification in enumerate(notifications, first):
            if notification.topic is not None and notification.target is None:
                for watch in self._watching(notification.topic):
                    watch.offer(offset)

    def _watching(self, topic: Topic) -> Iterator[_Watch]:
        yield from self._watches.get(topic, ())
        node = self._tree.find(topic)
        if node is not None and self._subtree:
            for place in node.ancestors:
                yield from self._watches.get(place, ())

    async def poll(self, query: Query, after: int, limit: int, wait: float) -> Page:
        """The next entries at once, or the first to come within so many seconds."""
        loop = asyncio.get_running_loop()
        deadline, found = loop.time() + wait, Page(upto=after)
        until = max(deadline, loop.time() + POLL_WORK)
        with self._watch(query.topic, waits=wait > 0) as watch:
            while len(found.entries) < limit and _size(found.entries) < POLL_BYTES and not self.closed:
                watch.clear()
                page = await self.read(query, found.upto, limit - len(found.entries), POLL_BYTES)
                found = Page(found.entries + page.entries, page.upto)
                if not page.complete and loop.time() < until:
                    continue
                if found.entries or not await _comes(watch.news, deadline - loop.time()):
                    break
        return found

    async def follow(self, query: Query, after: int, beat: float) -> AsyncGenerator[Page, None]:
        """Pages as they come, and an empty one after each `beat` seconds without any."""
        loop = asyncio.get_running_loop()
        quiet_since, page = loop.time(), Page(upto=after)
        with self._watch(query.topic) as watch:
            while not self.closed:
                if page.complete and not watch.news.is_set():
                    await _comes(watch.news, quiet_since + beat - loop.time())
                page = await self._next(query, page, watch)
                if page.entries or loop.time() >= quiet_since + beat:
                    yield page
                    quiet_since = loop.time()

    async def _next(self, query: Query, before: Page, watch: _Watch) -> Page:
        """The page after another: what the watch was told, or what a search finds where that is not all."""
        told, overflow = watch.offsets, watch.overflow
        if before.complete and not told:
            return Page(upto=before.upto, complete=True)
        watch.clear()
        if not before.complete or overflow:
            return await self.read(query, before.upto, FOLLOW_ENTRIES, FOLLOW_BYTES)
        found = await self._journal.read(told, room=FOLLOW_BYTES)
        whole = len(found) == len(told)
        upto = told[-1] if whole else found[-1].offset if found else before.upto
        return Page(await _selected(found, query), upto, complete=whole)

    async def read(self, query: Query, after: int, limit: int, room: int) -> Page:
        """One look at the log: the next entries on the topic that the predicate selects, perhaps none."""
        # What is committed and not yet processed may be on a topic that the tree has still to learn.
        head = max(self.head(), after)
        topics = self._tree.keys((TopicExpression.of(query.topic, DIALECT_SIMPLE),))
        if after >= head or not topics:
            return Page(upto=head, complete=True)
        batch = limit if query.wanted is None else max(limit, SEARCHED)
        scan = await self._journal.scan(after, limit=batch, topics=topics, room=room)
        entries = [stored for stored in scan.entries if stored.offset <= head]
        found = await _selected(entries, query)
        upto = found[limit - 1].offset if len(found) > limit else min(scan.upto, head)
        return Page(found[:limit], upto, complete=upto >= head)

    async def count(self, topic: Topic, after: int) -> int:
        """How many entries on the topic, and below it, lie after an offset."""
        topics = self._tree.keys((TopicExpression.of(topic, DIALECT_SIMPLE),))
        return await self._journal.count(after, topics) if topics else 0

    def close(self) -> None:
        """End every wait; streams end and polls answer with what they have."""
        self.closed = True
        for watching in self._watches.values():
            for watch in watching:
                watch.news.set()

    def waited_for(self) -> list[Topic]:
        """The topics for which somebody waits."""
        return list(self._waiting)

    def _count(self, topic: Topic, change: int) -> None:
        before = self._waiting.get(topic, 0)
        self._waiting[topic] = before + change
        if not before + change:
            del self._waiting[topic]
        if not before or not before + change:
            self.on_waiting(topic, not before)

    @contextmanager
    def _watch(self, topic: Topic, waits: bool = True) -> Iterator[_Watch]:
        watch = _Watch()
        self._watches.setdefault(topic, set()).add(watch)
        if waits:
            self._count(topic, 1)
        try:
            yield watch
        finally:
            if waits:
                self._count(topic, -1)
            self._watches[topic].discard(watch)
            if not self._watches[topic]:
                del self._watches[topic]


async def off_loop(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do the work here, or in a thread where the data is large."""
    if size <= LOOP_BYTES:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)


async def _comes(news: asyncio.Event, seconds: float) -> bool:
    if seconds <= 0:
        return False
    try:
        async with asyncio.timeout(seconds):
            return await news.wait()
    except TimeoutError:
        return False


async def _selected(entries: list[Stored], query: Query) -> list[Stored]:
    if query.wanted is None:
        return entries
    return await off_loop(_size(entries), _select, entries, query.wanted)


def _select(entries: Sequence[Stored], wanted: Callable[[etree._Element], bool]) -> list[Stored]:
    return [stored for stored in entries if _holds(stored.notification.payload, wanted)]


def _holds(payload: bytes, wanted: Callable[[etree._Element], bool]) -> bool:
    try:
        return wanted(parse_xml(payload, STORED_LIMITS))
    except SoapFault:
        return False


def _size(entries: Sequence[Stored]) -> int:
    return sum(len(stored.notification.content) for stored in entries)
