"""Large notifications in the journal: in files that live as long as their rows."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hpwsn.errors import JournalUnavailable
from hpwsn.notification import LARGE, LargeRun, Run, with_large_apart
from hpwsn_client.wsn.operations.notifications import MESSAGE_CLOSE
from hpwsn_client.wsn.topics.topic_expressions import Topic
from tests.runs import run_of
from tests.unit.journal.conftest import Note, Opened

BEFORE = b"<t/>"
PAYLOAD = b"<big>" + b"x" * LARGE + b"</big>"


def large(payload: bytes = PAYLOAD, message_id: str | None = None) -> LargeRun:
    content = BEFORE + payload + MESSAGE_CLOSE
    return LargeRun(Topic.parse("A:B"), content, len(BEFORE), 1000.5, message_id)


def files(path: Path) -> list[Path]:
    return list((path.parent / "large").iterdir())


async def prune(journal, **limits) -> None:
    given = {"retention_age": None, "retention_bytes": None, "id_window": 0.0} | limits
    await journal.prune(2000.0, head=journal.last_offset, needs={}, needs_all=None, **given)


async def test_a_large_notification_is_read_as_it_was_written_also_after_a_restart(
    opened: Opened, note: Note, path: Path
):
    run = large(message_id="m1")
    async with opened() as (journal, _):
        assert await journal.append([note(text="1"), run, note(text="2")]) == 1
        assert len(files(path)) == 1
        assert journal.state.waiting_bytes == 0
    async with opened() as (journal, recovered):
        assert [found.id for found in recovered.message_ids] == ["m1"]
        one, two, three = await journal.read([1, 2, 3])
        assert two.notification == run.first
        assert (one.notification.payload, three.notification.payload) == (b"<m>1</m>", b"<m>2</m>")
        scan = await journal.scan_runs(0, limit=10, topics=["A:B"], head=3, room=1 << 30)
        assert [found.payloads for _, found in scan.runs][1] == run.payloads
        scan = await journal.scan_runs(0, limit=10, topics=["A:B"], head=3, room=1000)
        assert (len(scan.runs), scan.upto) == (1, 1)


async def test_its_file_goes_with_its_row(opened: Opened, note: Note, path: Path):
    async with opened() as (journal, _):
        await journal.append([large()])
        await journal.append([note(time=1500.0)])
        await prune(journal, retention_age=600.0)
        assert await journal.read([1]) == []
        assert files(path) == []


async def test_its_bytes_count_for_the_retention_by_size(opened: Opened, note: Note, path: Path):
    async with opened() as (journal, _):
        await journal.append([large()])
        await journal.append([note()])
        await prune(journal, retention_bytes=LARGE)
        assert files(path) == []
        assert [stored.offset for stored in await journal.read([1, 2])] == [2]


async def test_a_file_without_a_row_is_removed_at_the_start(opened: Opened, path: Path):
    async with opened() as (journal, _):
        await journal.append([large()])
        (kept,) = files(path)
    (path.parent / "large" / ("0" * 32)).write_bytes(b"left over")
    async with opened():
        assert files(path) == [kept]


async def test_a_row_whose_file_is_gone_is_passed_over(opened: Opened, note: Note, path: Path):
    async with opened() as (journal, _):
        await journal.append([large(), note()])
        files(path)[0].unlink()
        assert [stored.offset for stored in await journal.read([1, 2])] == [2]
        scan = await journal.scan_runs(0, limit=10, topics=["A:B"], head=2, room=1 << 30)
        assert ([first for first, _ in scan.runs], scan.upto) == ([2], 2)


async def test_what_does_not_fit_is_refused_and_leaves_nothing(opened: Opened, note: Note, path: Path):
    async with opened(max_bytes=LARGE + 1000) as (journal, _):
        assert await journal.append([large()]) == 1
        with pytest.raises(JournalUnavailable, match=r"journal\.max_bytes"):
            await journal.append([large()])
        assert len(files(path)) == 1
        assert await journal.append([note()]) == 2


async def test_smaller_appends_do_not_wait_for_a_large_one(opened: Opened, note: Note):
    async with opened(max_waiting=2000) as (journal, _):
        slow = journal.append([large()])
        small = await asyncio.gather(*[journal.append([note()]) for _ in range(3)])
        assert sorted([*small, await slow]) == [1, 2, 3, 4]


def test_large_members_of_a_run_are_set_apart_in_order():
    run = run_of("A:B", b"<m/>", before=BEFORE)
    other = run_of("A:B", PAYLOAD, before=BEFORE)
    mixed = Run(run.topic, BEFORE, run.payloads + other.payloads + run.payloads * 2, 4, 5.0, "m")
    parts = with_large_apart([mixed])
    assert [(part.large, part.size, part.message_id, part.time) for part in parts] == [
        (False, 1, "m", 5.0),
        (True, 1, "m", 5.0),
        (False, 2, "m", 5.0),
    ]
    assert [each for part in parts for each in part] == mixed.members
    assert parts[1].content_size == len(mixed.members[1].content)
    assert with_large_apart([run]) == [run]
