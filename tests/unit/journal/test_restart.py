"""Restarts: a clean end, kill -9 under load, and files that must not be opened."""

import asyncio
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from hpwsn.errors import DataDirectoryInUse, JournalDamaged, JournalTooNew, JournalUnavailable
from hpwsn.journal import Journal, MessageId, PullPointRecord, SubscriptionRecord
from hpwsn.journal.store.tables import VERSION
from hpwsn_client.wsn.operations.notifications import MESSAGE_CLOSE
from tests.patience import patience
from tests.unit.journal import appender


async def test_everything_is_there_after_a_restart(opened: Any, note: Any) -> None:
    subscription = SubscriptionRecord("s", b"<wsnt:Subscribe/>", "1.2", 5.5, 99.25, True, 1, "p")
    pull_point = PullPointRecord("p", "mine", 6.5, None, 0)
    async with opened() as (journal, _):
        await journal.append([note("A", message_id="m1", time=10.0), note("A", message_id="m1", time=10.0)])
        await journal.append([note("B", message_id="m2", time=20.0)])
        await journal.append([note(None), note("C", target="p")])
        await asyncio.gather(journal.put_subscription(subscription), journal.put_pull_point(pull_point))
        journal.advance("s", 3)
        journal.advance("p", 5)
    async with opened() as (journal, recovered):
        assert recovered.next_offset == 6
        assert list(recovered.subscriptions) == [
            SubscriptionRecord("s", b"<wsnt:Subscribe/>", "1.2", 5.5, 99.25, True, 3, "p")
        ]
        assert recovered.pull_points == [PullPointRecord("p", "mine", 6.5, None, 5)]
        assert recovered.current == {"A": 2, "B": 3}
        assert recovered.message_ids == [MessageId("m1", 10.0, 1, 2), MessageId("m2", 20.0, 3, 3)]
        assert await journal.append([note("A")]) == 6
    async with opened(ids_since=15.0) as (_, recovered):
        assert [entry.id for entry in recovered.message_ids] == ["m2"]
        assert recovered.current == {"A": 6, "B": 3}


async def test_subscriptions_come_back_in_the_order_that_they_were_made(opened: Any) -> None:
    made = [SubscriptionRecord(f"s{n * 7 % 10}", b"<a/>", "1.1", float(n // 2)) for n in range(10)]
    async with opened() as (journal, _):
        await asyncio.gather(*map(journal.put_subscription, reversed(made)))
    async with opened() as (_, recovered):
        assert list(recovered.subscriptions) == sorted(made, key=lambda record: (record.created, record.id))


async def test_a_cursor_is_written_soon_without_any_other_change(opened: Any, path: Path) -> None:
    async with opened() as (journal, _):
        await journal.put_subscription(SubscriptionRecord("s", b"", "1.1", 0.0))
        journal.advance("s", 7)
        journal.advance("s", 5)
        async with patience():
            while _cursors(path) != [("s", 7)]:  # noqa: ASYNC110 (another connection tells nobody)
                await asyncio.sleep(0.01)


async def test_a_changed_subscription_keeps_a_cursor_that_is_further(opened: Any, path: Path) -> None:
    async with opened() as (journal, _):
        await journal.put_subscription(SubscriptionRecord("s", b"", "1.1", 0.0, cursor=9))
        await journal.put_subscription(SubscriptionRecord("s", b"", "1.1", 0.0, paused=True, cursor=4))
        assert _cursors(path) == [("s", 9)]


async def test_a_deleted_subscription_does_not_come_back_by_its_cursor(opened: Any, path: Path) -> None:
    async with opened() as (journal, _):
        await journal.put_subscription(SubscriptionRecord("s", b"", "1.1", 0.0))
        journal.advance("s", 7)
        await journal.delete_subscription("s")
        journal.advance("s", 8)
    assert _cursors(path) == []
    async with opened() as (_, recovered):
        assert list(recovered.subscriptions) == []


@pytest.mark.parametrize("lines", [1, 40, 400])
async def test_every_acknowledged_append_survives_kill_9(opened: Any, path: Path, lines: int) -> None:
    acknowledged = {first: number for first, number, _ in appender.kill_after(path, lines)}
    assert len(acknowledged) >= lines
    async with opened() as (journal, recovered):
        assert recovered.next_offset > max(acknowledged) + 2
        wanted = [offset + i for offset in acknowledged for i in range(3)]
        stored = {entry.offset: entry.notification for entry in await journal.read(wanted)}
        for first, number in acknowledged.items():
            content = b"<m>%d</m>" % number * 18 + MESSAGE_CLOSE
            assert [stored[first + i].content for i in range(3)] == [content] * 3
        everything = await journal.read(range(1, recovered.next_offset))
        assert len(everything) == recovered.next_offset - 1
        assert len(everything) % 3 == 0


async def test_a_second_opener_is_refused_until_the_first_is_gone(opened: Any, path: Path) -> None:
    async with opened():
        with pytest.raises(DataDirectoryInUse, match=f"process {os.getpid()}.*--data"):
            await Journal(path).open()
    async with opened() as (_, recovered):
        assert recovered.next_offset == 1


async def test_another_process_keeps_the_directory_until_it_is_killed(opened: Any, path: Path) -> None:
    holder = appender.start(path)
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(DataDirectoryInUse, match=f"process {holder.pid}"):
            await Journal(path).open()
    finally:
        holder.kill()
        holder.communicate()
    async with opened() as (_, recovered):
        assert recovered.next_offset > 1


async def test_a_newer_file_is_refused_with_both_versions(opened: Any, path: Path) -> None:
    async with opened():
        pass
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 77")
    db.close()
    with pytest.raises(JournalTooNew, match=f"version 77, this HPwsn supports versions up to {VERSION}"):
        await Journal(path).open()


async def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"not a database" * 1000)
    with pytest.raises(JournalDamaged, match=r"journal\.db cannot be used.*move both files away"):
        await Journal(path).open()
    assert path.read_bytes() == b"not a database" * 1000


async def test_the_database_of_something_else_is_refused(path: Path) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE cats (name)")
    db.close()
    with pytest.raises(JournalDamaged, match="another program"):
        await Journal(path).open()


async def test_a_damaged_page_is_refused_with_the_file_and_the_remedy(
    opened: Any, note: Any, path: Path
) -> None:
    async with opened() as (journal, _):
        await journal.append([note(text="x" * 900) for _ in range(500)])
    data = bytearray(path.read_bytes())
    for page in range(8192, len(data), 4096):
        data[page : page + 64] = b"\xff" * 64
    path.write_bytes(data)
    with pytest.raises(JournalDamaged, match=r"journal\.db"):
        await Journal(path).open()


async def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalUnavailable, match="file/data"):
        await Journal(tmp_path / "file" / "data" / "journal.db").open()


def _cursors(path: Path) -> list[tuple[str, int]]:
    db = sqlite3.connect(path)
    try:
        return db.execute("SELECT id, offset FROM cursors ORDER BY id").fetchall()
    finally:
        db.close()
