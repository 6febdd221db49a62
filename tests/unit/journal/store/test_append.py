"""Appends: their offsets and order, one commit for many, all of an append or nothing."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from hpwsn.errors import JournalUnavailable
from hpwsn.notification import Run, count_of, members


async def test_offsets_are_consecutive_in_the_order_of_the_calls(opened: Any, note: Any) -> None:
    async with opened() as (journal, recovered):
        futures = [journal.append([note(text=str(i)), note(text="more")]) for i in range(50)]
        assert recovered.next_offset == 1
        assert await asyncio.gather(*futures) == list(range(1, 101, 2))


async def test_what_is_read_is_what_was_appended(opened: Any, note: Any) -> None:
    sent = [
        note("A:B:C", "京", 1.000001, "id-1"),
        note("{urn:x}T:U", "", 2.5),
        note(None, "<&", 3.25),
        note("A", "y", 4.0, None, "pp"),
    ]
    async with opened() as (journal, _):
        await journal.append(sent)
        stored = await journal.read([4, 2, 99, 1, 3])
    assert [entry.offset for entry in stored] == [1, 2, 3, 4]
    assert [entry.notification for entry in stored] == list(members(sent))


async def test_the_hook_sees_every_append_in_log_order_before_its_future_is_done(
    opened: Any, note: Any
) -> None:
    seen: list[tuple[int, int, bool]] = []
    futures: list[asyncio.Future[int]] = []

    def hook(first: int, runs: Sequence[Run]) -> None:
        seen.append((first, count_of(runs), futures[len(seen)].done()))

    async with opened() as (journal, _):
        journal.committed.add(hook)
        futures += [journal.append([note()] * (1 + i % 3)) for i in range(30)]
        await asyncio.gather(*futures)
    firsts = [await future for future in futures]
    assert seen == [(first, 1 + i % 3, False) for i, first in enumerate(firsts)]


async def test_what_waits_while_the_writer_is_busy_shares_one_commit(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note()])
        before = journal.state.commits
        await asyncio.gather(*[journal.append([note()]) for _ in range(1000)])
        assert journal.state.commits - before < 100
        assert journal.state.entries == 1001
        assert journal.state.mean_group > 5


async def test_a_group_is_bounded(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await asyncio.gather(*[journal.append([note()]) for _ in range(5000)])
        assert journal.state.commits >= 3


async def test_an_append_of_thousands_is_stored_whole(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        assert await journal.append([note(text=str(i)) for i in range(3333)]) == 1
        stored = await journal.read(range(1, 4000))
        assert [entry.notification.payload for entry in stored] == [
            f"<m>{i}</m>".encode() for i in range(3333)
        ]


async def test_an_append_that_cannot_be_stored_fails_alone_and_leaves_no_half(opened: Any, note: Any) -> None:
    bad = note(message_id="\ud800")
    async with opened() as (journal, _):
        before = journal.append([note(text="before")])
        broken = journal.append([note(text="half"), bad])
        subscription = journal.forget_current("A:B")
        after = journal.append([note(text="after")])
        assert (await before, await after) == (1, 4)
        await subscription
        with pytest.raises(UnicodeEncodeError):
            await broken
        stored = await journal.read(range(1, 10))
        assert [entry.notification.payload for entry in stored] == [b"<m>before</m>", b"<m>after</m>"]


async def test_a_new_topic_of_a_failed_append_can_be_used_afterwards(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        broken = journal.append([note("New:Topic"), note(message_id="\ud800")])
        after = journal.append([note("New:Topic")])
        with pytest.raises(UnicodeEncodeError):
            await broken
        scan = await journal.scan(0, limit=10, topics=["New:Topic"])
        assert [entry.offset for entry in scan.entries] == [await after]


async def test_an_append_of_nothing_is_a_mistake_of_the_caller(opened: Any) -> None:
    async with opened() as (journal, _):
        with pytest.raises(ValueError, match="at least one"):
            journal.append([])


async def test_more_than_the_bound_waiting_is_refused_at_once(opened: Any, note: Any) -> None:
    async with opened(max_waiting=10_000) as (journal, _):
        futures = [journal.append([note(text="x" * 1000)]) for _ in range(20)]
        results = await asyncio.gather(*futures, return_exceptions=True)
        refused = [result for result in results if isinstance(result, JournalUnavailable)]
        assert [result for result in results if isinstance(result, int)] == list(range(1, 8))
        assert len(refused) == 13
        assert "waiting" in refused[0].reason
        assert journal.state.waiting_bytes == 0
        assert await journal.append([note(text="x" * 20_000)]) == 8


async def test_a_cancelled_append_disturbs_nobody(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        given_up = journal.append([note()])
        given_up.cancel()
        assert await journal.append([note()]) == 2
        assert [entry.offset for entry in await journal.read([1, 2])] == [1, 2]


async def test_a_hook_that_raises_is_reported_and_the_append_stands(
    opened: Any, note: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened() as (journal, _):
        journal.committed.add(fail)
        assert await journal.append([note()]) == 1
    (record,) = caplog.records
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "no"


async def test_a_hook_that_raises_does_not_keep_the_next_from_being_called(opened: Any, note: Any) -> None:
    seen: list[tuple[int, Sequence[Run]]] = []
    sent = [[note(), note()], [note()]]
    async with opened() as (journal, _):
        journal.committed.add(fail)
        journal.committed.add(lambda first, runs: seen.append((first, runs)))
        for runs in sent:
            await journal.append(runs)
    assert seen == [(1, sent[0]), (3, sent[1])]


async def test_durability_none_answers_at_once_and_a_clean_end_keeps_everything(
    opened: Any, note: Any
) -> None:
    async with opened(durability="none") as (journal, _):
        futures = [journal.append([note()]) for _ in range(100)]
        assert all(future.done() for future in futures)
    async with opened() as (journal, recovered):
        assert recovered.next_offset == 101
        assert len(await journal.read(range(1, 101))) == 100


async def test_after_the_end_everything_is_refused(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        waiting = journal.append([note()])
    assert await waiting == 1
    with pytest.raises(JournalUnavailable, match="not open"):
        await journal.append([note()])
    with pytest.raises(JournalUnavailable, match="not open"):
        await journal.forget_current("A:B")


def fail(_first: int, _runs: Sequence[Run]) -> None:
    """A hook that raises."""
    raise RuntimeError("no")
