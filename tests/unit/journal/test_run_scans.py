"""Reading runs without their notifications, and positions for readers that plan ahead."""

import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hpwsn.journal.store import log_positions
from hpwsn.notification import INTERNAL, split_payloads
from tests.runs import run_of


def numbered(topic: str, first: int, count: int, **more: Any) -> Any:
    return run_of(topic, *[b"<n>%d</n>" % n for n in range(first, first + count)], **more)


async def entries_of(journal: Any, after: int, **more: Any) -> tuple[list[tuple[int, bytes]], int]:
    asked = {"limit": 10_000, "topics": ["A", "B"], "head": 1 << 60, "room": 1 << 30} | more
    scan = await journal.scan_runs(after, **asked)
    pairs = [pair for first, run in scan.runs for pair in enumerate(split_payloads(run.payloads), first)]
    assert all(run.size == len(split_payloads(run.payloads)) for _, run in scan.runs)
    return pairs, scan.upto


async def test_runs_are_cut_at_every_border_as_single_entries_are(opened: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([numbered("A", 1, 5), numbered("C", 6, 2), numbered("B", 8, 300)])
        for _ in range(100):
            after, head, limit = random.randrange(310), random.randrange(310), random.randrange(1, 320)
            topics = random.sample(["A", "B", "C", "nobody"], random.randrange(5))
            plain = await journal.scan(after, limit=limit, topics=topics, head=head)
            expected = [(each.offset, each.notification.payload) for each in plain.entries]
            assert await entries_of(journal, after, limit=limit, topics=topics, head=head) == (
                expected,
                plain.upto,
            )


async def test_a_run_keeps_what_its_notifications_share(opened: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([numbered("A", 1, 3, time=7.25, message_id="x", before=b"<T/>")])
        ((first, run),) = (await journal.scan_runs(1, limit=9, topics=["A"], head=9, room=1 << 20)).runs
        assert (first, str(run.topic), run.time, run.message_id, run.before) == (2, "A", 7.25, "x", b"<T/>")


async def test_a_run_scan_ends_with_the_row_that_fills_the_room(opened: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([run_of("A", b"<n>" + b"x" * 1000 + b"</n>") for _ in range(5)])
        found, upto = await entries_of(journal, 0, room=2500)
        assert ([offset for offset, _ in found], upto) == ([1, 2], 2)
        assert (await entries_of(journal, 2, room=1))[1] == 3


async def test_what_was_posted_to_a_pull_point_is_in_no_run_scan(opened: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([numbered("A", 1, 2, target="p"), numbered("A", 3, 1)])
        assert await entries_of(journal, 0) == ([(3, b"<n>3</n>")], 3)
        assert (await journal.backlog(0, 1, ["A"], 3)).entries == 1


async def test_what_was_internal_is_found_only_by_who_asks_for_it(opened: Any, path: Path) -> None:
    for lifetime in range(2):
        async with opened() as (journal, recovered):
            if not lifetime:
                await journal.append([numbered("A", 1, 200, target=INTERNAL), numbered("A", 201, 1)])
            assert dict(recovered.current) == ({"A": 201} if lifetime else {})
            assert await entries_of(journal, 0) == ([(201, b"<n>201</n>")], 201)
            assert [each.offset for each in (await journal.scan(0, limit=9, topics=None)).entries] == [201]
            assert (await journal.backlog(0, 1, ["A"], 201)).entries == await journal.count(0, None) == 1
            found, _ = await entries_of(journal, 0, internal=True)
            assert [offset for offset, _ in found] == list(range(1, 202))
            assert (await journal.backlog(0, 1, ["A"], 201, internal=True)).entries == 201
            (stored,) = await journal.read([7])
            assert (stored.notification.target, stored.notification.payload) == (INTERNAL, b"<n>7</n>")
            scan = await journal.scan_runs(0, limit=500, topics=["A"], head=201, room=1 << 20, internal=True)
            assert [run.target for _, run in scan.runs] == [INTERNAL, INTERNAL, None]
            with closing(sqlite3.connect(path)) as db:
                assert db.execute("SELECT count(*) FROM log").fetchone() == (3,)  # runs, not single rows


async def test_a_backlog_counts_and_names_the_offset_of_its_nth_entry(opened: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([numbered("A", 1, 5), numbered("C", 6, 2), numbered("B", 8, 300)])
        for _ in range(100):
            after, head, limit = random.randrange(310), random.randrange(308), random.randrange(1, 320)
            found = [offset for offset, _ in (await entries_of(journal, after, head=head))[0]]
            backlog = await journal.backlog(after, limit, ["A", "B"], head)
            upto = found[limit - 1] if len(found) >= limit else max(after, head)
            assert (backlog.entries, backlog.upto) == (len(found), upto)


@pytest.mark.parametrize("searched", [1, 2, 10_000])
async def test_a_time_is_found_though_a_clock_was_set_back(
    opened: Any, monkeypatch: pytest.MonkeyPatch, searched: int
) -> None:
    monkeypatch.setattr(log_positions, "SEARCHED", searched)
    async with opened() as (journal, _):
        assert await journal.since(1.0) == 0
        await journal.append([numbered("A", 1, 3, time=10), numbered("A", 4, 3, time=30)])
        await journal.append([numbered("B", 7, 3, time=20), numbered("A", 10, 1, time=40)])
        for time, offset in ((0, 0), (10, 0), (10.5, 3), (20, 3), (30, 3), (31, 9), (40, 9), (41, 10)):
            assert await journal.since(time) == offset


async def test_the_oldest_offset_follows_what_retention_removes(opened: Any) -> None:
    async with opened() as (journal, _):
        assert await journal.oldest() == 1
        await journal.append([numbered("A", 1, 3, time=1), numbered("A", 4, 3, time=100)])
        await journal.prune(
            60.0, head=6, needs={}, needs_all=None, id_window=0, retention_age=10, retention_bytes=None
        )
        assert await journal.oldest() == 4


async def test_an_entry_has_the_time_of_its_run(opened: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([run_of("A", b"<n/>", b"<n/>", time=10.5), run_of("B", b"<n/>", time=20.0)])
        await journal.append([run_of("A", *[b"<n/>"] * 200, time=30.0)])
        assert await journal.times([1, 2, 3, 4, 203]) == {1: 10.5, 2: 10.5, 3: 20.0, 4: 30.0, 203: 30.0}
        assert await journal.times([204]) == {}
