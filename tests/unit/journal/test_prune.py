"""Retention: what goes, and above all what stays."""

import asyncio
import random
from typing import Any

import pytest

from hpwsn.journal import NO_TOPIC, Journal, PullPointRecord
from hpwsn.journal.retention import pruning

ALL = 10**9
NOTHING: dict[str, Any] = {
    "head": ALL,
    "needs": {},
    "needs_all": None,
    "id_window": 1e9,
    "retention_age": None,
    "retention_bytes": None,
}
STRICT: dict[str, Any] = {"retention_age": 1.0, "retention_bytes": 0}


async def left(journal: Journal) -> list[int]:
    return [entry.offset for entry in await journal.read(range(1, 20_000))]


async def test_entries_beyond_the_age_go_and_younger_ones_stay(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note("A", time=float(i)) for i in range(1, 11)])
        pruned = await journal.prune(100.0, **NOTHING | {"retention_age": 95.0})
        assert (pruned.entries, await left(journal)) == (4, [5, 6, 7, 8, 9, 10])


async def test_no_limits_remove_nothing(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note("A", time=1.0)] * 5)
        assert (await journal.prune(1e9, **NOTHING)).entries == 0


async def test_what_a_topics_readers_have_still_to_see_stays_and_only_that(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note(topic, time=1.0) for topic in ("A", "B", None) * 4])
        needs = {"A": 4, NO_TOPIC: 9, "never published": 0}
        await journal.prune(1e6, **NOTHING | STRICT | {"needs": needs, "head": 11})
        assert await left(journal) == [7, 10, 12]


async def test_a_reader_of_every_topic_keeps_everything_after_it(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note(topic, time=1.0) for topic in ("A", "B") * 4])
        await journal.append([note("A", time=1.0, target="gone")])
        await journal.prune(1e6, **NOTHING | STRICT | {"needs": {"A": 0, "B": 7}, "needs_all": 5})
        assert await left(journal) == [1, 3, 5, 6, 7, 8]


async def test_the_keys_of_topics_are_taken_literally(opened: Any, note: Any) -> None:
    keys = ["{urn:x}京", "{urn:x}T:Ü", "{urn:'}T", "A.B"]
    async with opened() as (journal, _):
        await journal.append([note(key, time=1.0) for key in keys * 2])
        await journal.prune(1e6, **NOTHING | STRICT | {"needs": dict.fromkeys(keys, 4)})
        assert await left(journal) == [5, 6, 7, 8]


async def test_what_was_needed_once_goes_when_it_is_not_needed_any_more(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note(topic, time=1.0) for topic in ("A", "B") * 4])
        await journal.prune(1e6, **NOTHING | STRICT | {"needs": {"A": 0}})
        assert await left(journal) == [1, 3, 5, 7]
        await journal.prune(1e6, **NOTHING | STRICT | {"needs": {"A": 3, "B": 0}})
        assert await left(journal) == [5, 7]
        await journal.prune(1e6, **NOTHING | STRICT)
        assert await left(journal) == []


async def test_what_is_not_committed_or_not_announced_is_out_of_reach(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note("A", time=1.0)] * 3)
        late = journal.append([note("A", time=1.0)])
        await journal.prune(1e6, **NOTHING | STRICT)
        assert await left(journal) == [await late]


async def test_queued_and_buried_entries_stay(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note(topic, time=1.0) for topic in ("A", "B", "A", "A", "A", None)])
        await journal.put_pull_point(PullPointRecord("p", None, 1.0))
        await journal.enqueue("p", [(3, "s")], {})
        await journal.bury("s", [4], "refused", 2.0)
        await journal.prune(1e6, **NOTHING | STRICT)
        assert await left(journal) == [3, 4]
        await asyncio.gather(journal.confirm("p", 99), journal.drop_dead_letters([1]))
        await journal.prune(1e6, **NOTHING | STRICT)
        assert await left(journal) == []


async def test_many_queued_entries_at_the_beginning_of_a_topic_do_not_hide_the_rest(
    opened: Any, note: Any
) -> None:
    async with opened() as (journal, _):
        await journal.append([note("A", time=1.0)] * 100)
        await journal.put_pull_point(PullPointRecord("p", None, 1.0))
        await journal.enqueue("p", [(offset, "s") for offset in range(1, 51)], {})
        await journal.prune(1e6, **NOTHING | STRICT)
        assert await left(journal) == list(range(1, 51))


async def test_a_current_message_goes_by_age_and_never_by_size(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note("A", time=1.0), note("B", time=1.0), note("B", time=90.0)])
        pruned = await journal.prune(100.0, **NOTHING | {"retention_bytes": 0})
        assert (await left(journal), pruned.forgotten) == ([1, 3], ())
        pruned = await journal.prune(100.0, **NOTHING | {"retention_bytes": 0, "retention_age": 50.0})
        assert (await left(journal), pruned.forgotten) == ([3], ("A",))
        pruned = await journal.prune(1000.0, **NOTHING | {"retention_age": 50.0, "needs": {"B": 2}})
        assert (await left(journal), pruned.forgotten) == ([3], ())
    async with opened() as (journal, recovered):
        assert recovered.current == {"B": 3}


async def test_an_older_entry_does_not_become_current_when_the_current_one_has_gone(
    opened: Any, note: Any
) -> None:
    async with opened() as (journal, _):
        await journal.append([note("A", time=1.0), note("A", time=1.0)])
        await journal.bury("s", [1], "refused", 2.0)
        pruned = await journal.prune(1e6, **NOTHING | STRICT)
        assert (await left(journal), pruned.forgotten) == ([1], ("A",))
    async with opened() as (journal, recovered):
        assert recovered.current == {}
        await journal.append([note("A")])
    async with opened() as (_, recovered):
        assert recovered.current == {"A": 3}


async def test_a_topic_that_was_forgotten_is_named_when_its_last_entry_goes(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note("A", time=1.0), note("B", time=1.0), note(None, time=1.0)])
        await journal.forget_current("A")
        pruned = await journal.prune(1e6, **NOTHING | {"retention_bytes": 0})
        assert (await left(journal), pruned.forgotten) == ([2], ("A",))
    async with opened() as (journal, recovered):
        assert recovered.current == {"B": 2}
        assert await journal.append([note("A")]) == 4
    async with opened() as (_, recovered):
        assert recovered.current == {"A": 4, "B": 2}


async def test_of_many_forgotten_topics_each_is_named_once_over_several_prunings(
    opened: Any, note: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "MAX_FORGOTTEN", 2000)
    async with opened() as (journal, _):
        await journal.append([note(f"T{i}", time=1.0) for i in range(5000)])
        named: list[str] = []
        while pruned := (await journal.prune(1e6, **NOTHING | STRICT)).forgotten:
            assert len(pruned) <= 2000
            named += pruned
        assert sorted(named) == sorted(f"T{i}" for i in range(5000))
        assert await left(journal) == []


async def test_a_topic_that_lives_again_before_it_is_named_is_not_named(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note("A", time=1.0), note("B", time=1.0)])
        pruning_it = journal.prune(1e6, **NOTHING | STRICT)
        await asyncio.sleep(0)
        await journal.append([note("B", time=1e6)])
        assert (await pruning_it).forgotten == ("A",)


async def test_a_pruning_that_fails_names_its_topics_with_the_next(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note("A", time=1.0)])
        with pytest.raises(ValueError, match="NaN"):
            await journal.prune(1e6, **NOTHING | STRICT | {"id_window": float("nan")})
        assert await left(journal) == []
        assert (await journal.prune(1e6, **NOTHING | STRICT)).forgotten == ("A",)
        assert (await journal.prune(1e6, **NOTHING | STRICT)).forgotten == ()


async def test_a_large_protected_beginning_does_not_hide_what_may_go(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note("dead", time=1.0)] * 3000 + [note("A", time=1.0)] * 10)
        await journal.append([note("dead", time=1.0)] * 3000 + [note("A", time=1.0)] * 10)
        before = journal.state.commits
        pruned = await journal.prune(1e6, **NOTHING | STRICT | {"needs": {"dead": 0}})
        assert pruned.entries == 20
        assert journal.state.commits - before < 20


@pytest.mark.parametrize("seed", range(8))
async def test_pruning_by_age_and_size_removes_exactly_what_a_simple_rule_would(
    opened: Any, note: Any, seed: int
) -> None:
    dice = random.Random(seed)
    topics = [f"T{dice.randrange(40)}" for _ in range(4000)]
    times = [float(offset) + dice.randrange(-20, 20) for offset in range(1, 4001)]
    needs = {f"T{i}": dice.randrange(4000) for i in range(0, 40, 3)}
    needs_all = dice.choice([None, 3500])
    head, age = dice.randrange(3000, 4001), dice.choice([None, 1500.0])
    kept = {offset for offset in range(1, 4001) if dice.random() < 0.05}
    async with opened() as (journal, _):
        await journal.append([note(t, time=time) for t, time in zip(topics, times, strict=True)])
        await journal.bury("s", sorted(kept), "refused", 1.0)
        bounds = {"head": head, "needs": needs, "needs_all": needs_all}
        size = dice.choice([None, 0])
        pruned = await journal.prune(
            4000.0, **NOTHING | bounds | {"retention_age": age, "retention_bytes": size}
        )
        last = {topic: offset for offset, topic in enumerate(topics, 1)}

        def stays(offset: int) -> bool:
            topic, old = topics[offset - 1], age is not None and times[offset - 1] < 4000 - age
            needed = offset > min(head, needs.get(topic, head), head if needs_all is None else needs_all)
            return needed or offset in kept or (not old and (size is None or last[topic] == offset))

        assert await left(journal) == [offset for offset in range(1, 4001) if stays(offset)]
        assert set(pruned.forgotten) == {topic for topic, offset in last.items() if not stays(offset)}


async def test_the_oldest_go_until_the_size_fits(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note("A", "x" * 1000)] * 3000)
        pruned = await journal.prune(1.0, **NOTHING | {"retention_bytes": 1_500_000})
        kept = await left(journal)
        assert pruned.entries == 3000 - len(kept)
        assert kept == list(range(3001 - len(kept), 3001))
        assert 800 < len(kept) < 1400


async def test_offsets_are_not_used_again_when_the_end_of_the_log_is_removed(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note(None, time=1.0)] * 5)
        await journal.prune(1e6, **NOTHING | {"retention_age": 1.0})
        assert await left(journal) == []
    async with opened() as (journal, recovered):
        assert recovered.next_offset == 6


async def test_old_message_ids_go_and_so_do_those_from_a_clock_set_back(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        for number, time in enumerate((100.0, 950.0, 1040.0, 5000.0)):
            await journal.append([note("A", message_id=f"m{number}", time=time)])
        pruned = await journal.prune(1000.0, **NOTHING | {"id_window": 100.0})
        assert pruned.message_ids == 2
    async with opened() as (_, recovered):
        assert [entry.id for entry in recovered.message_ids] == ["m1", "m2"]


async def test_topics_without_entries_are_removed_and_can_come_back(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note(f"T{i}", time=1.0) for i in range(20)])
        await journal.scan(0, limit=1, topics=["T3"])
        await journal.prune(1e6, **NOTHING | {"retention_age": 1.0})
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
        await journal.prune(1e6, **NOTHING | {"retention_age": 1.0})
        assert await left(journal) == []


async def test_appends_go_on_while_the_log_is_pruned(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note("A", time=1.0)] * 10_000)
        pruning = journal.prune(1e6, **NOTHING | {"retention_age": 1.0})
        during = 0
        while not pruning.done():
            await journal.append([note("A", time=1e6)])
            during += 1
        assert (await pruning).entries == 10_000
        assert during >= 3
