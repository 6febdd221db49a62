"""What is on its way to ActiveMQ: publications that wait, frames under way, frames in the spool.

There is one way at a time. With ActiveMQ there, publications are joined to frames and sent, a few frames
under way at once, so that more publications join while these travel; each is answered when the node has
stored its frame. With ActiveMQ away, frames go to the spool in the journal, those under way first, and each
is answered when it is there. When ActiveMQ is back the spool goes first: publications join its end while it
is long, since nobody should wait for minutes, and wait for the last of it, so that it comes to an end.
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
from hpwsn.notification import Run, content_size, count_of

log = logging.getLogger(__name__)

UNDER_WAY = 4
"""Frames sent that have not come back yet."""

FRAME_BYTES = 1 << 20
"""Where a frame ends, unless one publication alone is larger."""

DRAIN_FRAMES, DRAIN_BYTES = 256, 8 << 20
PAUSE = 1.0
"""Seconds until the spool is tried again after the journal refused it."""

Send = Callable[[Sequence[Outgoing]], None]


@dataclass(eq=False, slots=True)
class Publication:
    """Notifications that were sent together, and the one who waits for them."""

    runs: Sequence[Run]
    number: int
    """Notifications in the runs."""
    size: int
    answer: asyncio.Future[int | None]


@dataclass(eq=False, slots=True)
class Frame:
    """Publications that travel together."""

    id: FrameId
    body: bytes
    notifications: int
    publications: Sequence[Publication] = ()
    spooled: bool = False

    @property
    def is_awaited(self) -> bool:
        """Whether somebody has no answer yet."""
        return any(not publication.answer.done() for publication in self.publications)

    def stored(self, first: int) -> None:
        """Answer everybody with the offsets that they got."""
        for publication in self.publications:
            _answer(publication, first)
            first += publication.number

    def safe(self) -> None:
        """Answer everybody that offsets come later."""
        for publication in self.publications:
            _answer(publication, None)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may be where."""

    batch: int
    waiting_bytes: int
    spool_notifications: int
    spool_bytes: int


class Outbox:
    """Publications in the order in which they came."""

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
        """Under which name this outbox numbers its frames."""
        return self._source

    async def open(self) -> None:
        """Look at what is in the spool from an earlier life."""
        self.spooled = await self._spool.size()

    def put(self, runs: Sequence[Run]) -> asyncio.Future[int | None]:
        """Take a publication, to be answered once it is safe; raises if there is no room for it."""
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
        """ActiveMQ is there."""
        self._send = send
        self._wake.set()

    def disconnected(self) -> None:
        """ActiveMQ is away: what is under way and not in the spool goes there now."""
        self._send = None
        self._rescued += [frame for frame in self._under_way.values() if not frame.spooled]
        self._under_way.clear()
        self._end_of_step()

    def _end_of_step(self) -> None:
        self._landed.set()
        self._wake.set()

    def own(self, id_: FrameId) -> list[Run] | None:
        """The runs of a frame that is under way, which need not be read from its body."""
        frame = self._under_way.get(id_)
        if frame is None or not frame.publications:
            return None
        return [run for publication in frame.publications for run in publication.runs]

    def landed(self, arrived: Iterable[tuple[FrameId, int | None]]) -> None:
        """Frames came back; those with an offset are stored there, the others were stored before."""
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
        """The journal takes nothing: frames that came back are safe in ActiveMQ, what waits is refused."""
        for id_ in ids:
            if id_ in self._under_way:
                self._under_way[id_].safe()
        while self._waiting:
            publication = self._waiting.popleft()
            if not publication.answer.done():
                publication.answer.set_exception(error)
        self._waiting_bytes = self._waiting_notifications = 0

    def failed(self, ids: Iterable[FrameId], error: BackboneUnavailable) -> None:
        """Frames came back and cannot be stored, ever."""
        for id_ in ids:
            frame = self._under_way.get(id_)
            for publication in frame.publications if frame else ():
                if not publication.answer.done():
                    publication.answer.set_exception(error)

    async def run(self) -> None:
        """Move publications by the way that is open now, for ever."""
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
        """Whether everything could be moved as far as it goes now."""
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
        """Send what waits, if it can go straight; else have it taken care of."""
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
        """As many publications as go into one frame, and one at least."""
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
        return Frame(id_, encode_frame(runs), number, publications)

    async def _put_aside(self) -> None:
        """Write to the spool what was under way, then what would wait for long, and answer."""
        while self._rescued or (self._waiting and (self._send is None or self._drains_on())):
            frames = self._rescued or [self._frame() for _ in range(UNDER_WAY) if self._waiting]
            self._rescued = list(frames)  # until they are written; others may join meanwhile
            await self._spool.put(
                [SpooledFrame(f.id.source, f.id.number, f.notifications, f.body) for f in frames]
            )
            self._rescued = [frame for frame in self._rescued if frame not in frames]
            for frame in frames:
                self._count(1, frame)
                frame.safe()

    async def _drain(self) -> None:
        """Send the first of the spool and wait until they came back, or ActiveMQ is away again."""
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
        """Whether a part of the spool is under way, and there is more in it than that."""
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
        """Wait until everybody has an answer."""
        while self._waiting or self._rescued or any(f.is_awaited for f in self._under_way.values()):
            self._pump()
            await asyncio.sleep(0.01)


def _answer(publication: Publication, first: int | None) -> None:
    if not publication.answer.done():
        publication.answer.set_result(first)
