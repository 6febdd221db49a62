"""Delivery of new commits to live followers: matched, encoded and joined once, one write per connection.

Commits wait in a queue until the next flush, which the next turn of the event loop makes. Each flush is
followed by a pause PAUSES times as long, at most GATHER: an idle node delivers at once, and a busy node
gathers more events for each write. A follower whose client does not keep up leaves, and reads the log.
Events that only followers with full paces would get are counted and not queued.
"""

from __future__ import annotations

import asyncio
import logging
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from operator import itemgetter

from hpwsn.broker.readers.encoded_entries import EncodedEntries, select_all
from hpwsn.broker.readers.feeds import Feed, FeedGroup, Feeds, Follower, pace_of
from hpwsn.broker.readers.log_pages import LOOP_BYTES, Stretch
from hpwsn.broker.readers.pace import TELL_AFTER
from hpwsn.notification import Run
from hpwsn_client.wsn.topics.topic_expressions import Topic

log = logging.getLogger(__name__)

PAUSES = 3
"""The pause after a flush, as a multiple of its length."""
GATHER = 0.006
"""Maximum seconds of a pause."""
FLUSH_BYTES = 256 << 10
"""Contents that one flush takes from the queue."""
QUEUED_BYTES = 4 << 20
"""With more contents in the queue, a commit waits for a flush, so that publishers wait too."""


class LiveDelivery:
    """The queue of new commits, and the flushes. Used by one event loop."""

    def __init__(self, feeds: Feeds) -> None:
        self._feeds = feeds
        self._queue: deque[tuple[tuple[FeedGroup, ...], Stretch]] = deque()
        self._queued = 0
        self._done = 0
        self._time: Callable[[], float] = time.monotonic
        """The loop's time, once a follower is live."""
        self._due: asyncio.Handle | None = None
        self._pause_until = 0.0

    def __bool__(self) -> bool:
        """Whether there are live followers."""
        return bool(self._feeds)

    def enter(self, follower: Follower, upto: int) -> None:
        """Make a follower live that has got everything up to an offset, and everything committed so far."""
        self._time = asyncio.get_running_loop().time
        follower.upto, follower.handed = upto, None
        follower.news.clear()
        self._feeds.add(follower)
        self._tell_later(follower)

    def leave(self, follower: Follower) -> None:
        """Write nothing more to a follower, and note how far it has got, if it is live."""
        if follower.feed is not None:
            follower.upto = max(follower.upto, self._done)
            self._feeds.discard(follower)

    def close(self) -> None:
        """Wake every live follower, and write nothing more."""
        if self._due is not None:
            self._due.cancel()
        self._queue.clear()
        for follower in self._feeds:
            follower.news.set()

    @property
    def known(self) -> dict[tuple[object, bool], tuple[FeedGroup, ...]]:
        """See Feeds.known."""
        return self._feeds.known

    def groups(self, places: Iterable[Topic], internal: bool) -> tuple[FeedGroup, ...]:
        """See Feeds.groups."""
        return self._feeds.groups(places, internal)

    def committed(self, groups: tuple[FeedGroup, ...], first: int, run: Run) -> None:
        """Queue a run for groups, or only count it where no follower may get any of it at present."""
        last = first + run.size - 1
        waiting = groups
        for group in groups:
            feed = group.paced_only
            # Followers get what is queued for them before they skip more.
            if feed is None or group.queued > self._done or not feed.is_full(first, self._time()):
                group.queued = last
                continue
            if feed.missed:
                feed.missed += run.size
                feed.upto = last
            else:
                self._miss(feed, run.size, last)
            waiting = tuple(each for each in waiting if each is not group)
        if waiting:
            self._enqueue(waiting, first, run)

    def _enqueue(self, groups: tuple[FeedGroup, ...], first: int, run: Run) -> None:
        for stretch in Stretch(range(first, first + run.size), run).cut(LOOP_BYTES):
            self._queue.append((groups, stretch))
            self._queued += stretch.run.content_size
        while self._queued > QUEUED_BYTES:
            self._flush_some()
        self._schedule()

    def _schedule(self) -> None:
        if self._due is not None or not self._queue:
            return
        loop = asyncio.get_running_loop()
        if self._queued >= FLUSH_BYTES or self._pause_until <= loop.time():
            self._due = loop.call_soon(self._flush)
        else:
            self._due = loop.call_at(self._pause_until, self._flush)

    def _flush(self) -> None:
        self._due = None
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            self._flush_some()
        finally:
            ended = loop.time()
            self._pause_until = ended + min(PAUSES * (ended - began), GATHER)
            self._schedule()

    def _flush_some(self) -> None:
        """Deliver the next part of the queue; a large entry goes to the followers' own tasks."""
        taken: list[tuple[tuple[FeedGroup, ...], Stretch]] = []
        size = 0
        while self._queue and size < FLUSH_BYTES:
            groups, stretch = self._queue[0]
            large = len(stretch.offsets) == 1 and stretch.run.content_size > LOOP_BYTES
            if large and taken:
                break
            self._queue.popleft()
            self._queued -= stretch.run.content_size
            self._done = stretch.offsets[-1]
            if large:
                _hand_over(self._feeds, groups, stretch)
                return
            taken.append((groups, stretch))
            size += stretch.run.content_size
        if taken:
            self._deliver(taken)

    def _deliver(self, taken: Sequence[tuple[tuple[FeedGroup, ...], Stretch]]) -> None:
        news: set[Feed] = set()
        try:
            chosen = self._match(taken, news)
        except Exception:
            log.exception("events could not be matched; their followers read the log")
            for follower in _followers(group for groups, _ in taken for group in groups):
                self._behind(follower, taken[0][1].offsets[0] - 1)
            return
        if not news:
            return
        written = asyncio.get_running_loop().time()
        encoded = EncodedEntries(chosen)
        for feed in news:
            offsets, feed.offsets = feed.offsets, []
            for form, members in list(feed.members.items()):
                try:
                    frames = encoded.frames(form)
                    block = form.block([frames[offset] for offset in offsets])
                except Exception:
                    log.exception("events %d to %d could not be encoded", offsets[0], offsets[-1])
                    for follower in list(members):
                        self._behind(follower, offsets[0] - 1)
                    continue
                for follower in list(members):
                    if follower.upto >= offsets[0]:
                        kept = offsets[bisect_right(offsets, follower.upto) :]
                        if kept:
                            rest = form.block([frames[offset] for offset in kept])
                            self._write(follower, kept[0], rest, written)
                    else:
                        self._write(follower, offsets[0], block, written)
            if feed.is_full(offsets[0], written):
                self._miss(feed, len(offsets), offsets[-1])
            elif feed.paced:
                self._deliver_paced(feed, offsets, encoded, written)

    def _deliver_paced(self, feed: Feed, offsets: Sequence[int], encoded: EncodedEntries, now: float) -> None:
        feed.settle()
        for follower in list(feed.paced):
            try:
                self._write_paced(follower, offsets, encoded, now)
            except Exception:
                log.exception("events %d to %d could not be encoded", offsets[0], offsets[-1])
                self._behind(follower, offsets[0] - 1)
        feed.look_at_paces()

    def _write_paced(
        self, follower: Follower, offsets: Sequence[int], encoded: EncodedEntries, now: float
    ) -> None:
        """Write as many events to a follower as its pace allows, and leave the others out unencoded."""
        pace, form = pace_of(follower), follower.connection.form
        mine = offsets[bisect_right(offsets, follower.upto) :]
        kept = mine[: pace.take(len(mine), now)]
        if kept:
            told = (form.skipped(pace.skipped, pace.upto),) if pace.skipped else ()
            frames = encoded.some(form, kept)
            if not self._write(follower, kept[0], form.block((*told, *frames)), now):
                return  # it reads these events from the log
            pace.told()
        pace.skip(len(mine) - len(kept), offsets[-1])
        self._tell_later(follower)

    def _miss(self, feed: Feed, count: int, upto: int) -> None:
        """Skip events for all paced followers of a feed, which learn of them later."""
        first = not feed.missed
        feed.missed += count
        feed.upto = upto
        if first:
            for follower in feed.paced:
                self._tell_later(follower)

    def _tell_later(self, follower: Follower) -> None:
        """See to it that a follower learns what was skipped, even if no event comes."""
        pace, feed = follower.connection.pace, follower.feed
        if pace is None or pace.due is not None or feed is None:
            return
        if pace.skipped or feed.missed:
            pace.due = asyncio.get_running_loop().call_later(TELL_AFTER, self._tell, follower)

    def _tell(self, follower: Follower) -> None:
        pace, form = pace_of(follower), follower.connection.form
        pace.due = None
        if follower.feed is None:
            return
        follower.feed.settle()
        if pace.skipped:
            block, now = (
                form.block((form.skipped(pace.skipped, pace.upto),)),
                asyncio.get_running_loop().time(),
            )
            if self._write(follower, self._done + 1, block, now):
                pace.told()

    def _match(
        self, taken: Sequence[tuple[tuple[FeedGroup, ...], Stretch]], news: set[Feed]
    ) -> list[Stretch]:
        """Add what is taken from the queue to the feeds that want it, and these to `news`; what is wanted."""
        chosen: list[Stretch] = []
        for groups, some in groupby(taken, itemgetter(0)):
            stretches = [stretch for _, stretch in some]
            chosen += select_all(stretches, self._feeds.match(groups, stretches, news))
        return chosen

    def _write(self, follower: Follower, first: int, block: bytes, now: float) -> bool:
        """Write a block; False if the follower has left, and reads the log from an offset on."""
        try:
            if follower.connection.write(block):
                follower.wrote = now
                return True
        except ConnectionError:
            pass  # its task finds the connection closed
        except Exception:
            log.exception("a long connection could not be written to")
        self._behind(follower, first - 1)
        return False

    def _behind(self, follower: Follower, upto: int) -> None:
        _fall_behind(self._feeds, follower, upto)


def _hand_over(feeds: Feeds, groups: Iterable[FeedGroup], stretch: Stretch) -> None:
    """Let each follower's own task filter, encode and send a large entry, and then read the log."""
    offset = stretch.offsets[0]
    for follower in _followers(groups):
        if follower.upto < offset:
            follower.handed = stretch
            _fall_behind(feeds, follower, offset - 1)


def _followers(groups: Iterable[FeedGroup]) -> list[Follower]:
    """The live followers of groups, each once."""
    feeds = [feed for group in dict.fromkeys(groups) for feed in group.feeds.values()]
    return [follower for feed in feeds for follower in feed.followers]


def _fall_behind(feeds: Feeds, follower: Follower, upto: int) -> None:
    feeds.discard(follower)
    follower.upto = max(upto, follower.upto)
    follower.news.set()
