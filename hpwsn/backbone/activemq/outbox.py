"""The outbox to ActiveMQ: waiting publications, in-flight frames and spooled frames.

While ActiveMQ is connected, publications are combined into frames and sent. Only a few frames are in flight,
so that further publications are combined meanwhile. A publication is answered when the node has stored its
frame. While ActiveMQ is unavailable, frames go to the spool in the journal, in-flight frames first, and a
publication is answered when its frame is in the spool. After a reconnect the spool is sent first. While the
spool is long, new publications are appended to it, so that publishers do not wait for minutes. New
publications wait for the last part of the spool, so that the spool becomes empty.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hpwsn.backbone.activemq.stomp_link import Outgoing
from hpwsn.backbone.wire.frames import FrameId, encode_frame
from hpwsn.errors import BackboneUnavailable, JournalUnavailable
from hpwsn.journal.store.records import SpooledFrame, SpoolSize
from hpwsn.journal.store.spool import Spool
from hpwsn.notification import Run, content_size, count_of, members

log = logging.getLogger(__name__)

UNDER_WAY = 4
"""Maximum in-flight frames: sent, but not read back from the queue yet."""

FRAME_BYTES = 1 << 20
"""Maximum size of a frame; a frame with a single publication may be larger."""

DRAIN_FRAMES, DRAIN_BYTES = 256, 8 << 20
PAUSE = 1.0
"""Seconds until the next attempt after the journal rejected a write to the spool."""

Send = Callable[[Sequence[Outgoing]], None]


@dataclass(eq=False, slots=True)
class Publication:
    """Notifications that were sent together, and the future of their sender."""

    runs: Sequence[Run]
    number: int
    """Notifications in the runs."""
    size: int
    answer: asyncio.Future[int | None]


@dataclass(eq=False, slots=True)
class Frame:
    """Publications that are sent together in one message."""

    id: FrameId
    body: bytes
    notifications: int
    publications: Sequence[Publication] = ()
    spooled: bool = False

    @property
    def is_awaited(self) -> bool:
        """Whether a publication is not answered yet."""
        return any(not publication.answer.done() for publication in self.publications)

    def stored(self, first: int) -> None:
        """Answer each publication with its first offset; `first` is the offset of the first publication."""
        for publication in self.publications:
            _answer(publication, first)
            first += publication.number

    def safe(self) -> None:
        """Answer each publication that it cannot be lost, but that its offset is not known yet."""
        for publication in self.publications:
            _answer(publication, None)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on the frames, on the waiting publications and on the spool."""

    batch: int
    waiting_bytes: int
    spool_notifications: int
    spool_bytes: int


class Outbox:
    """Sends publications in the order in which they were put in."""

    def __init__(
        self, spool: Spool, limits: Limits, destination: str, *, persistent: bool, checked: bool
    ) -> None:
        self._spool = spool
        self._limits = limits
        self._destination = destination
        self._headers = {"persistent": "true"} if persistent else {}
        self._headers |= {"checked": "true"} if checked else {}
        self._source = uuid.uuid4().hex
        self._number = 0
        self._waiting: deque[Publication] = deque()
        self._waiting_bytes = self._waiting_notifications = 0
        self._under_way: dict[FrameId, Frame] = {}
        self._rescued: list[Frame] = []
        self._send: Send | None = None
        self._wake = asyncio.Event()
        self._landed = asyncio.Event()
        self._busy = False
        self._draining = False
        self._pumping = False
        self.spooled = SpoolSize(0, 0, 0)

    @property
    def source(self) -> str:
        """The source name in the frame ids of this outbox."""
        return self._source

    async def open(self) -> None:
        """Read the size of the spool, which may have frames from before a restart."""
        self.spooled = await self._spool.size()

    def put(self, runs: Sequence[Run]) -> asyncio.Future[int | None]:
        """Add a publication; the future is answered when it cannot be lost. BackboneUnavailable if full."""
        number = count_of(runs)
        size = content_size(runs) + 64 * number
        self._check_room(number, size)
        answer: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(Publication(runs, number, size, answer))
        self._waiting_bytes += size
        self._waiting_notifications += number
        if not self._pumping:
            self._pumping = True
            asyncio.get_running_loop().call_soon(self._pump)
        return answer

    def connected(self, send: Send) -> None:
        """A session with ActiveMQ has started; `send` sends messages in it."""
        self._send = send
        self._wake.set()

    def disconnected(self) -> None:
        """The session with ActiveMQ has ended; in-flight frames that are not spooled go to the spool."""
        self._send = None
        self._rescued += [frame for frame in self._under_way.values() if not frame.spooled]
        self._under_way.clear()
        self._end_of_step()

    def _end_of_step(self) -> None:
        self._landed.set()
        self._wake.set()

    def own(self, id_: FrameId) -> list[Run] | None:
        """The notifications of an in-flight frame, which need not be decoded; None for other frames."""
        frame = self._under_way.get(id_)
        if frame is None or not frame.publications:
            return None
        return [run for publication in frame.publications for run in publication.runs]

    def landed(self, arrived: Iterable[tuple[FrameId, int | None]]) -> None:
        """Frames were read back: with an offset they are stored there, with None they were stored before."""
        for id_, first in arrived:
            frame = self._under_way.pop(id_, None)
            if frame is None:
                continue
            if frame.spooled:
                self._count(-1, frame)
            elif first is None:
                frame.safe()
            else:
                frame.stored(first)
        if not self._under_way:
            self._end_of_step()
        if self._waiting:
            self._pump()

    def stuck(self, ids: Iterable[FrameId], error: JournalUnavailable) -> None:
        """The journal is unavailable: frames read back stay in ActiveMQ, waiting publications fail."""
        for id_ in ids:
            if id_ in self._under_way:
                self._under_way[id_].safe()
        while self._waiting:
            publication = self._waiting.popleft()
            if not publication.answer.done():
                publication.answer.set_exception(error)
        self._waiting_bytes = self._waiting_notifications = 0

    def failed(self, ids: Iterable[FrameId], error: BackboneUnavailable) -> None:
        """Frames were read back and can never be stored; their publications fail."""
        for id_ in ids:
            frame = self._under_way.get(id_)
            for publication in frame.publications if frame else ():
                if not publication.answer.done():
                    publication.answer.set_exception(error)

    async def run(self) -> None:
        """Send publications or write them to the spool, without end."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            self._busy = True
            moved = await self._try()
            self._busy = False
            if moved:
                self._pump()
            else:
                asyncio.get_running_loop().call_later(PAUSE, self._wake.set)

    async def _try(self) -> bool:
        """Do all work that is possible now; return False if it must be retried."""
        try:
            await self._work()
        except JournalUnavailable:
            return False
        except Exception:
            log.exception("what waits for ActiveMQ could not be moved; it is tried again")
            return False
        return True

    async def _work(self) -> None:
        await self._put_aside()
        while self._send is not None and self.spooled.frames:
            await self._drain()

    def _pump(self) -> None:
        """Send waiting publications directly if possible, else wake the task that spools them."""
        self._pumping = False
        if self._send is None or self.spooled.frames or self._rescued or self._busy:
            if self._waiting or self._rescued:
                self._wake.set()
            return
        frames = []
        while self._waiting and len(self._under_way) < UNDER_WAY:
            frame = self._frame()
            self._under_way[frame.id] = frame
            frames.append(frame)
        if frames:
            self._send([self._message(frame) for frame in frames])

    def _frame(self) -> Frame:
        """Build a frame from as many waiting publications as fit, and at least one."""
        publications: list[Publication] = []
        runs: list[Run] = []
        size = number = 0
        while self._waiting:
            following = self._waiting[0]
            many = number + following.number > self._limits.batch
            if publications and (many or size + following.size > FRAME_BYTES):
                break
            publications.append(self._waiting.popleft())
            runs += following.runs
            number += following.number
            size += following.size
        self._waiting_bytes -= size
        self._waiting_notifications -= number
        self._number += 1
        id_ = FrameId(self._source, self._number)
        return Frame(id_, encode_frame(members(runs)), number, publications)

    async def _put_aside(self) -> None:
        """Write in-flight frames to the spool, then publications that would wait long, and answer them."""
        while self._rescued or (self._waiting and (self._send is None or self._drains_on())):
            frames = self._rescued or [self._frame() for _ in range(UNDER_WAY) if self._waiting]
            self._rescued = list(frames)  # until they are written; others may be added meanwhile
            await self._spool.put(
                [SpooledFrame(f.id.source, f.id.number, f.notifications, f.body) for f in frames]
            )
            self._rescued = [frame for frame in self._rescued if frame not in frames]
            for frame in frames:
                self._count(1, frame)
                frame.safe()

    async def _drain(self) -> None:
        """Send the first frames of the spool, and wait until they are read back or the session ends."""
        rows = await self._spool.first(DRAIN_FRAMES, DRAIN_BYTES)
        if not rows or self._send is None:
            if not rows:
                self.spooled = SpoolSize(0, 0, 0)
            return
        self._landed.clear()
        frames = [
            Frame(FrameId(row.source, row.number), row.body, row.notifications, spooled=True) for row in rows
        ]
        self._under_way.update((frame.id, frame) for frame in frames)
        self._send([self._message(frame) for frame in frames])
        self._draining = True
        try:
            while not self._landed.is_set():
                await self._put_aside()
                await self._wake.wait()
                self._wake.clear()
        finally:
            self._draining = False

    def _drains_on(self) -> bool:
        """Whether a part of the spool is in flight and the spool has more frames than that."""
        return self._draining and not self._landed.is_set() and self._is_long

    @property
    def _is_long(self) -> bool:
        return self.spooled.frames > DRAIN_FRAMES or self.spooled.bytes > DRAIN_BYTES

    def _message(self, frame: Frame) -> Outgoing:
        return Outgoing(self._destination, frame.body, {**self._headers, "frame": str(frame.id)})

    def _count(self, sign: int, frame: Frame) -> None:
        s = self.spooled
        self.spooled = SpoolSize(
            s.frames + sign, s.notifications + sign * frame.notifications, s.bytes + sign * len(frame.body)
        )

    def _check_room(self, notifications: int, size: int) -> None:
        limits = self._limits
        if self._send is None or self._rescued or self._is_long:
            number = self.spooled.notifications + self._waiting_notifications + notifications
            total = self.spooled.bytes + self._waiting_bytes + size
            if number > limits.spool_notifications or total > limits.spool_bytes:
                raise BackboneUnavailable(
                    f"ActiveMQ {'is' if self._send is None else 'was'} away and"
                    f" {self.spooled.notifications} notifications"
                    f" ({self.spooled.bytes} bytes) wait for it already: the limits are"
                    f" backbone.spool_limit = {limits.spool_notifications} and backbone.spool_bytes ="
                    f" {limits.spool_bytes}"
                )
        elif self._waiting_bytes and self._waiting_bytes + size > limits.waiting_bytes:
            raise BackboneUnavailable(
                f"{self._waiting_bytes} bytes are waiting to be sent to ActiveMQ and the limit is"
                f" {limits.waiting_bytes} (journal.waiting_limit): try again in a moment"
            )

    async def settle(self) -> None:
        """Wait until every publication is answered."""
        while self._waiting or self._rescued or any(f.is_awaited for f in self._under_way.values()):
            self._pump()
            await asyncio.sleep(0.01)


def _answer(publication: Publication, first: int | None) -> None:
    if not publication.answer.done():
        publication.answer.set_result(first)
