"""What waits for ActiveMQ while a long spool goes first, with a real journal and nobody at the other end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from hpwsn.backbone.activemq.outbox import DRAIN_FRAMES, Limits, Outbox
from hpwsn.backbone.activemq.stomp_link import Outgoing
from hpwsn.backbone.wire.frames import FrameId, decode_frame
from hpwsn.errors import BackboneUnavailable
from hpwsn.journal import Journal
from hpwsn.journal.store.records import FrameRange
from hpwsn.notification import Run, members
from tests.patience import PATIENCE, eventually
from tests.runs import run_of

LIMIT = DRAIN_FRAMES + 20


def note(*words: str) -> Run:
    """A run with these texts."""
    return run_of("A:B", *[f"<m>{text}</m>".encode() for text in words], before=b"<t/>")


def texts(runs: Sequence[Run]) -> list[str]:
    return [n.payload.decode().removeprefix("<m>").removesuffix("</m>") for n in members(runs)]


class Sent:
    """What went to ActiveMQ, which answers when it is told to."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.frames: list[FrameId] = []
        self.answered = 0
        self.runs: list[Run] = []

    def __call__(self, messages: Sequence[Outgoing]) -> None:
        for message in messages:
            self.frames.append(FrameId.parse(message.headers["frame"]))
            self.runs += map(Run.of, decode_frame(message.body))

    async def answer(self, outbox: Outbox) -> None:
        """Have everything that was sent come back and be stored."""
        new, self.answered = self.frames[self.answered :], len(self.frames)
        await self._journal.spool.drop([FrameRange(each.source, each.number, each.number) for each in new])
        outbox.landed([(each, 1) for each in new])


@asynccontextmanager
async def long_spool(folder: Path) -> AsyncIterator[tuple[Outbox, Sent]]:
    """An outbox with more in its spool than goes at once, of which the first part is under way."""
    async with away(folder) as (outbox, sent):
        for number in range(DRAIN_FRAMES + 10):
            assert await outbox.put([note(str(number))]) is None
        outbox.connected(sent)
        await eventually(lambda: holds(len(sent.frames) == DRAIN_FRAMES))
        yield outbox, sent


@asynccontextmanager
async def away(folder: Path) -> AsyncIterator[tuple[Outbox, Sent]]:
    """An outbox with nothing in its spool, while ActiveMQ is away."""
    journal = Journal(folder / "journal.db", reserve=0)
    await journal.open()
    outbox = Outbox(
        journal.spool, Limits(10, 1 << 20, LIMIT, 1 << 30), "/queue/x", persistent=True, checked=True
    )
    await outbox.open()
    running = asyncio.create_task(outbox.run())
    try:
        yield outbox, Sent(journal)
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await journal.close()


async def holds(condition: bool) -> bool:
    return condition


async def test_a_publisher_does_not_wait_for_a_long_spool_and_keeps_his_place(tmp_path: Path) -> None:
    async with long_spool(tmp_path) as (outbox, sent):
        assert await asyncio.wait_for(outbox.put([note("joins")]), PATIENCE) is None
        await sent.answer(outbox)
        await eventually(lambda: holds(len(sent.frames) == DRAIN_FRAMES + 11))
        # What is left is under way: the next one goes straight after it, so that the spool ends.
        straight = outbox.put([note("straight")])
        await sent.answer(outbox)
        await eventually(lambda: holds(len(sent.frames) == DRAIN_FRAMES + 12))
        assert not straight.done()
        await sent.answer(outbox)
        assert await straight == 1
        wanted = [*map(str, range(DRAIN_FRAMES + 10)), "joins", "straight"]
        assert texts(sent.runs) == wanted
        assert outbox.spooled.frames == 0


async def test_the_limit_of_the_spool_holds_while_it_is_sent(tmp_path: Path) -> None:
    async with long_spool(tmp_path) as (outbox, _):
        for number in range(10):
            await outbox.put([note(str(number))])
        with pytest.raises(
            BackboneUnavailable, match=r"was away and 276 notifications .*backbone\.spool_limit = 276"
        ):
            await outbox.put([note("too much")])


async def test_a_line_that_is_lost_again_while_others_join_keeps_the_order(tmp_path: Path) -> None:
    async with long_spool(tmp_path) as (outbox, sent):
        joins = outbox.put([note("joins")])
        outbox.disconnected()
        assert await joins is None
        assert await outbox.put([note("away")]) is None
        del sent.frames[:], sent.runs[:]
        outbox.connected(sent)
        await eventually(lambda: holds(len(sent.frames) == DRAIN_FRAMES))
        await sent.answer(outbox)
        await eventually(lambda: holds(len(sent.frames) == DRAIN_FRAMES + 12))
        assert texts(sent.runs) == [*map(str, range(DRAIN_FRAMES + 10)), "joins", "away"]


async def test_runs_count_by_their_notifications_and_are_answered_with_their_first_offsets(
    tmp_path: Path,
) -> None:
    async with away(tmp_path) as (outbox, sent):
        outbox.connected(sent)
        publications = [[note("1", "2", "3"), note("4")], [note("5", "6")], [note("7", "8", "9", "10", "11")]]
        answers = [outbox.put(runs) for runs in publications]
        await eventually(lambda: holds(len(sent.frames) == 2))
        first, second = sent.frames
        assert outbox.own(first) == [*publications[0], *publications[1]]
        assert outbox.own(second) == publications[2]
        assert texts(sent.runs) == [str(number) for number in range(1, 12)]
        outbox.landed([(first, 21), (second, 27)])
        assert [await answer for answer in answers] == [21, 25, 27]
        assert outbox.own(first) is None


async def test_the_spool_counts_the_notifications_of_runs(tmp_path: Path) -> None:
    async with away(tmp_path) as (outbox, _):
        for _ in range(2):
            assert await outbox.put([note("1", "2", "3"), note("4")]) is None
        assert outbox.spooled.notifications == 8
        with pytest.raises(BackboneUnavailable, match="is away and 8 notifications"):
            outbox.put([note(*["x"] * (LIMIT - 7))])
        assert await outbox.put([note(*["x"] * (LIMIT - 8))]) is None
