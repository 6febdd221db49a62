"""Scans: the right entries in order, and how far they have looked."""

import asyncio
import random
from typing import Any

import pytest

from hpwsn.journal import NO_TOPIC
from hpwsn.journal.store import reader


async def test_a_scan_gives_the_topics_asked_for_and_looks_to_the_end(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note(topic) for topic in ("A", "B", "C", "A", "B", "C")])
        scan = await journal.scan(1, limit=10, topics={"A", "B", "nobody"})
        assert [entry.offset for entry in scan.entries] == [2, 4, 5]
        assert scan.upto == 6


async def test_a_full_scan_has_looked_no_further_than_its_last_entry(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note("A")] * 10)
        scan = await journal.scan(0, limit=4, topics=["A"])
        assert ([entry.offset for entry in scan.entries], scan.upto) == ([1, 2, 3, 4], 4)


async def test_a_scan_at_the_end_stays_where_it_is(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        assert await journal.scan(0, limit=4, topics=None) == await journal.scan(0, limit=4, topics=["A"])
        await journal.append([note("A")])
        assert (await journal.scan(7, limit=4, topics=None)).upto == 7
        assert (await journal.scan(0, limit=4, topics=["B"])).upto == 1
        assert (await journal.scan(0, limit=4, topics=[])).upto == 1


async def test_messages_without_a_topic_have_the_empty_key(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note("A"), note(None), note("A")])
        assert [e.offset for e in (await journal.scan(0, limit=9, topics=[NO_TOPIC])).entries] == [2]
        assert [e.offset for e in (await journal.scan(0, limit=9, topics=None)).entries] == [1, 2, 3]


async def test_what_was_posted_to_a_pull_point_is_seen_only_with_it_as_target(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append(
            [note("A"), note("A", target="p"), note(None, target="p"), note("A", target="q")]
        )

        async def offsets(**arguments: Any) -> list[int]:
            return [entry.offset for entry in (await journal.scan(0, limit=9, **arguments)).entries]

        assert await offsets(topics=None) == [1]
        assert await offsets(topics=["A"]) == [1]
        assert await offsets(topics=None, target="p") == [2, 3]
        assert await offsets(topics=["A"], target="p") == [2]
        assert await offsets(topics=None, target="unknown") == []


async def test_walking_by_scans_meets_every_matching_entry_once(opened: Any, note: Any) -> None:
    dice = random.Random(5)
    topics = [f"T{dice.randrange(300)}" for _ in range(6000)]
    wanted = {f"T{i}" for i in range(0, 300, 7)} | {f"never{i}" for i in range(3000)}
    async with opened() as (journal, _):
        await asyncio.gather(*[journal.append([note(topic)]) for topic in topics])
        met: list[int] = []
        after = 0
        while (scan := await journal.scan(after, limit=100, topics=wanted)).upto > after:
            met += [entry.offset for entry in scan.entries]
            after = scan.upto
    assert met == [offset for offset, topic in enumerate(topics, 1) if topic in wanted]


async def test_a_rare_topic_in_a_long_log_is_found_by_one_scan(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note("rare"), *[note("often")] * 9000, note("rare")])
        scan = await journal.scan(1, limit=5, topics=["rare"])
        assert ([entry.offset for entry in scan.entries], scan.upto) == ([9002], 9002)


async def test_large_entries_come_in_several_scans_and_several_reads(
    opened: Any, note: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "MAX_BYTES", 5000)
    async with opened() as (journal, _):
        await journal.append([note("A", str(i) * 2000) for i in range(5)] + [note("A", "x" * 9000)])
        first = await journal.scan(0, limit=6, topics=["A"])
        assert ([entry.offset for entry in first.entries], first.upto) == ([1, 2], 2)
        last = await journal.scan(5, limit=6, topics=["A"])
        assert ([entry.offset for entry in last.entries], last.upto) == ([6], 6)
        assert [entry.offset for entry in await journal.read(range(1, 7))] == [1, 2]
        assert [entry.offset for entry in await journal.read([6])] == [6]


async def test_scans_during_appends_never_pass_over_what_is_not_committed(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        met: list[int] = []

        async def follow() -> None:
            after = 0
            while after < 2000:
                scan = await journal.scan(after, limit=64, topics=["odd"])
                met.extend(entry.offset for entry in scan.entries)
                after = scan.upto

        async def publish() -> None:
            for offset in range(1, 2001):
                future = journal.append([note("odd" if offset % 2 else "even")])
                if offset % 50 == 0:
                    await future

        await asyncio.gather(follow(), publish())
    assert met == list(range(1, 2001, 2))


async def test_a_count_is_of_the_topics_asked_for_after_an_offset(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        assert (await journal.count(0, None), await journal.count(0, ["A"])) == (0, 0)
        await journal.append([note(topic) for topic in ("A", "B", None, "A", "C")])
        await journal.append([note("A", target="p")])
        assert (await journal.count(0, None), await journal.count(3, None)) == (5, 2)
        assert await journal.count(0, ["A", "A", "nobody"]) == 2
        assert await journal.count(1, ["A", "B", NO_TOPIC]) == 3
        assert (await journal.count(0, []), await journal.count(99, None)) == (0, 0)
