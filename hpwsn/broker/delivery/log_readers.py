"""Readers of the log: clients without a subscription, each with a cursor of its own that it brings along.

Owns how far a reader may look and what wakes a reader that waits. Readers at the end of the log get new
commits from memory, as entries that all of them share; an entry is encoded once. A reader that falls behind
searches the log, one page at a time, so that a slow reader costs no memory. A commit costs nothing where
nobody reads. Readers do not hold retention back.
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
from hpwsn.listeners import Listeners
from hpwsn.notification import Notification, Run
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


class LogEntry:
    """A notification at its offset, shared by all who read it now."""

    __slots__ = ("_encoded", "_encoding", "notification", "offset")

    def __init__(self, offset: int, notification: Notification) -> None:
        self.offset = offset
        self.notification = notification
        self._encoded: bytes | None = None
        self._encoding: asyncio.Future[bytes] | None = None

    async def encode_once(self, encode: Callable[[LogEntry], bytes]) -> bytes:
        """The result of the first call, in which all readers share; a large one is made in a thread."""
        if self._encoded is None:
            if len(self.notification.content) <= LOOP_BYTES:
                self._encoded = encode(self)
            else:
                if self._encoding is None:
                    self._encoding = asyncio.ensure_future(asyncio.to_thread(encode, self))
                self._encoded = await asyncio.shield(self._encoding)
        return self._encoded


@dataclass(frozen=True, slots=True)
class Page:
    """Some of what a reader wants, the offset up to which all has been looked at, and whether that is all."""

    entries: list[LogEntry] = field(default_factory=list)
    upto: int = 0
    complete: bool = False


class _Watch:
    """What was committed for a waiting reader since it looked last, as long as that is one page."""

    __slots__ = ("entries", "news", "overflow", "size")

    def __init__(self) -> None:
        self.news = asyncio.Event()
        self.clear()

    def clear(self) -> None:
        self.entries: list[LogEntry] = []
        self.size = 0
        self.overflow = False
        self.news.clear()

    def offer(self, entry: LogEntry) -> None:
        if len(self.entries) < FOLLOW_ENTRIES and self.size < FOLLOW_BYTES:
            self.entries.append(entry)
            self.size += len(entry.notification.content)
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
        self.waiting_changed: Listeners[Topic, bool] = Listeners("readers that wait")
        """Told of a topic for which somebody begins to wait, and when nobody does any more."""

    def check(self, topic: Topic) -> None:
        """Raise the fault for a topic that a fixed tree does not hold, or that has no subtree to name."""
        TopicExpression.of(topic, DIALECT_SIMPLE)
        if self._tree.fixed and topic not in self._tree:
            raise self._tree.unsupported(topic)

    def committed(self, first: int, runs: Sequence[Run]) -> None:
        """Hand new commits to whoever waits for their topics."""
        if not self._watches:
            return
        for run in runs:
            if run.topic is not None and run.target is None:
                watches = list(self._watching(run.topic))
                for entry in map(LogEntry, range(first, first + run.size), run if watches else ()):
                    for watch in watches:
                        watch.offer(entry)
            first += run.size

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
        page = found
        until = max(deadline, loop.time() + POLL_WORK)
        with self._watch(query.topic, waits=wait > 0) as watch:
            while len(found.entries) < limit and _size(found.entries) < POLL_BYTES and not self.closed:
                page = await self._next(query, page, watch, limit - len(found.entries), POLL_BYTES)
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
                page = await self._next(query, page, watch, FOLLOW_ENTRIES, FOLLOW_BYTES)
                if page.entries or loop.time() >= quiet_since + beat:
                    yield page
                    quiet_since = loop.time()

    async def _next(self, query: Query, before: Page, watch: _Watch, limit: int, room: int) -> Page:
        """The page after another: new commits from memory, or a search where these are not all."""
        overflow = watch.overflow
        # A reader may ask for what comes after an offset that the log has still to reach.
        new = [entry for entry in watch.entries if entry.offset > before.upto]
        watch.clear()
        if not before.complete or overflow or len(new) > limit:
            return await self.read(query, before.upto, limit, room)
        if not new:
            return Page(upto=before.upto, complete=True)
        return Page(await _selected(new, query), new[-1].offset, complete=True)

    async def read(self, query: Query, after: int, limit: int, room: int) -> Page:
        """One look at the log: the next entries on the topic that the predicate selects, perhaps none."""
        # What is committed and not yet processed may be on a topic that the tree has still to learn.
        head = max(self.head(), after)
        topics = self._tree.keys((TopicExpression.of(query.topic, DIALECT_SIMPLE),))
        if after >= head or not topics:
            return Page(upto=head, complete=True)
        batch = limit if query.wanted is None else max(limit, SEARCHED)
        scan = await self._journal.scan(after, limit=batch, topics=topics, room=room)
        entries = [LogEntry(each.offset, each.notification) for each in scan.entries if each.offset <= head]
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
            self.waiting_changed(topic, not before)

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


async def _selected(entries: list[LogEntry], query: Query) -> list[LogEntry]:
    if query.wanted is None:
        return entries
    return await off_loop(_size(entries), _select, entries, query.wanted)


def _select(entries: Sequence[LogEntry], wanted: Callable[[etree._Element], bool]) -> list[LogEntry]:
    return [entry for entry in entries if _holds(entry.notification.payload, wanted)]


def _holds(payload: bytes, wanted: Callable[[etree._Element], bool]) -> bool:
    try:
        return wanted(parse_xml(payload, STORED_LIMITS))
    except SoapFault:
        return False


def _size(entries: Sequence[LogEntry]) -> int:
    return sum(len(entry.notification.content) for entry in entries)
