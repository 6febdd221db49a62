"""Offsets beyond a cursor are stored with it, survive a restart, and go as the cursor passes them."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from hpwsn.journal import Journal, PullPointRecord
from hpwsn.journal.store.records import SubscriptionRecord
from tests.patience import eventually


async def subscribed(journal: Journal, *ids: str) -> None:
    for id_ in ids:
        await journal.put_subscription(SubscriptionRecord(id_, b"", "1.1", 0.0))


def ahead_of(recovered: Any) -> dict[str, tuple[int, tuple[int, ...]]]:
    """The cursor and what is ahead of it, by subscription."""
    return {each.id: (each.cursor, each.ahead) for each in recovered.subscriptions}


def rows(path: Path) -> int:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return int(db.execute("SELECT count(*) FROM delivered_ahead").fetchone()[0])


async def test_they_are_there_after_a_restart(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await subscribed(journal, "s", "t")
        await journal.append([note()] * 9)
        journal.advance("s", 2)
        journal.advance_ahead("s", [9, 4])
        journal.advance_ahead("s", [4, 6])
        journal.advance("t", 5)
    async with opened() as (_, recovered):
        assert ahead_of(recovered) == {"s": (2, (4, 6, 9)), "t": (5, ())}


async def test_the_cursor_takes_along_what_it_passes(opened: Any, note: Any, path: Path) -> None:
    async with opened() as (journal, _):
        await subscribed(journal, "s", "t")
        await journal.append([note()] * 9)
        journal.advance_ahead("s", [4, 6, 9])
        journal.advance_ahead("t", [4])

        async def stored() -> bool:
            return rows(path) == 4

        await eventually(stored)
        journal.advance("s", 6)
        journal.advance_ahead("s", [5])
    async with opened() as (_, recovered):
        assert ahead_of(recovered) == {"s": (6, (9,)), "t": (0, (4,))}
    assert rows(path) == 2


async def test_they_end_with_the_subscription_and_do_not_come_back(
    opened: Any, note: Any, path: Path
) -> None:
    async with opened() as (journal, _):
        await subscribed(journal, "s")
        await journal.append([note()] * 3)
        journal.advance_ahead("s", [2])
        await journal.put_subscription(SubscriptionRecord("s", b"changed", "1.1", 0.0))
        await journal.delete_subscription("s")
        journal.advance_ahead("s", [3])
    async with opened() as (_, recovered):
        assert ahead_of(recovered) == {}
    assert rows(path) == 0


async def test_a_queue_and_a_dead_letter_store_them_in_their_own_transaction(
    opened: Any, note: Any, path: Path
) -> None:
    async with opened() as (journal, _):
        await subscribed(journal, "s")
        await journal.put_pull_point(PullPointRecord("p", None, 1.0))
        await journal.append([note()] * 9)
        await journal.enqueue("p", [(8, "s"), (3, "s")], {"s": 3}, {"s": [8]})
        assert rows(path) == 1
        await journal.bury("s", [6, 4], "no", 1.0, cursor=4, ahead=[6])
        assert rows(path) == 2
        assert [pulled.stored.offset for pulled in await journal.pull("p", 9)] == [8, 3]
    async with opened() as (_, recovered):
        assert ahead_of(recovered) == {"s": (4, (6, 8))}


async def test_what_could_not_be_written_is_written_once_there_is_room(
    opened: Any, note: Any, path: Path
) -> None:
    async with opened() as (journal, _):
        await subscribed(journal, "s")
        await journal.append([note()] * 9)
        blocker = sqlite3.connect(path, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        journal.advance("s", 1)
        journal.advance_ahead("s", [5, 7])

        async def refused() -> bool:
            return journal.state.failures > 0

        await eventually(refused)
        blocker.execute("ROLLBACK")
        blocker.close()

        async def stored() -> bool:
            return rows(path) == 2

        await eventually(stored)
    async with opened() as (_, recovered):
        assert ahead_of(recovered) == {"s": (1, (5, 7))}
