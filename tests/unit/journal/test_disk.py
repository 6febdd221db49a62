"""A real disk with no space: clear errors, nothing lost, room made by pruning, and life after it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hpwsn.errors import JournalUnavailable
from hpwsn.journal import Journal, PullPointRecord, SubscriptionRecord
from tests.patience import patience
from tests.small_disk import mounted

pytestmark = pytest.mark.needs_root

MIB = 1 << 20
BOUNDS: dict[str, Any] = {"needs": {}, "needs_all": None, "id_window": 1, "retention_bytes": None}


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """A journal on a file system of 8 MiB of its own."""
    with mounted(tmp_path / "disk") as folder:
        yield folder / "journal.db"


def large(note: Any, number: int, size: int) -> Any:
    return note("A", f"{number} " + "x" * size, time=float(number))


async def fill(journal: Journal, note: Any, size: int = 1000) -> list[int]:
    """Append triples until one is refused; give the first offsets of those that were acknowledged."""
    firsts: list[int] = []
    while True:
        try:
            firsts.append(await journal.append([large(note, len(firsts), size)] * 3))
        except JournalUnavailable as error:
            assert "is full" in error.reason
            assert "free space in" in error.reason
            return firsts


def occupy(path: Path) -> Path:
    """Take all the space that is left."""
    filler = path.with_name("filler")
    try:
        with filler.open("ab", buffering=0) as file:
            while True:
                file.write(b"\0" * 4096)
    except OSError:
        return filler


async def check(journal: Journal, firsts: list[int], size: int) -> None:
    for number, first in enumerate(firsts):
        stored = await journal.read(range(first, first + 3))
        text = f"<m>{number} {'x' * size}</m>".encode()
        assert [entry.notification.payload for entry in stored] == [text] * 3


@pytest.mark.parametrize("size", [1000, 100_000])
async def test_all_that_was_acknowledged_on_a_full_disk_is_there_now_and_after_a_restart(
    opened: Any, note: Any, size: int
) -> None:
    async with opened(reserve=MIB) as (journal, _):
        firsts = await fill(journal, note, size)
        # At once: the journal looks for itself now and then whether there is room again.
        assert journal.state.unavailable is not None
        assert len(firsts) > 5
        await check(journal, firsts, size)
    async with opened(reserve=MIB) as (journal, recovered):
        assert recovered.next_offset == firsts[-1] + 3
        await check(journal, firsts, size)


@pytest.mark.parametrize("size", [1000, 20_000])
async def test_pruning_makes_room_on_a_full_disk_and_appends_go_on(opened: Any, note: Any, size: int) -> None:
    async with opened(reserve=MIB) as (journal, _):
        await journal.put_subscription(SubscriptionRecord("s", b"", "1.1", 0.0))
        for _ in range(3):
            firsts = await fill(journal, note, size)
            head = journal.last_offset - 30
            pruned = await journal.prune(1e9, head=head, retention_age=1.0, **BOUNDS)
            assert pruned.entries > 20
            journal.advance("s", head)
            assert await journal.append([note("A", "back")]) > firsts[-1]
            assert journal.state.unavailable is None
        left = await journal.scan(0, limit=9999, topics=None)
        assert len(left.entries) == 31
    async with opened(reserve=MIB) as (_, recovered):
        assert next(iter(recovered.subscriptions)).cursor == head


async def test_a_disk_filled_by_others_lets_cursors_move_and_queues_shrink(
    opened: Any, note: Any, path: Path
) -> None:
    async with opened(reserve=MIB) as (journal, _):
        await journal.put_subscription(SubscriptionRecord("s", b"", "1.1", 0.0))
        await journal.put_pull_point(PullPointRecord("p", None, 1.0))
        await journal.append([note("A", time=1.0)] * 500)
        await journal.enqueue("p", [(offset, "s") for offset in range(1, 501)], {})
        filler = occupy(path)
        await fill(journal, note)
        journal.advance("s", 400)
        assert await journal.trim("p", 100) == 400
        assert await journal.confirm("p", 10_000) == 100
        await journal.delete_subscription("nobody")
        with pytest.raises(JournalUnavailable, match="is full"):
            await journal.put_subscription(SubscriptionRecord("t", b"x" * 9000, "1.1", 0.0))
        occupy(path)
        with pytest.raises(JournalUnavailable, match="is full"):
            await journal.append([note("A")])
        filler.unlink()
        await journal.append([note("A", "back")])
        await journal.put_subscription(SubscriptionRecord("t", b"", "1.1", 0.0))
    async with opened(reserve=MIB) as (journal, recovered):
        assert {record.id: record.cursor for record in recovered.subscriptions} == {"s": 400, "t": 0}
        assert await journal.queue_length("p") == 0


async def test_space_that_is_back_is_noticed_without_an_append(opened: Any, note: Any, path: Path) -> None:
    async with opened(reserve=MIB) as (journal, _):
        filler = occupy(path)
        await fill(journal, note)
        occupy(path)
        assert journal.state.unavailable is not None
        filler.unlink()
        async with patience():
            while journal.state.unavailable is not None:  # noqa: ASYNC110 (it is a figure, not an event)
                await asyncio.sleep(0.02)


async def test_a_journal_opens_on_a_full_disk_and_can_be_read_and_pruned(
    opened: Any, note: Any, path: Path
) -> None:
    async with opened(reserve=MIB) as (journal, _):
        firsts = await fill(journal, note)
        await journal.prune(1e9, head=firsts[20], retention_age=1.0, **BOUNDS)
        last = await journal.append([note("A", "last")])
    filler = occupy(path)
    async with opened(reserve=MIB) as (journal, recovered):
        assert recovered.next_offset == last + 1
        assert [entry.offset for entry in await journal.read([last])] == [last]
        assert (await journal.prune(1e9, head=firsts[40], retention_age=1.0, **BOUNDS)).entries > 0
        filler.unlink()
        assert await journal.append([note("A")]) == last + 1
