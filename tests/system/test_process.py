"""The node as a process: quick to start, light, clean to stop under load, level over many subscriptions."""

import asyncio
import contextlib
import json
from pathlib import Path

import psutil
import pytest

from hpwsn_client import Client, Receiver
from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.raw_soap import call, notify, send, subscribe

MIB = 2**20


async def test_an_idle_node_stays_under_70_megabytes(node: NodeProcess) -> None:
    await send(f"{node.base}/status", b"", method="GET")
    assert psutil.Process(node.pid).memory_info().rss < 70 * 1000 * 1000


async def test_sigterm_under_load_finishes_deliveries_and_loses_nothing(tmp_path: Path) -> None:
    accepted: list[str] = []

    async def publish(client: Client, name: str) -> None:
        for number in range(100_000):
            try:
                await client.notify("A", f"<n>{name}-{number}</n>")
            except Exception:
                return
            accepted.append(f"{name}-{number}")

    async with Consumer() as consumer:
        node = NodeProcess(tmp_path / "data").start()
        await call(node.url, subscribe(consumer.url, "A"))
        async with Client(node.url) as client:
            publishers = [asyncio.create_task(publish(client, str(which))) for which in range(8)]
            await consumer.wait(lambda c: len(c.requests) >= 50)
            status = await asyncio.to_thread(node.terminate)
            await asyncio.gather(*publishers)
        assert status == 0
        assert "Traceback" not in node.log()
        with node:
            await consumer.wait(lambda c: set(accepted) <= set(c.payloads()))
        for which in range(8):
            mine = [p for p in dict.fromkeys(consumer.payloads()) if p.startswith(f"{which}-")]
            assert mine == sorted(mine, key=lambda p: int(p.split("-")[1]))


@pytest.mark.timeout(300)
async def test_10000_subscribe_and_unsubscribe_rounds_leave_nothing_behind(node: NodeProcess) -> None:
    process = psutil.Process(node.pid)

    async def rounds(client: Client, names: range) -> None:
        for name in names:
            subscription = await client.subscribe(f"T:n{name}", f"http://127.0.0.1:9/{name}", expires=3600)
            await subscription.unsubscribe()

    async def many(client: Client, first: int, count: int) -> int:
        await asyncio.gather(*(rounds(client, range(first + lane, first + count, 8)) for lane in range(8)))
        return process.memory_info().rss

    async with Client(node.url) as client:
        before = await many(client, 0, 5_000)  # Caches of bounded size are full after this.
        after = await many(client, 5_000, 10_000)
    status = json.loads((await send(f"{node.base}/status", b"", method="GET")).body)
    assert (status["subscriptions"], status["topics"]) == (0, 0)
    assert after - before < 2 * MIB


async def test_a_second_node_on_the_same_data_is_refused_with_the_reason(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data"):
        second = NodeProcess(tmp_path / "data")
        with pytest.raises(AssertionError, match="in use"):
            second.start()


async def test_a_port_that_is_taken_is_said_so_in_one_line(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "one") as node:
        second = NodeProcess(tmp_path / "two", port=node.port)
        with pytest.raises(AssertionError, match="cannot listen on") as failure:
            second.start()
        assert "Traceback" not in str(failure.value)


async def test_a_message_id_published_again_is_accepted_and_not_repeated(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path / "data").start()
    async with Client(node.url) as client, Receiver() as receiver:
        await client.subscribe("A", receiver)
        for _ in range(3):
            await client.notify("A", "<n>once</n>", message_id="id-1")
        await asyncio.to_thread(node.terminate)
        await asyncio.to_thread(node.start)
        with contextlib.closing(node):
            await client.notify("A", "<n>once</n>", message_id="id-1")
            await client.notify("A", "<n>twice</n>", message_id="id-2")
            got = [(await receiver.get(timeout=10)).payload for _ in range(2)]
    assert got == [b"<n>once</n>", b"<n>twice</n>"]


async def test_the_operators_addresses_answer(node: NodeProcess) -> None:
    async with Consumer() as consumer:
        await call(node.url, subscribe(consumer.url, "A"))
        await call(node.url, notify("A", "<n/>"))
        await consumer.wait(lambda c: bool(c.requests))
        replies = {
            path: await send(node.base + path, b"", method="GET")
            for path in ("/", "/healthz", "/readyz", "/status", "/metrics", "/subscriptions", "/wsn?wsdl")
        }
    assert {reply.status for reply in replies.values()} == {200}
    assert json.loads(replies["/status"].body)["published"]["accepted"] == 1
    assert b"hpwsn_published_accepted 1" in replies["/metrics"].body
    (listed,) = json.loads(replies["/subscriptions"].body)["subscriptions"]
    assert (listed["consumer"], listed["topics"], listed["state"]) == (consumer.url, ["A"], "live")


async def test_a_receiver_on_a_free_port_takes_its_subscriptions_along(node: NodeProcess) -> None:
    async with Client(node.url) as client:
        async with Receiver() as passing:
            await client.subscribe("A", passing)
            await client.subscribe("B", passing)
        async with Receiver(public_url="http://127.0.0.1:9/kept") as lasting:
            await client.subscribe("A", lasting)
    listed = json.loads((await send(f"{node.base}/subscriptions", b"", method="GET")).body)["subscriptions"]
    assert [one["consumer"] for one in listed] == ["http://127.0.0.1:9/kept"]
