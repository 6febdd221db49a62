"""Dead letters: what an operator can see of them, drop, and how long they are kept."""

import asyncio
from typing import Any

from hpwsn.journal import DeadLetter, Journal, SubscriptionRecord

NEVER: dict[str, Any] = {
    "head": 0,
    "needs": {},
    "needs_all": None,
    "id_window": 1e9,
    "retention_age": None,
    "retention_bytes": None,
}


def brief(letters: list[DeadLetter]) -> list[tuple[str, int]]:
    return [(letter.subscription_id, letter.stored.offset) for letter in letters]


async def three(journal: Journal, note: Any) -> list[DeadLetter]:
    await journal.append([note("A", str(i)) for i in range(1, 4)])
    await journal.bury("s", [1], "refused", 50.0, consumer="http://one/")
    await journal.bury("t", [2], "HTTP 410", 51.0, consumer="http://two/")
    await journal.bury("s", [3], "timed out", 52.0, consumer="http://one/")
    return await journal.dead_letters(10)


async def test_they_are_listed_in_order_and_dropped_by_id(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note("A", str(i)) for i in range(1, 5)])
        await journal.put_subscription(SubscriptionRecord("s", b"", "1.1", 0.0))
        await journal.bury("s", [1, 2], "refused", 50.5, cursor=2)
        await journal.bury("t", [2], "HTTP 410", 51.0)
        await journal.bury("s", [2], "timed out", 52.0)
        letters = await journal.dead_letters(10)
        assert [(d.subscription_id, d.stored.offset, d.reason, d.time) for d in letters] == [
            ("s", 1, "refused", 50.5),
            ("s", 2, "timed out", 52.0),
            ("t", 2, "HTTP 410", 51.0),
        ]
        assert letters[2].stored.notification.payload == b"<m>2</m>"
        assert [d.id for d in await journal.dead_letters(1, letters[0].id)] == [letters[1].id]
        assert await journal.drop_dead_letters([letters[0].id, letters[1].id, 999]) == 2
        assert await journal.dead_letters(10) == letters[2:]
    async with opened() as (journal, recovered):
        assert await journal.dead_letters(10) == letters[2:]
        assert next(iter(recovered.subscriptions)).cursor == 2


async def test_they_keep_the_consumers_address_when_the_subscription_is_gone(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.put_subscription(SubscriptionRecord("s", b"", "1.1", 0.0))
        letters = await three(journal, note)
        await journal.delete_subscription("s")
    async with opened() as (journal, _):
        assert await journal.dead_letters(10) == letters
        assert [letter.consumer for letter in letters] == ["http://one/", "http://two/", "http://one/"]
        await journal.bury("s", [1], "moved", 60.0, consumer="http://three/")
        again = await journal.dead_letter(letters[0].id)
        assert again is not None
        assert (again.consumer, again.reason) == ("http://three/", "moved")


async def test_one_is_found_by_its_id_and_those_of_a_subscription_in_pages(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        letters = await three(journal, note)
        assert await journal.dead_letter(letters[1].id) == letters[1]
        assert await journal.dead_letter(999) is None
        assert await journal.dead_letters(10, subscription_id="s") == [letters[0], letters[2]]
        assert await journal.dead_letters(1, letters[0].id, "s") == [letters[2]]
        assert await journal.dead_letters(10, subscription_id="nobody") == []
        assert await journal.dead_letter_count() == 3


async def test_those_of_a_subscription_are_dropped_however_many(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note("A")] * 5000)
        await journal.bury("s", range(1, 5001), "refused", 50.0)
        await journal.bury("t", [7], "refused", 50.0)
        assert await journal.drop_dead_letters_of("s") == 5000
        assert brief(await journal.dead_letters(10)) == [("t", 7)]
        assert await journal.drop_dead_letters_of("s") == 0


async def test_too_old_ones_go_with_their_entries_and_one_buried_again_is_young(
    opened: Any, note: Any
) -> None:
    async with opened() as (journal, _):
        await journal.append([note("A", time=1.0)] * 4)
        await journal.bury("s", [1, 2, 3], "refused", 50.0)
        await journal.bury("s", [2], "refused again", 99.0)
        limits = {"dead_letter_age": 10.0, "retention_age": 1.0, "head": 4}
        pruned = await journal.prune(100.0, **NEVER | limits)
        assert (pruned.dead_letters, pruned.entries) == (2, 3)
        assert brief(await journal.dead_letters(10)) == [("s", 2)]
        assert [entry.offset for entry in await journal.read(range(9))] == [2]


async def test_of_too_many_the_newest_stay(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note("A")] * 3000)
        await asyncio.gather(*[journal.bury("s", [i], "refused", float(i)) for i in range(1, 3001)])
        await journal.bury("s", [5], "refused again", 9999.0)
        pruned = await journal.prune(1e4, **NEVER | {"dead_letter_limit": 3})
        assert pruned.dead_letters == 2997
        assert brief(await journal.dead_letters(10)) == [("s", 5), ("s", 2999), ("s", 3000)]
        assert (await journal.prune(1e4, **NEVER | {"dead_letter_limit": 3})).dead_letters == 0
        assert (await journal.prune(1e4, **NEVER | {"dead_letter_limit": 0})).dead_letters == 3


async def test_nul_characters_in_an_id_or_a_reason_come_back(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([note("A", message_id="before\0after")])
        await journal.bury("s", [1], "said \0 and more", 1.0, consumer="http://\0/")
        (letter,) = await journal.dead_letters(10)
        assert (letter.reason, letter.consumer) == ("said \0 and more", "http://\0/")
        assert letter.stored.notification.message_id == "before\0after"
    async with opened() as (_, recovered):
        assert [entry.id for entry in recovered.message_ids] == ["before\0after"]


async def test_they_are_counted_by_subscription(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        assert await journal.dead_letters_by_subscription() == {}
        await three(journal, note)
        assert await journal.dead_letters_by_subscription() == {"s": 2, "t": 1}
        assert await journal.dead_letters_by_subscription(["t", "u"]) == {"t": 1}
        assert await journal.dead_letters_by_subscription([]) == {}


async def test_groups_join_reasons_that_differ_in_the_address_or_in_long_numbers(
    opened: Any, note: Any
) -> None:
    async with opened() as (journal, _):
        await journal.append([note("A", str(i)) for i in range(1, 8)])
        for offset, (subscription, reason) in enumerate(
            [
                ("s", "POST http://one/: status 500"),
                ("s", "POST http://two/?n=1: status  500"),
                ("s", "POST http://one/: status 404"),
                ("t", "more than 10000 notifications waited"),
                ("t", "more than 20000 notifications waited"),
                ("t", "POST http://one/: status 500"),
                ("s", "POST http://one/: status 500"),
            ],
            1,
        ):
            await journal.bury(
                subscription, [offset], reason, float(offset), consumer=f"http://{subscription}/"
            )
        groups = await journal.dead_letter_groups()
        assert [(g.subscription_id, g.reason, g.count, g.first, g.last, g.consumer) for g in groups] == [
            ("s", "status 500", 3, 1.0, 7.0, "http://s/"),
            ("t", "more than # notifications waited", 2, 4.0, 5.0, "http://t/"),
            ("s", "status 404", 1, 3.0, 3.0, "http://s/"),
            ("t", "status 500", 1, 6.0, 6.0, "http://t/"),
        ]
        assert sum(group.count for group in groups) == await journal.dead_letter_count()
        for group in groups:
            which = group.subscription_id, group.reason
            letters = await journal.dead_letters(10, 0, *which)
            assert len(letters) == group.count == await journal.dead_letter_count(*which)
            assert {letter.subscription_id for letter in letters} == {group.subscription_id}
        assert [d.stored.offset for d in await journal.dead_letters(10, 0, None, "status 500")] == [
            1,
            2,
            6,
            7,
        ]
        assert await journal.dead_letters(10, 0, "s", "status 50") == []
