"""No space, no lock: clear errors, nothing lost, nothing half, and life goes on afterwards."""

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from hpwsn.errors import JournalUnavailable
from hpwsn.journal import Journal, SubscriptionRecord


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
        assert recovered.subscriptions[0].cursor == firsts[-1]


async def test_durability_none_stops_promising_after_a_failure(opened: Any, note: Any) -> None:
    async with opened(max_bytes=400_000, durability="none") as (journal, _):
        async with asyncio.timeout(20):
            while journal.state.unavailable is None:
                await journal.append([note("A", "x" * 1000)])
                await asyncio.sleep(0)
        assert journal.state.lost > 0
        with pytest.raises(JournalUnavailable, match="full"):
            await journal.append([note("A", "x" * 1000)] * 50)


async def test_a_database_locked_by_another_program_is_said_and_survived(
    opened: Any, note: Any, path: Path
) -> None:
    async with opened() as (journal, _):
        await journal.put_subscription(SubscriptionRecord("s", b"", "1.1", 0.0))
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        journal.advance("s", 3)
        results = await asyncio.gather(*[journal.append([note()]) for _ in range(3)], return_exceptions=True)
        assert all(isinstance(result, JournalUnavailable) and "locked" in result.reason for result in results)
        other.execute("ROLLBACK")
        other.close()
        assert await journal.append([note()]) == 4
    async with opened() as (_, recovered):
        assert recovered.subscriptions[0].cursor == 3
