"""Pull points' queues: what is put there stays until somebody takes it out."""

from typing import Any

import pytest

from hpwsn.journal import PullPointRecord, SubscriptionRecord


def pull_point(name: str) -> PullPointRecord:
    return PullPointRecord(name, None, 1.0)


async def test_a_queue_keeps_its_order_until_it_is_confirmed(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note("A", str(i)) for i in range(1, 6)])
        await journal.put_pull_point(pull_point("p"))
        await journal.enqueue("p", [(4, "s2"), (5, "s2")], {})
        await journal.enqueue("p", [(1, "s1"), (4, "s1"), (2, None)], {})
        pulled = await journal.pull("p", 4)
        assert [(p.stored.offset, p.subscription_id) for p in pulled] == [
            (4, "s2"),
            (5, "s2"),
            (1, "s1"),
            (4, "s1"),
        ]
        assert pulled == await journal.pull("p", 4)
        assert await journal.confirm("p", pulled[1].seq) == 2
        assert [p.stored.notification.payload for p in await journal.pull("p", 9)] == [
            b"<m>1</m>",
            b"<m>4</m>",
            b"<m>2</m>",
        ]
        assert [p.stored.offset for p in await journal.pull("p", 9, after=pulled[2].seq)] == [4, 2]
        assert await journal.queue_length("p") == 3


async def test_what_is_posted_to_a_pull_point_waits_there_with_its_commit(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.put_pull_point(pull_point("p"))
        await journal.append([note(target="p"), note(), note(target="gone"), note(target="p")])
        await journal.enqueue("p", [(1, None)], {})
        pulled = await journal.pull("p", 9)
        assert [(p.stored.offset, p.subscription_id) for p in pulled] == [(1, None), (4, None)]


async def test_what_waits_is_not_queued_twice_and_cursors_move_with_it(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note()] * 3)
        await journal.put_pull_point(pull_point("p"))
        await journal.put_subscription(SubscriptionRecord("s", b"", "1.1", 0.0))
        await journal.enqueue("p", [(1, "s"), (2, "s"), (2, None)], {"s": 2})
        await journal.enqueue("p", [(2, "s"), (2, None), (3, "s")], {"s": 3, "p": 3, "gone": 9})
        assert [p.stored.offset for p in await journal.pull("p", 9)] == [1, 2, 2, 3]
    async with opened() as (journal, recovered):
        assert (next(iter(recovered.subscriptions)).cursor, recovered.pull_points[0].cursor) == (3, 3)
        assert await journal.queue_length("p") == 4


async def test_a_queue_outlives_its_subscription_but_not_its_pull_point(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note()])
        await journal.put_subscription(SubscriptionRecord("s", b"", "1.1", 0.0))
        await journal.put_pull_point(pull_point("p"))
        await journal.put_pull_point(pull_point("q"))
        await journal.enqueue("p", [(1, "s")], {"s": 1})
        await journal.enqueue("q", [(1, "s")], {"s": 1})
        await journal.delete_subscription("s")
        assert [p.subscription_id for p in await journal.pull("p", 9)] == ["s"]
        await journal.delete_pull_point("p")
        assert await journal.pull("p", 9) == []
        await journal.put_pull_point(pull_point("p"))
        assert (await journal.queue_length("p"), await journal.queue_length("q")) == (0, 1)


async def test_nothing_is_queued_for_a_pull_point_that_is_gone(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note()])
        await journal.enqueue("gone", [(1, "s")], {})
        await journal.put_pull_point(pull_point("gone"))
        assert await journal.queue_length("gone") == 0


async def test_sequence_numbers_are_not_used_again_after_a_restart(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note()])
        await journal.put_pull_point(pull_point("p"))
        await journal.enqueue("p", [(1, "s")], {})
        seq = (await journal.pull("p", 1))[0].seq
        await journal.confirm("p", seq)
    async with opened() as (journal, _):
        await journal.enqueue("p", [(1, "s")], {})
        assert (await journal.pull("p", 1))[0].seq > seq


async def test_a_changed_pull_point_keeps_its_queue(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note()])
        await journal.put_pull_point(pull_point("p"))
        await journal.enqueue("p", [(1, "s")], {})
        await journal.put_pull_point(PullPointRecord("p", "named", 1.0, 77.0))
        assert await journal.queue_length("p") == 1
    async with opened() as (_, recovered):
        assert recovered.pull_points == [PullPointRecord("p", "named", 1.0, 77.0, 0)]


async def test_a_queue_is_trimmed_to_its_newest(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note()] * 20)
        await journal.put_pull_point(pull_point("p"))
        await journal.put_pull_point(pull_point("q"))
        await journal.enqueue("q", [(1, "s")], {})
        await journal.enqueue("p", [(offset, "s") for offset in range(1, 21)], {})
        await journal.append([note(target="p")])
        assert await journal.trim("p", 21) == 0
        assert await journal.trim("p", 3) == 18
        assert [p.stored.offset for p in await journal.pull("p", 9)] == [19, 20, 21]
        assert (await journal.queue_length("p"), await journal.queue_length("q")) == (3, 1)
        assert (await journal.trim("p", 0), await journal.trim("gone", 0)) == (3, 0)


async def test_a_long_queue_is_trimmed_in_steps_that_let_appends_in_between(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note()] * 20_000)
        await journal.put_pull_point(pull_point("p"))
        await journal.enqueue("p", [(offset, "s") for offset in range(1, 20_001)], {})
        before = journal.state.commits
        assert await journal.trim("p", 10) == 19_990
        assert journal.state.commits - before >= 5
        assert [p.stored.offset for p in await journal.pull("p", 20)] == list(range(19_991, 20_001))


async def test_the_length_of_a_queue_is_right_after_everything_that_changes_it(
    opened: Any, note: Any
) -> None:
    async with opened() as (journal, _):
        await journal.append([note()] * 5)
        await journal.put_pull_point(pull_point("p"))
        await journal.enqueue("p", [(1, "s"), (2, "s"), (1, "s")], {})
        await journal.append([note(target="p"), note(target="p")])
        assert await journal.queue_length("p") == 4
        await journal.confirm("p", (await journal.pull("p", 1))[0].seq)
        assert (await journal.queue_length("p"), await journal.queue_length("gone")) == (3, 0)
        broken = journal.append([note(target="p"), note(message_id="\ud800")])
        with pytest.raises(UnicodeEncodeError):
            await broken
    async with opened() as (journal, _):
        assert await journal.queue_length("p") == 3
        await journal.delete_pull_point("p")
        await journal.put_pull_point(pull_point("p"))
        assert await journal.queue_length("p") == 0


async def test_some_of_a_queue_can_be_taken_out_wherever_they_are(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note()] * 5)
        for name in ("p", "q"):
            await journal.put_pull_point(pull_point(name))
            await journal.enqueue(name, [(offset, "s") for offset in range(1, 6)], {})
        seqs = [pulled.seq for pulled in await journal.pull("p", 9)]
        others = [pulled.seq for pulled in await journal.pull("q", 1)]
        assert await journal.discard("p", [seqs[0], seqs[3], *others]) == 2
        assert [p.stored.offset for p in await journal.pull("p", 9)] == [2, 3, 5]
        assert (await journal.queue_length("p"), await journal.queue_length("q")) == (3, 5)
        assert await journal.discard("gone", seqs) == 0
