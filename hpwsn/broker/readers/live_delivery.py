"""Delivery of new commits to live followers: matched, encoded and joined once, one write per connection.

Commits wait in a queue until the next flush, which the next turn of the event loop makes. Each flush is
followed by a pause PAUSES times as long, at most GATHER: an idle node delivers at once, and a busy node
gathers more events for each write. A follower whose client does not keep up leaves, and reads the log.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter

from hpwsn.broker.readers.feeds import Feed, FeedGroup, Feeds, Follower, Form
from hpwsn.broker.readers.log_pages import LOOP_BYTES, Encode, Stretch
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
        self._due: asyncio.Handle | None = None
        self._pause_until = 0.0

    def __bool__(self) -> bool:
        """Whether there are live followers."""
        return bool(self._feeds)

    def enter(self, follower: Follower, upto: int) -> None:
        """Make a follower live that has got everything up to an offset, and everything committed so far."""
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

    def committed(self, places: Iterable[Topic], first: int, run: Run, internal: bool) -> None:
        """Queue a run for the followers of its topic, given with its ancestors, that may get it."""
        groups = self._feeds.groups(places, internal)
        if not groups:
            return
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
        encoded = _Encoded(chosen)
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
            for follower in list(feed.paced):
                try:
                    self._write_paced(follower, offsets, encoded, written)
                except Exception:
                    log.exception("events %d to %d could not be encoded", offsets[0], offsets[-1])
                    self._behind(follower, offsets[0] - 1)

    def _write_paced(self, follower: Follower, offsets: Sequence[int], encoded: _Encoded, now: float) -> None:
        """Write as many events to a follower as its pace allows, and leave the others out unencoded."""
        pace, form = follower.connection.pace, follower.connection.form
        assert pace is not None
        mine = offsets[bisect_right(offsets, follower.upto) :]
        kept = mine[: pace.take(len(mine), now)]
        if kept:
            told = (form.skipped(pace.skipped, pace.upto),) if pace.skipped else ()
            frames = encoded.some(form, kept)
            if not self._write(follower, kept[0], form.block((*told, *frames)), now):
                return  # it reads these events from the log
            pace.told()
        pace.skip(mine[len(kept) :])
        self._tell_later(follower)

    def _tell_later(self, follower: Follower) -> None:
        """See to it that a follower learns what was skipped, even if no event comes."""
        pace = follower.connection.pace
        if pace is not None and pace.skipped and pace.due is None:
            pace.due = asyncio.get_running_loop().call_later(TELL_AFTER, self._tell, follower)

    def _tell(self, follower: Follower) -> None:
        pace, form = follower.connection.pace, follower.connection.form
        assert pace is not None
        pace.due = None
        if follower.feed is not None and pace.skipped:
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
            chosen += _chosen(stretches, self._feeds.match(groups, stretches, news))
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
        _fall_behind(self._feeds, follower, max(upto, follower.upto))


def _chosen(stretches: Sequence[Stretch], wanted: Sequence[bool]) -> list[Stretch]:
    """What of the stretches is wanted."""
    if all(wanted):
        return list(stretches)
    found, start = [], 0
    for stretch in stretches:
        end = start + len(stretch.offsets)
        part = stretch.select(wanted[start:end])
        start = end
        if part is not None:
            found.append(part)
    return found


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
    follower.upto = upto
    follower.news.set()


class _Encoded:
    """The entries of one flush, encoded once for each encoding and framed once for each form."""

    def __init__(self, stretches: Sequence[Stretch]) -> None:
        self._stretches = stretches
        self._data: dict[Encode, list[bytes]] = {}
        self._frames: dict[Form, Mapping[int, bytes]] = {}
        self._some: dict[Form, dict[int, bytes]] = {}

    def frames(self, form: Form) -> Mapping[int, bytes]:
        """The frames of a form by offset."""
        found = self._frames.get(form)
        if found is None:
            data = self._data.get(form.encode)
            if data is None:
                data = self._data[form.encode] = form.encode(self._stretches)
            offsets = [offset for each in self._stretches for offset in each.offsets]
            found = self._frames[form] = dict(zip(offsets, map(form.frame, offsets, data), strict=True))
        return found

    def some(self, form: Form, offsets: Sequence[int]) -> list[bytes]:
        """The frames at some offsets; others are not encoded unless `frames` was called."""
        if form.encode in self._data:
            everything = self.frames(form)
            return [everything[offset] for offset in offsets]
        known = self._some.setdefault(form, {})
        missing = {offset for offset in offsets if offset not in known}
        if missing:
            parts = (each.select([offset in missing for offset in each.offsets]) for each in self._stretches)
            found = [each for each in parts if each is not None]
            places = [offset for each in found for offset in each.offsets]
            known.update(zip(places, map(form.frame, places, form.encode(found)), strict=True))
        return [known[offset] for offset in offsets]
