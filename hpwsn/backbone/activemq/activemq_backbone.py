"""The backbone on ActiveMQ: a node sends accepted notifications to its queue and stores what it reads there.

Each node has one queue, which only this node reads, so any number of nodes can share an ActiveMQ. Another
process can put frames into the queue of a node (hpwsn.backbone.activemq.internal_publisher). A frame is
acknowledged only after the journal has committed it together with its number, so that a repeated frame is
recognised and dropped. Rejected messages go to a second queue, where operators can inspect them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hpwsn.backbone.activemq.outbox import Limits, Outbox
from hpwsn.backbone.activemq.peers import Peers
from hpwsn.backbone.activemq.stomp_link import Incoming, Link, Outgoing, Subscription
from hpwsn.backbone.activemq.thread_bridge import Bridge
from hpwsn.backbone.interface import Receive, Screen
from hpwsn.backbone.wire.destinations import Address, node_queue, refused_queue
from hpwsn.backbone.wire.frames import FrameId, MalformedFrame, Seen, decode_frame, encode_frame
from hpwsn.errors import BackboneUnavailable, JournalUnavailable
from hpwsn.journal.journal import Journal
from hpwsn.journal.store.records import Arrival, FrameRange
from hpwsn.notification import Run, count_of

log = logging.getLogger(__name__)

COMMIT_BYTES = 8 << 20
PAUSE = 0.5
"""Seconds until the next attempt after the journal rejected received frames."""

FORGET_EVERY = 3600.0
REMEMBERED = 7 * 86400.0
"""Seconds after which the frame numbers of a silent source are forgotten."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of the backbone, from the configuration of the node."""

    persistent: bool = True
    batch: int = 256
    prefetch: int = 64
    heartbeat: float = 5.0
    spool_limit: int = 1_000_000
    spool_bytes: int = 256 << 20
    waiting_bytes: int = 64 << 20


@dataclass(slots=True)
class Counts:
    """Counters since the start."""

    frames: int = 0
    again: int = 0
    refused: int = 0
    sessions: int = 0


@dataclass(slots=True)
class _Arrived:
    """Received frames that are appended to the journal together."""

    runs: list[Run] = field(default_factory=list)
    number: int = 0
    """Notifications in the runs."""
    frames: list[FrameRange] = field(default_factory=list)
    ranges: dict[tuple[str, int], FrameRange] = field(default_factory=dict)
    known: list[FrameId] = field(default_factory=list)
    places: list[tuple[FrameId, int]] = field(default_factory=list)
    stored: list[tuple[int, Callable[[int], None]]] = field(default_factory=list)


class ActiveMQBackbone:
    """Sends the notifications of a node to its queue on ActiveMQ and stores what arrives there."""

    def __init__(
        self,
        address: Address,
        node: str,
        *,
        journal: Journal,
        clock: Callable[[], float],
        settings: Settings,
        peers: Peers | None = None,
    ) -> None:
        self._peers = peers
        self._address = address
        self._node = node
        self._journal = journal
        self._clock = clock
        self._settings = settings
        self._host: str | None = None
        self._trouble = "ActiveMQ has not answered yet"
        self._told: str | None = None
        self._arrived: deque[Incoming] = deque()
        self._more = asyncio.Event()
        self._seen = Seen()
        self._forget_at = 0.0
        self._tasks: list[asyncio.Task[None]] = []
        self._link: Link | None = None
        self._closing = False
        self.counts = Counts()
        limits = Limits(settings.batch, settings.waiting_bytes, settings.spool_limit, settings.spool_bytes)
        self._outbox = Outbox(
            journal.spool, limits, node_queue(node), persistent=settings.persistent, checked=True
        )

    async def start(self, receive: Receive, screen: Screen) -> None:
        """Open the spool and start connecting; the node starts even if ActiveMQ is unavailable."""
        self._receive = receive
        self._screen = screen
        await self._forget()
        await self._outbox.open()
        self._link = Link(
            self._address,
            Bridge(up=self._up, down=self._down, messages=self._messages),
            name="activemq",
            heartbeat=self._settings.heartbeat,
            consume=Subscription(
                (node_queue(self._node),),
                # An exclusive consumer: a dead connection that ActiveMQ has not noticed yet must not share
                # the queue with its successor, because that would change the order.
                {"activemq.prefetchSize": str(self._settings.prefetch), "activemq.exclusive": "true"},
            ),
        )
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._outbox.run()), loop.create_task(self._store_for_ever())]
        if self._peers is not None:
            await self._peers.start(receive, screen)
        self._link.start()

    async def send(self, runs: Sequence[Run]) -> int | None:
        """Send notifications through the queue to the journal, or to the spool if ActiveMQ is unavailable."""
        if self._link is None or self._closing:
            raise BackboneUnavailable("the backbone is not open: the node is starting or stopping")
        if self._journal.unavailable is not None:
            raise JournalUnavailable(self._journal.unavailable)
        return await self._outbox.put(runs)

    async def close(self) -> None:
        """Wait a few seconds for in-flight frames; the rest stays in the queue or in the spool."""
        link = self._link
        if link is None:
            return
        self._closing = True
        try:
            async with asyncio.timeout(5):
                await self._outbox.settle()
        except TimeoutError:
            log.warning("not everything came back from ActiveMQ; it comes when the node starts again")
        self._link = None
        if self._peers is not None:
            await self._peers.close()
        await asyncio.to_thread(link.stop)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def holds(self) -> bool:
        """Whether there are notifications in the spool."""
        return self._outbox.spooled.frames > 0

    def problem(self) -> str | None:
        """The reason why ActiveMQ cannot be used, or None."""
        if self._link is None or self._closing:
            return "the backbone is closed"
        if self._host is None:
            return f"the backbone is away: {self._trouble}"
        if self._peers is not None and not self._peers.connected:
            return f"peers are away: {self._peers.trouble}"
        return None

    def figures(self) -> Mapping[str, Any]:
        """The state and the counters of the link, the spool and the peers."""
        spooled = self._outbox.spooled
        return {
            "kind": "activemq",
            "state": "away" if self._host is None else "draining" if spooled.frames else "ready",
            "connected": int(self._host is not None),
            "host": self._host or "",
            "spooled": spooled.notifications,
            "spooled_bytes": spooled.bytes,
            "reconnects": max(0, self.counts.sessions - 1),
            "frames": self.counts.frames,
            "frames_again": self.counts.again,
            "refused": self.counts.refused,
            **({} if self._peers is None else {"peers": self._peers.figures()}),
        }

    def _up(self, host: str) -> None:
        self._host = host
        self.counts.sessions += 1
        waiting = self._outbox.spooled.notifications
        log.info("ActiveMQ at %s is the backbone%s", host, f"; {waiting} wait for it" if waiting else "")
        self._told = None
        if self._link is not None:
            self._outbox.connected(self._link.send)

    def _down(self, reason: str) -> None:
        self._trouble = reason
        if reason != self._told:
            log.warning("ActiveMQ is away (%s); notifications wait in the journal", reason)
            self._told = reason
        if self._host is not None:
            self._host = None
            self._outbox.disconnected()

    def _messages(self, messages: Sequence[Incoming]) -> None:
        self._arrived.extend(messages)
        self._more.set()

    async def _store_for_ever(self) -> None:
        while True:
            await self._more.wait()
            self._more.clear()
            while self._arrived:
                messages = self._take()
                try:
                    await self._store(messages)
                except Exception as error:
                    await self._give_up(messages, error)
            if self._clock() > self._forget_at:
                await self._forget()

    async def _forget(self) -> None:
        """Forget sources that have been silent for `REMEMBERED` seconds, in the journal and in memory."""
        self._forget_at = self._clock() + FORGET_EVERY
        try:
            await self._journal.spool.forget(self._clock() - REMEMBERED)
            self._seen = Seen(await self._journal.spool.ranges())
        except JournalUnavailable as error:
            log.warning("old frames could not be forgotten: %s", error)

    def _take(self) -> list[Incoming]:
        taken: list[Incoming] = []
        size = 0
        while self._arrived and size < COMMIT_BYTES:
            taken.append(self._arrived.popleft())
            size += len(taken[-1].body)
        return taken

    async def _store(self, messages: Sequence[Incoming]) -> None:
        batch = _Arrived()
        for message in messages:
            try:
                self._add(batch, message)
            except MalformedFrame as error:
                self._refuse(message.body, str(error))
        first = await self._append(batch)
        for at, stored in batch.stored:
            stored(first + at)
        if self._peers is not None:
            self._peers.stored(batch.runs)
        self._acknowledge(messages)
        self._outbox.landed((id_, first + at) for id_, at in batch.places)
        if batch.known:
            await self._drop_known(batch.known)

    async def _give_up(self, messages: Sequence[Incoming], error: Exception) -> None:
        """Move messages that fail with an unexpected error to the queue of rejected messages."""
        log.exception("what came from ActiveMQ could not be stored")
        for message in messages:
            self._refuse(message.body, repr(error))
        self._acknowledge(messages)
        ids = _frame_ids(messages)
        self._outbox.failed(ids, BackboneUnavailable(f"it could not be stored: {error!r}"))
        await self._drop_known(ids)

    def _acknowledge(self, messages: Sequence[Incoming]) -> None:
        """Acknowledge all messages that were stored together with one ACK.

        ActiveMQ may delay a small packet until TCP confirms the preceding one, and the ACK carries that
        confirmation.
        """
        if self._link is not None:
            self._link.ack(messages[-1])

    def _add(self, batch: _Arrived, message: Incoming) -> None:
        id_ = FrameId.parse(message.headers.get("frame", ""))
        self.counts.frames += 1
        if id_ in self._seen:
            self.counts.again += 1
            batch.known.append(id_)
            return
        runs: Sequence[Run] | None = self._outbox.own(id_)
        if runs is None:
            runs = self._decode(batch, id_, message)
        grown = self._seen.add(id_)
        batch.ranges[grown.source, grown.first] = grown
        batch.frames.append(FrameRange(id_.source, id_.number, id_.number))
        if runs:
            batch.places.append((id_, batch.number))
            batch.runs += runs
            batch.number += count_of(runs)
        else:
            batch.known.append(id_)

    def _decode(self, batch: _Arrived, id_: FrameId, message: Incoming) -> Sequence[Run]:
        notifications = decode_frame(message.body)
        if id_.source == self._outbox.source:
            try:
                return [Run.of(notification) for notification in notifications]
            except ValueError as error:
                raise MalformedFrame(f"a frame of this node is damaged: {error}") from error
        screened = self._screen(notifications, checked=message.headers.get("checked") == "true")
        for notification, reason in screened.refused:
            self._refuse(encode_frame([notification]), reason)
        if screened.kept:
            batch.stored.append((batch.number, screened.stored))
        return screened.kept

    async def _append(self, batch: _Arrived) -> int:
        """Retry until the batch is stored; later messages wait, so that the order is kept."""
        if not batch.runs:
            return 0
        arrival = Arrival(batch.frames, list(batch.ranges.values()), self._clock())
        while True:
            try:
                return await self._receive(batch.runs, arrival)
            except JournalUnavailable as error:
                if str(error) != self._told:
                    log.warning("what came from ActiveMQ waits there: %s", error)
                    self._told = str(error)
                self._outbox.stuck([id_ for id_, _ in batch.places], error)
                await asyncio.sleep(PAUSE)

    async def _drop_known(self, known: Sequence[FrameId]) -> None:
        """Remove frames that are already stored from the spool, in case they are still there."""
        try:
            await self._journal.spool.drop([FrameRange(id_.source, id_.number, id_.number) for id_ in known])
        except JournalUnavailable:
            return  # the frames stay in the spool, are sent again, and are dropped later
        self._outbox.landed((id_, None) for id_ in known)

    def _refuse(self, body: bytes, reason: str) -> None:
        self.counts.refused += 1
        destination = refused_queue(self._node)
        log.error("what came from ActiveMQ is not taken, and put into %s: %s", destination, reason)
        if self._link is not None:
            headers = {"persistent": "true", "reason": reason[:1000]}
            self._link.send([Outgoing(destination, body, headers)])


def _frame_ids(messages: Sequence[Incoming]) -> list[FrameId]:
    """The ids of the messages with a valid frame id."""
    ids = []
    for message in messages:
        with contextlib.suppress(MalformedFrame):
            ids.append(FrameId.parse(message.headers.get("frame", "")))
    return ids
