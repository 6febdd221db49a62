"""No space, no lock: clear errors, nothing lost, nothing half, and life goes on afterwards."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hpwsn.errors import JournalUnavailable
from hpwsn.journal import Journal, SubscriptionRecord
from tests.patience import patience
from tests.unit.journal import appender

HOLDER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute(sys.argv[2])
print("locked", flush=True)
sys.stdin.read()
db.execute("ROLLBACK")
db.close()
"""


async def fill(journal: Journal, note: Any) -> list[int]:
    """Append triples until one is refused; give the offsets that were acknowledged."""
    firsts: list[int] = []
    while True:
        try:
            firsts.append(await journal.append([note("A", "x" * 1000, time=float(len(firsts)))] * 3))
        except JournalUnavailable as error:
            assert "full" in error.reason
            assert "free space" in error.reason
            return firsts


async def test_a_full_journal_refuses_clearly_and_keeps_what_it_has(opened: Any, note: Any) -> None:
    async with opened(max_bytes=400_000) as (journal, _):
        firsts = await fill(journal, note)
        assert len(firsts) > 50
        stored = await journal.read(range(1, firsts[-1] + 10))
        assert [entry.offset for entry in stored] == list(range(1, firsts[-1] + 3))
        assert journal.state.unavailable is not None
        assert journal.state.last_offset == firsts[-1] + 2
    async with opened() as (journal, recovered):
        assert recovered.next_offset == firsts[-1] + 3


async def test_it_goes_on_without_a_restart_when_space_is_back(opened: Any, note: Any) -> None:
    async with opened(max_bytes=400_000) as (journal, _):
        firsts = await fill(journal, note)
        pruned = await journal.prune(
            1e6,
            head=firsts[30],
            needs={},
            needs_all=None,
            id_window=1,
            retention_age=10.0,
            retention_bytes=None,
        )
        assert pruned.entries == firsts[30]
        again = await journal.append([note("A", "back")])
        assert [entry.notification.payload for entry in await journal.read([again])] == [b"<m>back</m>"]
        assert journal.state.unavailable is None


async def test_one_that_is_too_large_takes_no_other_with_it(opened: Any, note: Any) -> None:
    async with opened(max_bytes=400_000) as (journal, _):
        small = [journal.append([note("A", "x" * 100)]) for _ in range(5)]
        large = journal.append([note("A", "x" * 1000)] * 1000)
        record = journal.put_subscription(SubscriptionRecord("s", b"", "1.1", 0.0))
        late = journal.append([note("A", "late")])
        assert await asyncio.gather(*small, late) == [1, 2, 3, 4, 5, 1006]
        await record
        with pytest.raises(JournalUnavailable, match="full"):
            await large
        scan = await journal.scan(0, limit=100, topics=None)
        assert [entry.offset for entry in scan.entries] == [1, 2, 3, 4, 5, 1006]


async def test_cursors_move_in_a_full_journal(opened: Any, note: Any) -> None:
    async with opened(max_bytes=400_000) as (journal, _):
        await journal.put_subscription(SubscriptionRecord("s", b"", "1.1", 0.0))
        firsts = await fill(journal, note)
        journal.advance("s", firsts[-1])
    async with opened() as (_, recovered):
        assert next(iter(recovered.subscriptions)).cursor == firsts[-1]


async def test_durability_none_stops_promising_after_a_failure(opened: Any, note: Any) -> None:
    async with opened(max_bytes=400_000, durability="none") as (journal, _):
        async with patience():
            while journal.state.unavailable is None:
                await journal.append([note("A", "x" * 1000)])
                await asyncio.sleep(0)
        assert journal.state.lost > 0
        with pytest.raises(JournalUnavailable, match="full"):
            await journal.append([note("A", "x" * 1000)] * 50)


async def test_a_journal_at_its_size_limit_is_available_again_once_there_is_room(
    opened: Any, note: Any
) -> None:
    async with opened(max_bytes=440_000) as (journal, _):
        firsts = await fill(journal, note)
        limits: dict[str, Any] = {"id_window": 1, "retention_age": None, "retention_bytes": 100_000}
        await journal.prune(1e6, head=firsts[-1], needs={}, needs_all=None, **limits)
        async with patience():
            while journal.state.unavailable is not None:  # noqa: ASYNC110 (it is a figure, not an event)
                await asyncio.sleep(0.02)


@pytest.mark.parametrize("statement", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
async def test_a_database_locked_by_another_process_is_said_within_seconds_and_survived(
    opened: Any, note: Any, path: Path, statement: str
) -> None:
    async with opened() as (journal, _):
        await journal.put_subscription(SubscriptionRecord("s", b"", "1.1", 0.0))
        await journal.append([note()])
        with locked(path, statement):
            journal.advance("s", 3)
            async with patience():
                results = await asyncio.gather(
                    *[journal.append([note()]) for _ in range(3000)], return_exceptions=True
                )
            assert all(isinstance(one, JournalUnavailable) and "locked" in one.reason for one in results)
            assert [entry.offset for entry in await journal.read([1, 2])] == [1]
            assert journal.state.unavailable is not None
        assert await journal.append([note()]) == 3002
        assert journal.state.unavailable is None
    async with opened() as (_, recovered):
        assert (next(iter(recovered.subscriptions)).cursor, recovered.next_offset) == (3, 3003)


async def test_a_database_that_is_free_again_is_noticed_without_an_append(
    opened: Any, note: Any, path: Path
) -> None:
    async with opened() as (journal, _):
        with locked(path, "BEGIN IMMEDIATE"):
            with pytest.raises(JournalUnavailable, match="locked"):
                await journal.append([note()])
            assert journal.state.unavailable is not None
        async with patience():
            while journal.state.unavailable is not None:  # noqa: ASYNC110 (it is a figure, not an event)
                await asyncio.sleep(0.02)


@contextmanager
def locked(path: Path, statement: str) -> Iterator[None]:
    """Another process with a transaction on the file."""
    holder = appender.run(HOLDER, str(path), statement)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "locked\n"
    try:
        yield
    finally:
        assert holder.communicate() == ("", "")
