"""Lots and lingering, with a function that records in the broker's place."""

import asyncio

import pytest

from hpwsn_client.arguments import notification_message
from hpwsn_client.publisher import NOTIFY_BYTES, LingeringPublisher, batches

FOREVER = 3600.0


def message(text):
    return notification_message("A", text)


class Recorder:
    """Records each request; holds it while `open` is not set, and fails it with `error`."""

    def __init__(self):
        self.sent = []
        self.under_way = 0
        self.most_under_way = 0
        self.open = asyncio.Event()
        self.open.set()
        self.arrived = asyncio.Event()
        self.error = None

    async def send(self, messages, message_id, traces):
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        self.sent.append([m.text for m in messages])
        self.arrived.set()
        try:
            await self.open.wait()
            if self.error is not None:
                raise self.error
        finally:
            self.under_way -= 1


def test_batches_keep_order_and_the_limit_of_messages():
    texts = [[m.text for m in lot] for lot in batches(map(message, "abcdefg"), 3)]
    assert texts == [["a", "b", "c"], ["d", "e", "f"], ["g"]]


def test_a_lot_is_given_as_soon_as_it_is_full():
    taken = []
    source = (taken.append(c) or message(c) for c in "abcd")
    next(batches(source, 2))
    assert taken == ["a", "b"]


def test_batches_stay_under_the_size_limit_except_for_one_large_message():
    sizes = [NOTIFY_BYTES // 2, NOTIFY_BYTES // 2, 10, 2 * NOTIFY_BYTES, 10]
    found = [[len(m.text) for m in lot] for lot in batches((message("x" * s) for s in sizes), 100)]
    assert found == [[sizes[0]], [sizes[1], 10], [2 * NOTIFY_BYTES], [10]]


async def test_calls_that_come_together_travel_in_one_request_in_order():
    recorder = Recorder()
    publisher = LingeringPublisher(recorder.send, 0.01, 100)
    await asyncio.gather(*(publisher.publish(message(str(n))) for n in range(50)))
    assert recorder.sent == [[str(n) for n in range(50)]]


async def test_a_full_batch_does_not_linger():
    recorder = Recorder()
    publisher = LingeringPublisher(recorder.send, FOREVER, 2)
    await asyncio.gather(*(publisher.publish(message(t)) for t in "abcd"))
    assert recorder.sent == [["a", "b"], ["c", "d"]]


async def test_one_request_is_under_way_at_a_time_and_the_rest_gathers_behind_it():
    recorder = Recorder()
    recorder.open.clear()
    publisher = LingeringPublisher(recorder.send, 0.0, 100)
    first = asyncio.create_task(publisher.publish(message("a")))
    await recorder.arrived.wait()
    rest = [asyncio.create_task(publisher.publish(message(t))) for t in "bcd"]
    many = asyncio.create_task(publisher.send([message("e")]))
    await asyncio.sleep(0)
    recorder.open.set()
    await asyncio.gather(first, many, *rest)
    assert recorder.most_under_way == 1
    assert recorder.sent[0] == ["a"]
    assert sorted(map(tuple, recorder.sent[1:])) == [("b", "c", "d"), ("e",)]


async def test_a_failure_reaches_every_caller_in_the_request_and_none_after_it():
    recorder = Recorder()
    recorder.error = ConnectionError("gone")
    publisher = LingeringPublisher(recorder.send, 0.01, 100)
    results = await asyncio.gather(*(publisher.publish(message(t)) for t in "abc"), return_exceptions=True)
    assert results == [recorder.error] * 3
    recorder.error = None
    await publisher.publish(message("d"))
    assert recorder.sent == [["a", "b", "c"], ["d"]]


async def test_a_message_with_an_id_travels_alone_and_in_turn():
    recorder = Recorder()
    publisher = LingeringPublisher(recorder.send, 0.01, 100)
    ids = [None, None, "id-1", "id-2", None]
    await asyncio.gather(*(publisher.publish(message(t), i) for t, i in zip("abcde", ids, strict=True)))
    assert recorder.sent == [["a", "b"], ["c"], ["d"], ["e"]]


async def test_a_caller_that_gave_up_before_the_request_is_not_published():
    recorder = Recorder()
    publisher = LingeringPublisher(recorder.send, FOREVER, 100)
    gone = asyncio.create_task(publisher.publish(message("gone")))
    stays = asyncio.create_task(publisher.publish(message("stays")))
    await asyncio.sleep(0)
    gone.cancel()
    await publisher.close()
    await stays
    assert recorder.sent == [["stays"]]


async def test_close_sends_what_lingers_at_once():
    recorder = Recorder()
    publisher = LingeringPublisher(recorder.send, FOREVER, 100)
    waiting = asyncio.create_task(publisher.publish(message("a")))
    await asyncio.sleep(0)
    await publisher.close()
    await waiting
    assert recorder.sent == [["a"]]


async def test_callers_are_cancelled_with_the_sending_task():
    recorder = Recorder()
    recorder.open.clear()
    publisher = LingeringPublisher(recorder.send, 0.0, 1)
    callers = [asyncio.create_task(publisher.publish(message(t))) for t in "ab"]
    await recorder.arrived.wait()
    publisher._task.cancel()
    for caller in callers:
        with pytest.raises(asyncio.CancelledError):
            await caller
