"""Readers of the log: clients without a subscription, each with a cursor of its own that it brings along.

Owns how far a reader may look and what wakes a reader that waits. A poll that waits gets new commits from
memory. A follower, which is a long connection, reads the log until it has everything, and is then live: live
delivery writes to it. When its client does not keep up, it reads the log again, one page at a time, so that a
slow client costs no memory. A commit costs nothing where nobody reads. Readers do not hold retention back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from hpwsn.broker.readers.feeds import Connection, FeedGroup, Follower
from hpwsn.broker.readers.live_delivery import LiveDelivery
from hpwsn.broker.readers.log_pages import Page, Stretch, off_loop
from hpwsn.broker.subscriptions.subscription import Subscriber
from hpwsn.journal.journal import Journal
from hpwsn.journal.store.records import Backlog
from hpwsn.listeners import Listeners
from hpwsn.matching.content.content_filters import Condition, ContentFilters, compile_condition
from hpwsn.notification import INTERNAL, Run
from hpwsn.topics.tree.internal_topics import internal_fault
from hpwsn.topics.tree.tree import TopicTree
from hpwsn_client.wsn.operations.filters import ContentFilter
from hpwsn_client.wsn.soap.names import DIALECT_SIMPLE
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression

POLL_BYTES = 4 << 20
"""Size of the notifications in one answer, beyond which it ends."""
FOLLOW_BYTES = 256 << 10
"""The same for one page of a follower, which stays in memory while a slow client takes it."""
FOLLOW_ENTRIES = 1000
"""Entries in one page of a follower."""
SEARCHED = 1000
"""Entries that a filter looks at in one go, however few are asked for."""
POLL_WORK = 2.0
"""Seconds that a poll looks for what its filter selects; its answer says how far it came."""

KNOWN_TOPICS = 1024
"""Topics whose live followers are remembered."""


@dataclass(frozen=True, slots=True)
class Query:
    """What a reader wants: topics, each with all below it, what a filter selects, and up to which offset.

    A filter that is not valid raises its fault. With `internal` the reader may read internal topics too;
    others get what is public below a topic.
    """

    topics: tuple[Topic, ...]
    content: ContentFilter | None = None
    upto: int | None = None
    internal: bool = False
    wanted: Condition | None = field(init=False, compare=False)

    def __post_init__(self) -> None:
        wanted = None if self.content is None else compile_condition(self.content)
        object.__setattr__(self, "wanted", wanted)

    @property
    def expressions(self) -> tuple[TopicExpression, ...]:
        """The topics as expressions of the simple dialect."""
        return tuple(TopicExpression.of(topic, DIALECT_SIMPLE) for topic in self.topics)

    def bound(self, offset: int) -> int:
        """The offset, or the last one of the query if that is less."""
        return offset if self.upto is None else min(offset, self.upto)


class _Watch:
    """What was committed for a waiting reader since it looked last, as long as that is one page."""

    __slots__ = ("count", "internal", "news", "overflow", "size", "stretches")

    def __init__(self, internal: bool) -> None:
        self.internal = internal
        self.news = asyncio.Event()
        self.clear()

    def clear(self) -> None:
        self.stretches: list[Stretch] = []
        self.count = self.size = 0
        self.overflow = False
        self.news.clear()

    def offer(self, stretch: Stretch) -> None:
        if self.count + len(stretch.offsets) <= FOLLOW_ENTRIES and self.size < FOLLOW_BYTES:
            self.stretches.append(stretch)
            self.count += len(stretch.offsets)
            self.size += stretch.run.content_size
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
        live: LiveDelivery,
        content: ContentFilters,
        subtree: bool = True,
    ) -> None:
        self._journal = journal
        self._tree = tree
        self._live = live
        self._known = live.known
        self._content = content
        self._subtree = subtree
        self._watches: dict[Topic, set[_Watch]] = {}
        self._waiting: dict[Topic, int] = {}
        self._large: WeakValueDictionary[int, Stretch] = WeakValueDictionary()
        """Large entries that a reader has at present, so that slow readers share the bytes."""
        self.head = head
        self.closed = False
        self.waiting_changed: Listeners[Topic, bool] = Listeners("readers that wait")
        """Told of a topic for which somebody begins to wait, and when nobody does any more."""

    def check(self, topic: Topic, internal: bool = False) -> None:
        """Raise the fault for a topic that a fixed tree does not hold, or that has no subtree to name.

        Likewise for an internal topic, unless the reader may read these.
        """
        TopicExpression.of(topic, DIALECT_SIMPLE)
        if self._tree.fixed and topic not in self._tree:
            raise self._tree.unsupported(topic)
        if not internal and self._tree.is_internal(topic):
            raise internal_fault(str(topic))

    def committed(self, first: int, runs: Sequence[Run]) -> None:
        """Hand new commits to live followers, and to whoever waits for their topics."""
        if not self._watches and not self._live:
            return
        for run in runs:
            if run.topic is not None and (run.target is None or run.target == INTERNAL):
                internal = run.target is not None or self._tree.is_internal(run.topic)
                if groups := self._groups(run.topic, internal):
                    self._live.committed(groups, first, run)
                if self._watches:
                    self._offer(self._places(run.topic), first, run, internal)
            first += run.size

    def _groups(self, topic: Topic, internal: bool) -> tuple[FeedGroup, ...]:
        """The live followers of a topic that may get an event; remembered for the topic's node."""
        node, known = self._tree.find(topic), self._known
        found = known.get((node, internal)) if node is not None else None
        if found is None:
            found = self._live.groups(self._places(topic), internal)
            if len(known) >= KNOWN_TOPICS:
                known.clear()
            if node is not None:
                known[node, internal] = found
        return found

    def _places(self, topic: Topic) -> list[Topic]:
        """A topic and, where it selects all below it, those above."""
        node = self._tree.find(topic)
        return [topic] if node is None or not self._subtree else [topic, *node.ancestors]

    def _offer(self, places: Sequence[Topic], first: int, run: Run, internal: bool) -> None:
        watches = {
            watch for place in places for watch in self._watches.get(place, ()) if watch.internal >= internal
        }
        if watches:
            stretch = Stretch(range(first, first + run.size), run)
            for watch in watches:
                watch.offer(stretch)

    async def poll(self, query: Query, after: int, limit: int, wait: float, room: int = POLL_BYTES) -> Page:
        """The next entries at once, or the first to come within so many seconds."""
        loop = asyncio.get_running_loop()
        deadline, found = loop.time() + wait, Page(upto=after)
        page = found
        until = max(deadline, loop.time() + POLL_WORK)
        with self._waits(query.topics if wait > 0 else ()), self._watch(query) as watch:
            while found.count < limit and found.size < room and not self.closed:
                page = await self._next(query, page, watch, limit - found.count, room)
                found = Page(found.stretches + page.stretches, page.upto)
                if query.upto is not None and found.upto >= query.upto:
                    break
                if not page.complete and loop.time() < until:
                    continue
                if found.stretches or not await _comes(watch.news, deadline - loop.time()):
                    break
        return found

    async def follow(self, query: Query, after: int, beat: float, connection: Connection) -> None:
        """Write what comes after an offset to a connection until the readers are closed.

        After each `beat` seconds without anything written, the connection is kept alive.
        """
        follower = Follower(query.topics, query.content, connection, query.internal)
        follower.wrote = asyncio.get_running_loop().time()
        filters = () if query.content is None else (query.content,)
        self._content.acquire(filters)
        try:
            with self._waits(query.topics):
                page = Page(upto=after)
                while not self.closed:
                    await self._catch_up(query, page, beat, follower)
                    await self._stay_live(follower, beat)
                    page = await self._leave_live(query, follower)
        finally:
            self._live.leave(follower)
            self._content.release(filters)

    async def _catch_up(self, query: Query, page: Page, beat: float, follower: Follower) -> None:
        """Send what the log has, until the follower has everything; it is live at the end."""
        connection, loop = follower.connection, asyncio.get_running_loop()
        with self._watch(query) as watch:
            while not self.closed:
                page = await self._next(query, page, watch, FOLLOW_ENTRIES, FOLLOW_BYTES)
                if page.stretches:
                    await connection.send(page.stretches)
                    follower.wrote = loop.time()
                elif loop.time() >= follower.wrote + beat and connection.keep_alive():
                    follower.wrote = loop.time()
                if page.complete and not watch.news.is_set():
                    # Nothing is awaited between this look at the watch and the entry into live delivery.
                    self._live.enter(follower, page.upto)
                    return

    async def _stay_live(self, follower: Follower, beat: float) -> None:
        """Keep the connection alive, until the follower is not live or the readers are closed."""
        loop = asyncio.get_running_loop()
        while follower.feed is not None and not self.closed:
            if await _comes(follower.news, follower.wrote + beat - loop.time()):
                return
            if loop.time() >= follower.wrote + beat:
                if not follower.connection.keep_alive():
                    return
                follower.wrote = loop.time()

    async def _leave_live(self, query: Query, follower: Follower) -> Page:
        """Wait for the client, and send what live delivery has handed over; from where to read the log."""
        connection, handed = follower.connection, follower.handed
        self._live.leave(follower)
        if self.closed:
            return Page(upto=follower.upto)
        if handed is not None:
            handed = self._large.setdefault(handed.offsets[0], handed)
        await connection.drained()
        if handed is None:
            return Page(upto=follower.upto)
        if found := await _selected(Page([handed]), query):
            await connection.send(found)
            follower.wrote = asyncio.get_running_loop().time()
        return Page(upto=handed.offsets[-1])

    async def _next(self, query: Query, before: Page, watch: _Watch, limit: int, room: int) -> Page:
        """The page after another: new commits from memory, or a search where these are not all."""
        overflow = watch.overflow
        # A reader may ask for what comes after an offset that the log has still to reach.
        new = Page([each for one in watch.stretches for each in one.between(before.upto, query.upto)])
        watch.clear()
        if not before.complete or overflow or new.count > limit:
            return await self.read(query, before.upto, limit, room)
        if not new.stretches:
            return Page(upto=before.upto, complete=True)
        return Page(await _selected(new, query), new.stretches[-1].offsets[-1], complete=True)

    async def read(self, query: Query, after: int, limit: int, room: int) -> Page:
        """One look at the log: the next entries on the topics that the predicate selects, perhaps none."""
        # What is committed and not yet processed may be on a topic that the tree has still to learn.
        head = max(query.bound(self.head()), after)
        topics = self._keys(query)
        if after >= head or not topics:
            return Page(upto=head, complete=True)
        batch = limit if query.wanted is None else max(limit, SEARCHED)
        scan = await self._journal.scan_runs(
            after, limit=batch, topics=topics, head=head, room=room, internal=query.internal
        )
        looked = Page([self._stretch(first, run) for first, run in scan.runs], scan.upto)
        found = Page(await _selected(looked, query), scan.upto)
        if found.count > limit:
            found = found.first(limit)
        return Page(found.stretches, found.upto, complete=found.upto >= head)

    def _stretch(self, first: int, run: Run) -> Stretch:
        found = Stretch(range(first, first + run.size), run)
        return found if not run.large else self._large.setdefault(first, found)

    def _keys(self, query: Query) -> Collection[str]:
        found = [self._tree.keys((expression,), query.internal) or () for expression in query.expressions]
        return found[0] if len(found) == 1 else set().union(*found)

    async def backlog(self, query: Query, after: int, limit: int, wait: float) -> Backlog:
        """How many entries the query has after an offset, as soon as it has any, or after so many seconds."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait
        with self._waits(query.topics if wait > 0 else ()), self._watch(query) as watch:
            while True:
                watch.clear()
                head, topics = query.bound(self.head()), self._keys(query)
                found = Backlog(0, max(head, after))
                if topics and after < head:
                    found = await self._journal.backlog(after, limit, topics, head, query.internal)
                if found.entries or self.closed or not await _comes(watch.news, deadline - loop.time()):
                    return found

    async def oldest(self) -> int:
        """The first offset from which on retention has removed nothing."""
        return await self._journal.oldest()

    async def since(self, time: float) -> int:
        """The greatest offset before which every entry was accepted before a time."""
        return min(await self._journal.since(time), self.head())

    def close(self) -> None:
        """End every wait; streams end and polls answer with what they have."""
        self.closed = True
        self._live.close()
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
    def _waits(self, topics: Sequence[Topic]) -> Iterator[None]:
        """Count one more reader that waits for topics."""
        for topic in topics:
            self._count(topic, 1)
        try:
            yield
        finally:
            for topic in topics:
                self._count(topic, -1)

    @contextmanager
    def _watch(self, query: Query) -> Iterator[_Watch]:
        topics, watch = query.topics, _Watch(query.internal)
        for topic in topics:
            self._watches.setdefault(topic, set()).add(watch)
        try:
            yield watch
        finally:
            for topic in topics:
                self._watches[topic].discard(watch)
                if not self._watches[topic]:
                    del self._watches[topic]


async def _comes(news: asyncio.Event, seconds: float) -> bool:
    if seconds <= 0:
        return False
    try:
        async with asyncio.timeout(seconds):
            return await news.wait()
    except TimeoutError:
        return False


async def _selected(page: Page, query: Query) -> list[Stretch]:
    if query.wanted is None:
        return page.stretches
    return await off_loop(page.size, _select, page.stretches, query.wanted)


def _select(stretches: Sequence[Stretch], wanted: Callable[[bytes], bool]) -> list[Stretch]:
    found = (each.select(list(map(wanted, each.payloads))) for each in stretches)
    return [each for each in found if each is not None]
