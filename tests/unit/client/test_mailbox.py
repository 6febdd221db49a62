"""The bounded queue of a receiver: whole deliveries, room, order, closing."""

import asyncio

import pytest

from hpwsn_client.notification import Notification
from hpwsn_client.receiver import Mailbox
from tests.patience import PATIENCE

NOW = 0.0


def delivery(*names):
    return [Notification(name, b"<a/>") for name in names]


async def read(mailbox, number):
    return [(await mailbox.get(PATIENCE)).topic for _ in range(number)]


async def test_notifications_come_out_in_the_order_they_went_in():
    mailbox = Mailbox(10)
    assert await mailbox.put(delivery("a", "b"), PATIENCE)
    assert await mailbox.put(delivery("c"), PATIENCE)
    assert await read(mailbox, 3) == ["a", "b", "c"]


async def test_a_delivery_without_room_is_refused_whole():
    mailbox = Mailbox(3)
    assert await mailbox.put(delivery("a", "b"), PATIENCE)
    assert not await mailbox.put(delivery("c", "d"), NOW)
    assert await mailbox.put(delivery("e"), PATIENCE)
    assert await read(mailbox, 3) == ["a", "b", "e"]


async def test_a_delivery_larger_than_the_mailbox_goes_into_an_empty_one():
    mailbox = Mailbox(1)
    assert await mailbox.put(delivery("a", "b", "c"), PATIENCE)
    assert await read(mailbox, 3) == ["a", "b", "c"]


async def test_a_delivery_waits_for_room_and_keeps_its_turn():
    mailbox = Mailbox(1)
    assert await mailbox.put(delivery("a"), PATIENCE)
    waiting = [asyncio.create_task(mailbox.put(delivery(name), PATIENCE)) for name in "bcd"]
    assert await read(mailbox, 4) == ["a", "b", "c", "d"]
    assert await asyncio.gather(*waiting) == [True, True, True]


async def test_a_reader_waits_no_longer_than_told():
    with pytest.raises(TimeoutError):
        await Mailbox(1).get(NOW)


async def test_closing_lets_readers_finish_and_refuses_deliveries():
    mailbox = Mailbox(1)
    assert await mailbox.put(delivery("a"), PATIENCE)
    waiting = asyncio.create_task(mailbox.put(delivery("b"), PATIENCE))
    await asyncio.sleep(0)
    await mailbox.close()
    assert not await waiting
    assert await read(mailbox, 1) == ["a"]
    assert await mailbox.get(PATIENCE) is None


async def test_a_cancelled_reader_takes_nothing_with_it():
    mailbox = Mailbox(1)
    readers = [asyncio.create_task(mailbox.get()) for _ in range(3)]
    await asyncio.sleep(0)
    put = asyncio.create_task(mailbox.put(delivery("a"), PATIENCE))
    readers[0].cancel()
    await put
    done, pending = await asyncio.wait(readers, return_when=asyncio.FIRST_COMPLETED)
    while not (got := [r for r in done if not r.cancelled()]):
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
    assert [r.result().topic for r in got] == ["a"]
    for reader in pending:
        reader.cancel()
