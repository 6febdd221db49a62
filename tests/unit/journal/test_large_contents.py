"""Large notifications in the journal: in files that live as long as their rows."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from hpwsn.errors import JournalUnavailable
from hpwsn.journal.store import large_contents
from hpwsn.journal.store.large_contents import LargeContents
from hpwsn.notification import LARGE, LargeRun, Run, with_large_apart
from hpwsn_client.wsn.operations.notifications import MESSAGE_CLOSE
from hpwsn_client.wsn.topics.topic_expressions import Topic
from tests.patience import holds, patience
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


async def test_a_row_whose_file_is_gone_is_passed_over_and_shown(
    opened: Opened, note: Note, path: Path, caplog: pytest.LogCaptureFixture
):
    async with opened() as (journal, _):
        await journal.append([large(), note()])
        assert (journal.state.missing, journal.problem) == (0, None)
        (file,) = files(path)
        moved = file.rename(path.parent / "elsewhere")
        assert [stored.offset for stored in await journal.read([1, 2])] == [2]
        scan = await journal.scan_runs(0, limit=10, topics=["A:B"], head=2, room=1 << 30)
        assert ([first for first, _ in scan.runs], scan.upto) == ([2], 2)
        assert journal.state.missing == 1
        assert "1 large notifications have no content" in str(journal.problem)
        assert [record.levelname for record in caplog.records] == ["ERROR"], "it is logged once"
        assert file.name in caplog.text
        moved.rename(file)
        await prune(journal)
        assert (journal.state.missing, journal.problem) == (0, None)
        assert len(await journal.read([1, 2])) == 2


async def test_a_content_that_retention_removes_is_not_missing(opened: Opened, note: Note, path: Path):
    async with opened() as (journal, _):
        await journal.append([large()])
        await journal.append([note(time=1500.0)])
        files(path)[0].unlink()
        await journal.read([1])
        assert journal.state.missing == 1
        await prune(journal, retention_age=600.0)
        assert (journal.state.missing, journal.problem) == (0, None)


async def test_a_read_that_retention_overtakes_notes_nothing(
    opened: Opened, path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with opened() as (journal, _):
        await journal.append([large()])

        def overtaken(name: str) -> None:
            with closing(sqlite3.connect(path)) as db, db:
                db.execute("DELETE FROM log")

        monkeypatch.setattr(journal._reader, "_read_large", overtaken)
        assert await journal.read([1]) == []
        assert journal.state.missing == 0


async def test_a_backup_of_the_database_and_then_of_the_files_is_whole(
    opened: Opened, path: Path, caplog: pytest.LogCaptureFixture
):
    backup = path.parent.with_name("backup")
    backup.mkdir()
    async with opened() as (journal, _):
        await journal.append([large()])
        with closing(sqlite3.connect(path)) as db, closing(sqlite3.connect(backup / path.name)) as copy:
            db.backup(copy)
        await journal.append([large()])
        shutil.copytree(path.parent / "large", backup / "large")
    shutil.rmtree(path.parent)
    backup.rename(path.parent)
    async with opened() as (journal, _):
        assert [stored.notification.payload for stored in await journal.read([1, 2])] == [PAYLOAD]
        assert journal.state.missing == 0
        assert len(files(path)) == 1
    assert "removed 1 files" in caplog.text


async def test_a_restored_database_without_its_files_is_a_problem_from_the_start(
    opened: Opened, path: Path, caplog: pytest.LogCaptureFixture
):
    async with opened() as (journal, _):
        await journal.append([large(), large()])
    shutil.rmtree(path.parent / "large")
    async with opened() as (journal, _):
        assert journal.state.missing == 2
        assert "2 large notifications have no content" in str(journal.problem)
    assert "2 large notifications have no content" in caplog.text


async def test_an_append_that_is_cancelled_during_its_commit_keeps_the_file(opened: Opened, path: Path):
    async with opened() as (journal, _), patience():
        committing = asyncio.Event()
        append = journal._append

        def noted(*arguments):
            committing.set()
            return append(*arguments)

        journal._append = noted
        task = journal.append([large()])
        await committing.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()
        await holds(lambda: journal.last_offset == 1)
        await prune(journal)
        assert [stored.notification.payload for stored in await journal.read([1])] == [PAYLOAD]
        assert not journal._large._unstored


async def test_an_append_that_is_cancelled_during_its_write_leaves_nothing(
    opened: Opened, path: Path, monkeypatch: pytest.MonkeyPatch
):
    writing, go_on = threading.Event(), threading.Event()
    write = LargeContents._write

    def slow(self: LargeContents, file: Path, content: bytes, mark: bytes) -> None:
        writing.set()
        assert go_on.wait(60)
        write(self, file, content, mark)

    monkeypatch.setattr(LargeContents, "_write", slow)
    async with opened() as (journal, _), patience():
        task = journal.append([large()])
        await holds(writing.is_set)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        go_on.set()
        await holds(lambda: not journal._large._unstored)
        assert files(path) == []
        assert journal.last_offset == 0


@pytest.mark.parametrize(("durability", "count"), [("fsync", 1), ("commit", 0)])
async def test_the_name_of_the_new_directory_is_synced_with_fsync(
    durability: str, count: int, opened: Opened, path: Path, monkeypatch: pytest.MonkeyPatch
):
    synced: list[Path] = []
    monkeypatch.setattr(large_contents, "sync_folder", synced.append)
    async with opened(durability=durability) as (journal, _):
        await journal.append([large()])
        await journal.append([large()])
    assert synced.count(path.parent) == count


async def test_only_the_nodes_user_reads_a_new_data_directory(opened: Opened, path: Path):
    folder = path.parent
    async with opened() as (journal, _):
        await journal.append([large()])
        private = [path, path.with_name(f"{path.name}-wal"), *files(path)]
        assert [file.stat().st_mode & 0o777 for file in private] == [0o600] * 3
        assert [each.stat().st_mode & 0o777 for each in (folder, folder / "large")] == [0o700] * 2
    folder.chmod(0o750)
    path.chmod(0o640)
    async with opened():
        assert [each.stat().st_mode & 0o777 for each in (folder, path)] == [0o750, 0o640]


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
