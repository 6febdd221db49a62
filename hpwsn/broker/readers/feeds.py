"""Feeds: live followers by topics and content filter, so that equal ones share every step but the write.

A follower is a long connection that has got everything up to the end of the log. Followers with the same
topics and the same filter are members of one feed; the feeds of the same topics share one content group,
which finds the feeds that want a payload. The module matches; it neither encodes nor writes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from hpwsn.broker.readers.log_pages import Encode, Stretch
from hpwsn.broker.readers.pace import NEVER, SECOND, Pace
from hpwsn.matching.content.content_filters import CompiledFilter, ContentFilters, Evaluation
from hpwsn.matching.content.content_group import ContentGroup
from hpwsn.matching.content.content_index import Engines
from hpwsn_client.wsn.operations.filters import ContentFilter
from hpwsn_client.wsn.topics.topic_expressions import Topic

log = logging.getLogger(__name__)

Topics = tuple[Topic, ...]


class Form(Protocol):
    """How connections of one kind carry events; they share the bytes. Forms are compared by identity."""

    encode: Encode

    def frame(self, offset: int, data: bytes) -> bytes:
        """One encoded event as the client gets it."""

    def skipped(self, count: int, upto: int) -> bytes:
        """The frame that tells the client how many events it does not get, up to which offset."""

    def block(self, frames: Sequence[bytes]) -> bytes:
        """Frames joined to the bytes of one write."""


class Connection(Protocol):
    """A long connection, as the broker uses it. A closed one raises ConnectionError."""

    form: Form
    pace: Pace | None
    """How many events it takes in a second; None for all."""

    def write(self, block: bytes) -> bool:
        """Write a block; False, with nothing written, if the client has not taken enough of earlier ones."""

    def keep_alive(self) -> bool:
        """Tell the client that the connection is alive; False as above."""

    async def send(self, stretches: Sequence[Stretch]) -> None:
        """Encode and write entries, at the client's speed; TimeoutError if the client takes nothing."""

    async def drained(self) -> None:
        """Wait until the client has taken enough; TimeoutError if it takes nothing."""


class Follower:
    """One long connection: what it wants, and how far it has got.

    `wrote` is the loop's time of the last write. A follower that is not live reads the log by itself.
    """

    __slots__ = ("connection", "content", "feed", "handed", "internal", "news", "topics", "upto", "wrote")

    def __init__(
        self, topics: Topics, content: ContentFilter | None, connection: Connection, internal: bool
    ) -> None:
        self.topics = topics
        self.internal = internal
        """Whether it may get what is internal, too."""
        self.content = content
        self.connection = connection
        self.feed: Feed | None = None
        self.upto = 0
        """Everything up to this offset is written; for a live follower, when it became live, or skipped."""
        self.handed: Stretch | None = None
        """An entry that is too large for the live path, to be filtered, encoded and sent first."""
        self.wrote = 0.0
        self.news = asyncio.Event()


def pace_of(follower: Follower) -> Pace:
    """The pace of a paced follower."""
    pace = follower.connection.pace
    assert pace is not None
    return pace


class Feed:
    """The live followers with the same topics and filter; `offsets` are matched and not yet written.

    While every pace is full, events are skipped for all paced followers at once: `missed` is their number.
    """

    __slots__ = (
        "after",
        "compiled",
        "content",
        "full_since",
        "members",
        "missed",
        "offsets",
        "paced",
        "upto",
    )

    def __init__(self, content: ContentFilter | None, compiled: CompiledFilter | None) -> None:
        self.content = content
        self.compiled = compiled
        self.members: dict[Form, dict[Follower, None]] = {}
        self.paced: dict[Follower, None] = {}
        """The followers with a pace, which may each get other events."""
        self.offsets: list[int] = []
        self.missed = 0
        """Events that were skipped and that the paces do not know."""
        self.upto = 0
        """The offset of the last one of them."""
        self.full_since = NEVER
        """All paces are full until SECOND after this time."""
        self.after = 0
        """Only events after this offset are for all paced followers."""

    def join(self, follower: Follower) -> None:
        """Add a follower with a pace."""
        self.settle()
        self.paced[follower] = None
        self.full_since = NEVER
        self.after = max(self.after, follower.upto)

    def is_full(self, first: int, now: float) -> bool:
        """Whether no paced follower may get an event at an offset, or at a later one, at present."""
        return self.full_since > now - SECOND and first > self.after

    def settle(self) -> None:
        """Tell the paces what they skipped; they may be changed afterwards."""
        if self.missed:
            missed, self.missed = self.missed, 0
            for follower in self.paced:
                follower.upto = max(follower.upto, self.upto)
                pace_of(follower).skip(missed, self.upto)

    def look_at_paces(self) -> None:
        """Note since when all paces are full, after they were changed."""
        self.full_since = min([pace_of(follower).full_since for follower in self.paced], default=NEVER)

    @property
    def followers(self) -> list[Follower]:
        """All members."""
        return [*(follower for members in self.members.values() for follower in members), *self.paced]


class FeedGroup:
    """The feeds of the same topics, of followers that may get what is internal, or of the others."""

    __slots__ = ("content", "feeds", "internal", "paced_only", "queued", "topics")

    def __init__(self, topics: Topics, internal: bool, engines: Engines) -> None:
        self.topics = topics
        self.internal = internal
        self.feeds: dict[ContentFilter | None, Feed] = {}
        self.content: ContentGroup[Feed] = ContentGroup(engines)
        self.queued = 0
        """The offset of the last event that was queued for these feeds."""
        self.paced_only: Feed | None = None
        """The only feed, if it has no filter and only followers with a pace."""

    def look_at_feeds(self) -> None:
        """Set `paced_only` after a change."""
        feed = self.feeds.get(None) if len(self.feeds) == 1 else None
        self.paced_only = None if feed is None or feed.members else feed


class Feeds:
    """All feeds by topic."""

    def __init__(self, content: ContentFilters, engines_for: Callable[[Topics], Engines]) -> None:
        self._content = content
        self._engines_for = engines_for
        self._groups: dict[tuple[Topics, bool], FeedGroup] = {}
        self._by_topic: dict[Topic, dict[FeedGroup, None]] = {}
        self.known: dict[tuple[object, bool], tuple[FeedGroup, ...]] = {}
        """What callers remember of `groups`, by a key of theirs; a change of groups empties it."""

    def __bool__(self) -> bool:
        return bool(self._groups)

    def __iter__(self) -> Iterator[Follower]:
        feeds = (feed for group in self._groups.values() for feed in group.feeds.values())
        return iter([follower for feed in feeds for follower in feed.followers])

    def add(self, follower: Follower) -> None:
        """Make a follower live; its filter must be acquired."""
        key = follower.topics, follower.internal
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = FeedGroup(*key, self._engines_for(follower.topics))
            self.known.clear()
            for topic in group.topics:
                self._by_topic.setdefault(topic, {})[group] = None
        feed = group.feeds.get(follower.content)
        if feed is None:
            feed = group.feeds[follower.content] = self._open(group, follower.content)
        if follower.connection.pace is None:
            feed.members.setdefault(follower.connection.form, {})[follower] = None
        else:
            feed.join(follower)
        follower.feed = feed
        group.look_at_feeds()

    def _open(self, group: FeedGroup, content: ContentFilter | None) -> Feed:
        if content is None:
            return Feed(None, None)
        compiled = self._content.find((content,))
        if compiled is None:
            raise LookupError(f"the filter {content.expression!r} was not acquired")
        feed = Feed(content, compiled)
        group.content.add(feed, compiled)
        return feed

    def discard(self, follower: Follower) -> None:
        """Remove a follower, if it is live."""
        feed, follower.feed = follower.feed, None
        if feed is None:
            return
        form = follower.connection.form
        if follower in feed.paced:
            feed.settle()
            del feed.paced[follower]
        else:
            del feed.members[form][follower]
            if not feed.members[form]:
                del feed.members[form]
        group = self._groups[follower.topics, follower.internal]
        if not feed.members and not feed.paced:
            self._close(group, feed)
        group.look_at_feeds()

    def _close(self, group: FeedGroup, feed: Feed) -> None:
        del group.feeds[feed.content]
        if feed.compiled is not None:
            group.content.discard(feed, feed.compiled)
        if group.feeds:
            return
        del self._groups[group.topics, group.internal]
        self.known.clear()
        for topic in group.topics:
            del self._by_topic[topic][group]
            if not self._by_topic[topic]:
                del self._by_topic[topic]

    def groups(self, places: Iterable[Topic], internal: bool) -> tuple[FeedGroup, ...]:
        """The groups that follow a topic, given with its ancestors, and may get it; each once."""
        found = [self._by_topic[place] for place in places if place in self._by_topic]
        return tuple({group: None for groups in found for group in groups if group.internal >= internal})

    def match(self, groups: Iterable[FeedGroup], stretches: Sequence[Stretch], news: set[Feed]) -> list[bool]:
        """Add the offsets of entries to the feeds that want them, and these to `news`; which are wanted."""
        offsets = [offset for each in stretches for offset in each.offsets]
        wanted = [False] * len(offsets)
        evaluations: list[Evaluation] = []
        for group in groups:
            everything = group.feeds.get(None)
            if everything is not None:
                everything.offsets += offsets
                news.add(everything)
                wanted = [True] * len(offsets)
            if group.content:
                evaluations = evaluations or [
                    self._content.evaluation(payload) for each in stretches for payload in each.payloads
                ]
                for index, feeds in enumerate(_matched(group.content, evaluations)):
                    if feeds:
                        wanted[index] = True
                        offset = offsets[index]
                        news.update(feeds)
                        for feed in feeds:
                            feed.offsets.append(offset)
        return wanted


def _matched(group: ContentGroup[Feed], evaluations: Sequence[Evaluation]) -> list[list[Feed]]:
    """The feeds for each payload; none for a payload that cannot be evaluated."""
    try:
        return group.match(evaluations)
    except Exception:
        if len(evaluations) > 1:
            return [found for each in evaluations for found in _matched(group, (each,))]
        log.exception("an event could not be matched with the filters of followers")
        return [[]]
