"""What routing keeps: reliable notifications until they are confirmed, and what came, across restarts."""

from __future__ import annotations

from typing import Any

from hpwsn.journal.store.records import Arrival, FrameRange
from hpwsn.journal.store.routed import parse_route_source, route_source
from hpwsn.notification import FOREIGN, PARTIAL, RELIABLE
from tests.runs import run_of


def test_a_source_comes_back_whatever_the_name_holds() -> None:
    for origin in ("n1", "a:b", "京"):
        assert parse_route_source(route_source(origin, 5)) == (origin, 5)


async def test_reliable_ones_stay_noted_until_they_are_confirmed(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        assert (await journal.routed.start(7)).own == []
        await journal.append([note("A"), note("A", routing=RELIABLE)])
        await journal.append([note("A", routing=PARTIAL)])
        await journal.append([note("A", routing=RELIABLE | PARTIAL)])
    async with opened() as (journal, _):
        left = await journal.routed.start(8)
        assert (left.epoch, left.own) == (7, [(2, RELIABLE), (4, RELIABLE | PARTIAL)])
        await journal.routed.confirmed(2, [])
        assert (await journal.routed.start(9)).own == [(4, RELIABLE | PARTIAL)]


async def test_each_of_a_reliable_run_is_noted_at_its_own_offset(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.routed.start(7)
        await journal.append([note("A"), run_of("A", b"<x/>", b"<y/>", b"<z/>", routing=RELIABLE), note("A")])
    async with opened() as (journal, _):
        assert (await journal.routed.start(8)).own == [(2, RELIABLE), (3, RELIABLE), (4, RELIABLE)]


async def test_what_came_is_noted_with_it_until_its_origin_sends_it_no_more(opened: Any, note: Any) -> None:
    source = route_source("n2", 3)
    async with opened() as (journal, _):
        for number in (5, 9):
            arrival = Arrival(ranges=[FrameRange(source, number, number)], time=1.0)
            await journal.append([note("A", routing=FOREIGN)], arrival)
        other = Arrival(ranges=[FrameRange("activemq", 1, 4)], time=1.0)
        await journal.append([note("A")], other)
    async with opened() as (journal, _):
        left = await journal.routed.start(1)
        assert left.stored == [FrameRange(source, 5, 5), FrameRange(source, 9, 9)]
        await journal.routed.confirmed(0, [FrameRange(source, 9, 9)])
        assert (await journal.routed.start(1)).stored == [FrameRange(source, 9, 9)]
        assert FrameRange("activemq", 1, 4) in await journal.spool.ranges()
