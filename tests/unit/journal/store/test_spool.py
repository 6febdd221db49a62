"""What a backbone keeps in the journal: frames that wait, frames that were stored, offsets from peers."""

from __future__ import annotations

from typing import Any

import pytest

from hpwsn.errors import JournalUnavailable
from hpwsn.journal.store.records import Arrival, FrameRange, SpooledFrame, SpoolSize
from hpwsn.notification import Run
from tests.runs import run_of


def frame(number: int, body: bytes = b"body", source: str = "a") -> SpooledFrame:
    return SpooledFrame(source, number, 2, body)


def note(text: str = "x", size: int = 0) -> Run:
    return run_of("A", text.encode() + b"." * size)


async def test_frames_wait_in_order_over_a_restart_and_one_is_there_only_once(opened: Any) -> None:
    async with opened() as (journal, _):
        await journal.spool.put([frame(2), frame(1)])
        await journal.spool.put([frame(2), frame(1, source="b")])
    async with opened() as (journal, _):
        found = await journal.spool.first(10, 1000)
        assert [(f.source, f.number) for f in found] == [("a", 2), ("a", 1), ("b", 1)]
        assert await journal.spool.size() == SpoolSize(3, 6, 12)


async def test_the_first_are_as_many_as_fit_and_one_at_least(opened: Any) -> None:
    async with opened() as (journal, _):
        await journal.spool.put([frame(number, b"x" * 100) for number in range(5)])
        assert len(await journal.spool.first(10, 250)) == 2
        assert len(await journal.spool.first(10, 300)) == 3
        assert len(await journal.spool.first(4, 10_000)) == 4
        assert len(await journal.spool.first(10, 1)) == 1


async def test_an_arrival_is_stored_and_leaves_the_spool_in_one_transaction(opened: Any) -> None:
    async with opened() as (journal, _):
        await journal.spool.put([frame(1), frame(2)])
        arrival = Arrival([FrameRange("a", 1, 1)], [FrameRange("a", 1, 1)], 5.0)
        assert await journal.append([note("1"), note("2")], arrival) == 1
        assert [f.number for f in await journal.spool.first(10, 1000)] == [2]
        grown = Arrival([FrameRange("a", 2, 2)], [FrameRange("a", 1, 2)], 6.0)
        assert await journal.append([note("3")], grown) == 3
    async with opened() as (journal, recovered):
        assert recovered.next_offset == 4
        assert await journal.spool.first(10, 1000) == []
        assert await journal.spool.ranges() == [FrameRange("a", 1, 2)]


async def test_an_append_that_fails_leaves_the_spool_as_it_was(opened: Any) -> None:
    async with opened(max_bytes=300_000, reserve=0) as (journal, _):
        await journal.spool.put([frame(1)])
        arrival = Arrival([FrameRange("a", 1, 1)], [FrameRange("a", 1, 1)], 5.0)
        with pytest.raises(JournalUnavailable):
            await journal.append([note(size=1_000_000)], arrival)
        assert await journal.spool.ranges() == []
        assert [f.number for f in await journal.spool.first(10, 1000)] == [1]


async def test_silent_sources_are_forgotten_and_dropped_frames_go(opened: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note()], Arrival([], [FrameRange("old", 1, 9)], 10.0))
        await journal.append([note()], Arrival([], [FrameRange("new", 1, 9)], 20.0))
        assert await journal.spool.forget(15.0) == 1
        assert await journal.spool.ranges() == [FrameRange("new", 1, 9)]
        await journal.spool.put([frame(1), frame(2)])
        await journal.spool.drop([FrameRange("a", 1, 1), FrameRange("z", 1, 1)])
        assert [f.number for f in await journal.spool.first(10, 1000)] == [2]


async def test_the_cursor_of_peers_begins_at_the_head_and_what_came_from_them_is_known(opened: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note()])
        assert await journal.spool.peers(journal.last_offset) == (1, [])
        await journal.append([note(), note()], Arrival(from_peers=True))
        await journal.append([note()])
        await journal.append([note()], Arrival(from_peers=True))
    async with opened() as (journal, _):
        assert await journal.spool.peers(journal.last_offset) == (1, [(2, 3), (5, 5)])
        await journal.spool.told_peers(4)
        assert await journal.spool.peers(0) == (4, [(5, 5)])
        assert await journal.spool.topics() == ["A"]


async def test_each_of_a_run_from_peers_is_known_to_be_from_them(opened: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note()])
        assert await journal.spool.peers(journal.last_offset) == (1, [])
        await journal.append([run_of("A", b"<x/>", b"<y/>", b"<z/>"), note()], Arrival(from_peers=True))
        await journal.append([note()])
        assert await journal.spool.peers(journal.last_offset) == (1, [(2, 5)])
