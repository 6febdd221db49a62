"""Retention: what goes, and above all what stays."""

import asyncio
from typing import Any

from hpwsn.journal import Journal, PullPointRecord

NOTHING: dict[str, Any] = {"id_window": 1e9, "retention_age": None, "retention_bytes": None}
ALL = 10**9


async def left(journal: Journal) -> list[int]:
    return [entry.offset for entry in await journal.read(range(1, 20_000))]


async def test_entries_beyond_the_age_go_and_younger_ones_stay(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note("A", time=float(i)) for i in range(1, 11)])
        pruned = await journal.prune(100.0, **NOTHING | {"retention_age": 95.0}, keep_after=ALL)
        assert (pruned.entries, await left(journal)) == (4, [5, 6, 7, 8, 9, 10])


async def test_no_limits_remove_nothing(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note("A", time=1.0)] * 5)
        assert (await journal.prune(1e9, **NOTHING, keep_after=ALL)).entries == 0


async def test_what_a_cursor_has_still_to_see_stays(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note("A", time=1.0)] * 9)
        await journal.prune(1e6, **NOTHING | {"retention_age": 1.0, "retention_bytes": 0}, keep_after=6)
        assert await left(journal) == [7, 8, 9]


async def test_current_queued_and_buried_entries_stay(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note(topic, time=1.0) for topic in ("A", "B", "A", "A", "A", None)])
        await journal.put_pull_point(PullPointRecord("p", None, 1.0))
        await journal.enqueue("p", [(3, "s")], {})
        await journal.bury("s", [4], "refused", 2.0)
        await journal.prune(1e6, **NOTHING | {"retention_age": 1.0}, keep_after=ALL)
        assert await left(journal) == [2, 3, 4, 5]
        await asyncio.gather(journal.confirm("p", 99), journal.drop_dead_letters([1]))
        await journal.prune(1e6, **NOTHING | {"retention_bytes": 0}, keep_after=ALL)
        assert await left(journal) == [2, 5]


async def test_a_forgotten_current_message_goes_and_the_next_one_is_current_again(
    opened: Any, note: Any
) -> None:
    async with opened() as (journal, _):
        await journal.append([note("A", time=1.0), note("B", time=1.0)])
        await journal.forget_current("A")
        await journal.prune(1e6, **NOTHING | {"retention_age": 1.0}, keep_after=ALL)
        assert await left(journal) == [2]
    async with opened() as (journal, recovered):
        assert recovered.current == {"B": 2}
        assert await journal.append([note("A")]) == 3
    async with opened() as (_, recovered):
        assert recovered.current == {"A": 3, "B": 2}


async def test_the_oldest_go_until_the_size_fits(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note("A", "x" * 1000)] * 3000)
        pruned = await journal.prune(1.0, **NOTHING | {"retention_bytes": 1_500_000}, keep_after=ALL)
        kept = await left(journal)
        assert pruned.entries == 3000 - len(kept)
        assert kept == list(range(3001 - len(kept), 3001))
        assert 800 < len(kept) < 1400


async def test_offsets_are_not_used_again_when_the_end_of_the_log_is_removed(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note(None, time=1.0)] * 5)
        await journal.prune(1e6, **NOTHING | {"retention_age": 1.0}, keep_after=ALL)
        assert await left(journal) == []
    async with opened() as (journal, recovered):
        assert recovered.next_offset == 6


async def test_old_message_ids_go_and_so_do_those_from_a_clock_set_back(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        for number, time in enumerate((100.0, 950.0, 1040.0, 5000.0)):
            await journal.append([note("A", message_id=f"m{number}", time=time)])
        pruned = await journal.prune(1000.0, **NOTHING | {"id_window": 100.0}, keep_after=0)
        assert pruned.message_ids == 2
    async with opened() as (_, recovered):
        assert [entry.id for entry in recovered.message_ids] == ["m1", "m2"]


async def test_topics_without_entries_are_removed_and_can_come_back(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note(f"T{i}", time=1.0) for i in range(20)])
        await asyncio.gather(*[journal.forget_current(f"T{i}") for i in range(20)])
        await journal.scan(0, limit=1, topics=["T3"])
        await journal.prune(1e6, **NOTHING | {"retention_age": 1.0}, keep_after=ALL)
        assert await journal.append([note("T3"), note("T4")]) == 21
        scan = await journal.scan(0, limit=9, topics=["T3", "T5"])
        assert [entry.offset for entry in scan.entries] == [21]
    async with opened() as (_, recovered):
        assert recovered.current == {"T3": 21, "T4": 22}


async def test_the_long_queue_of_a_deleted_pull_point_goes_step_by_step(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note("A", time=1.0)] * 9000)
        await journal.put_pull_point(PullPointRecord("p", None, 1.0))
        await journal.enqueue("p", [(offset, "s") for offset in range(1, 9001)], {})
        await journal.delete_pull_point("p")
        await journal.prune(1e6, **NOTHING | {"retention_age": 1.0}, keep_after=ALL)
        assert await left(journal) == [9000]


async def test_appends_go_on_while_the_log_is_pruned(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note("A", time=1.0)] * 10_000)
        pruning = journal.prune(1e6, **NOTHING | {"retention_age": 1.0}, keep_after=ALL)
        during = 0
        while not pruning.done():
            await journal.append([note("A", time=1e6)])
            during += 1
        assert (await pruning).entries == 10_000
        assert during >= 3
