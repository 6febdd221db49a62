"""Consumers that stop, answer late, wrongly or not at all: they get everything in order once they behave, and
nobody else waits for them."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults import odd_consumer as odd
from tests.faults.consumer_process import ConsumerProcess
from tests.faults.load import ROOT_TOPIC, Inbox, Key, judge, notify_keys
from tests.faults.odd_consumer import OddConsumer
from tests.harness import NodeProcess
from tests.patience import eventually
from tests.raw_soap import call, send, subscribe

SETTINGS = ("--set", "delivery.retry_first=0.02", "--set", "delivery.retry_max=0.1")

BEHAVIOURS = {
    "500": odd.status("500 Internal Server Error"),
    "503": odd.status("503 Service Unavailable"),
    "503 with Retry-After": odd.status("503 Service Unavailable", "Retry-After: 0"),
    "404": odd.status("404 Not Found"),
    "a redirect": odd.status("307 Temporary Redirect", "Location: /elsewhere"),
    "a permanent redirect": odd.status("301 Moved Permanently", "Location: http://127.0.0.1:1/"),
    "304": odd.status("304 Not Modified"),
    "garbage": odd.garbage,
    "half an answer": odd.half,
    "half a header": odd.half_head,
    "the end of the connection": odd.hang_up,
    "no answer": odd.never,
    "a reset": odd.reset,
    "a reset at once": odd.reset_unread,
}


@pytest.fixture(scope="module")
def impatient_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    """A node that gives any answer half a second: on a busy machine a healthy consumer may get some twice."""
    data = tmp_path_factory.mktemp("impatient") / "data"
    with NodeProcess(data, *SETTINGS, "--set", "delivery.response_timeout=0.5") as running:
        yield running


async def publish(node: NodeProcess, first: int, count: int) -> list[Key]:
    """Publish so many, each in a Notify of its own."""
    keys = [Key(0, 0, number) for number in range(first, first + count)]
    for key in keys:
        assert (await send(node.url, notify_keys([key]))).status == 202
    return keys


async def unsubscribe(*references: str) -> None:
    """Leave the shared node to the next test."""
    for reference in references:
        assert (await call(reference, "<w:Unsubscribe/>")).status == 200


async def subscribe_odd(node: NodeProcess, consumer: OddConsumer | ConsumerProcess) -> str:
    reply = await call(node.url, subscribe(consumer.url, ROOT_TOPIC))
    return reply.text("w:SubscriptionReference/a:Address")


@pytest.mark.parametrize("behaviour", BEHAVIOURS.values(), ids=BEHAVIOURS)
async def test_a_consumer_that_answered_wrongly_gets_all_in_order_once_it_behaves(
    impatient_node: NodeProcess, behaviour: odd.Behaviour
) -> None:
    node = impatient_node
    async with OddConsumer(behaviour) as consumer, Inbox() as healthy:
        references = [await subscribe_odd(node, consumer), await healthy.subscribe(node.url)]
        keys = await publish(node, 1, 20)
        await healthy.wait_for(keys)
        await consumer.wait(lambda c: c.attempts >= 4)
        assert consumer.taken == []
        consumer.behaviour = odd.take
        keys += await publish(node, 21, 10)
        await consumer.wait(lambda c: set(keys) <= set(c.taken))
        await healthy.wait_for(keys)
        assert list(dict.fromkeys(consumer.taken)) == keys
        assert judge("odd", keys, consumer.seen).good
        assert healthy.firsts() == keys
        await unsubscribe(*references)


async def test_a_consumer_that_fails_now_and_then_gets_all_in_order(impatient_node: NodeProcess) -> None:
    node = impatient_node
    async with OddConsumer(odd.take) as consumer, Inbox() as healthy:
        references = [await subscribe_odd(node, consumer), await healthy.subscribe(node.url)]
        keys: list[Key] = []
        for behaviour in BEHAVIOURS.values():
            consumer.behaviour = behaviour
            before = consumer.attempts
            keys += await publish(node, len(keys) + 1, 3)
            await consumer.wait(lambda c, before=before: c.attempts > before)
            consumer.behaviour = odd.take
            keys += await publish(node, len(keys) + 1, 3)
            await consumer.wait(lambda c, wanted=set(keys): wanted <= set(c.taken))
        await healthy.wait_for(keys)
        assert judge("odd", keys, consumer.seen).good
        assert list(dict.fromkeys(consumer.taken)) == keys
        assert healthy.firsts() == keys
        await unsubscribe(*references)


@pytest.mark.parametrize("behaviour", [odd.take_when_released, odd.take_bit_by_bit], ids=["late", "in bits"])
async def test_a_slow_consumer_gets_all_once_and_nobody_waits_for_it(
    node: NodeProcess, behaviour: odd.Behaviour
) -> None:
    async with OddConsumer(behaviour) as slow, Inbox() as healthy:
        await subscribe_odd(node, slow)
        await healthy.subscribe(node.url)
        keys = await publish(node, 1, 100)
        await healthy.wait_for(keys)
        if behaviour is odd.take_when_released:
            assert (slow.attempts, slow.taken) == (1, [])
        slow.released.set()
        await slow.wait(lambda c: set(keys) <= set(c.taken))
        assert slow.taken == keys
        assert healthy.keys() == keys


async def test_a_redirect_is_not_followed(impatient_node: NodeProcess) -> None:
    """Whoever answers for an address must not be able to send the node's requests elsewhere."""
    node = impatient_node
    async with Inbox() as elsewhere:
        redirect = odd.status("307 Temporary Redirect", f"Location: {elsewhere.url}")
        async with OddConsumer(redirect) as consumer:
            reference = await subscribe_odd(node, consumer)
            await publish(node, 1, 1)
            await consumer.wait(lambda c: c.attempts >= 5)
            assert elsewhere.requests == []
            await unsubscribe(reference)


async def test_a_stopped_consumer_process_delays_nobody_and_gets_all_in_order_when_it_goes_on(
    impatient_node: NodeProcess,
) -> None:
    node = impatient_node
    async with ConsumerProcess() as process, Inbox() as healthy:
        references = [await subscribe_odd(node, process), await healthy.subscribe(node.url)]
        keys = await publish(node, 1, 10)
        await process.wait_for(keys)
        before = await timeouts(node)
        process.stop()
        keys += await publish(node, 11, 50)
        await healthy.wait_for(keys)

        async def given_up_twice() -> bool:
            return await timeouts(node) >= before + 2

        await eventually(given_up_twice)
        assert len(process.keys) == 10
        process.go_on()
        keys += await publish(node, 61, 10)
        await process.wait_for(keys)
        await healthy.wait_for(keys)
        assert judge("process", keys, process.keys).good
        assert healthy.firsts() == keys
        await unsubscribe(*references)


async def test_a_consumer_process_stopped_while_the_node_is_killed_gets_all_in_order(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", *SETTINGS, "--set", "delivery.response_timeout=0.5") as node:
        async with ConsumerProcess() as process:
            await subscribe_odd(node, process)
            keys = await publish(node, 1, 10)
            await process.wait_for(keys)
            process.stop()
            keys += await publish(node, 11, 30)
            await asyncio.to_thread(node.kill)
            await asyncio.to_thread(node.start)
            keys += await publish(node, 41, 10)
            process.go_on()
            await process.wait_for(keys)
        assert judge("process", keys, process.keys).good


async def timeouts(node: NodeProcess) -> int:
    """How many deliveries the node has given up for want of an answer."""
    status = json.loads((await send(f"{node.base}/status", b"", method="GET")).body)
    return int(status["connections"]["outcomes"]["timeout"])
