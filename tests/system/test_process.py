"""The node as a process: quick to start, light, clean to stop under load, level over many subscriptions."""

import asyncio
import contextlib
import json
import re
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import psutil
import pytest

from hpwsn.errors import HpwsnError
from hpwsn.listening import open_listener
from hpwsn_client import Client, Receiver
from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.patience import PATIENCE
from tests.raw_soap import CONCRETE, call, envelope, notify, send, subscribe
from tests.scraped import parsed

MIB = 2**20
# Python 3.14 takes 8 MB more than 3.13 for the same imported modules. The history takes 0.5 MB. Seen: 74 MB.
IDLE_MEGABYTES = 78 if sys.version_info < (3, 14) else 88


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeProcess]:
    """A node with nobody's memory but its own."""
    with NodeProcess(tmp_path / "data", fresh=True) as running:
        yield running


async def test_an_idle_node_stays_under_its_limit_of_memory(node: NodeProcess) -> None:
    await send(f"{node.base}/status", b"", method="GET")
    assert psutil.Process(node.pid).memory_info().rss < IDLE_MEGABYTES * 1000 * 1000


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


class Line:
    """Requests one after the other on one connection, with next to no work for this side."""

    def __init__(self, node: NodeProcess) -> None:
        self._port = node.port

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()
        await self._writer.wait_closed()

    async def ask(self, path: str, body: str) -> bytes:
        data = envelope(body)
        fields = f"Host: node\r\nContent-Type: text/xml\r\nContent-Length: {len(data)}"
        head = f"POST {path} HTTP/1.1\r\n{fields}\r\n\r\n"
        self._writer.write(head.encode() + data)
        answer = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        assert answer.startswith(b"http/1.1 200 "), answer
        return await self._reader.readexactly(int(answer.partition(b"content-length: ")[2].split()[0]))

    async def rounds(self, names: range) -> None:
        """Subscribe and unsubscribe, to another topic for another consumer each time."""
        for name in names:
            hour = "<w:InitialTerminationTime>PT1H</w:InitialTerminationTime>"
            wanted = subscribe(f"http://127.0.0.1:9/{name}", f"T/n{name}", dialect=CONCRETE, more=hour)
            answer = await self.ask("/wsn", wanted)
            (address,) = re.findall(rb"Address>([^<]+)<", answer)
            await self.ask(urlsplit(address.decode()).path, "<w:Unsubscribe/>")


async def test_10000_subscribe_and_unsubscribe_rounds_leave_nothing_behind(node: NodeProcess) -> None:
    process = psutil.Process(node.pid)

    async def many(lines: list[Line], first: int, count: int) -> int:
        shares = (range(first + lane, first + count, len(lines)) for lane in range(len(lines)))
        await asyncio.gather(*(line.rounds(share) for line, share in zip(lines, shares, strict=True)))
        return process.memory_info().rss

    async with AsyncExitStack() as stack:
        lines = [await stack.enter_async_context(Line(node)) for _ in range(8)]
        before = await many(lines, 0, 5_000)  # Caches of bounded size are full after this.
        after = await many(lines, 5_000, 10_000)
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
        taken = (
            f"cannot listen on 127.0.0.1:{node.port}: Address already in use; stop the process that uses it"
        )
        with pytest.raises(AssertionError, match=taken) as failure:
            second.start()
        assert "Traceback" not in str(failure.value)


@pytest.mark.parametrize(
    ("host", "words"), [("192.0.2.1", "does not have that address"), ("nowhere.invalid", "--host")]
)
def test_an_address_that_is_not_this_machines_is_said_so(host: str, words: str) -> None:
    with pytest.raises(HpwsnError, match=f"cannot listen on {host}:0: .*{words}"):
        open_listener(host, 0)


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
            got = [(await receiver.get(timeout=PATIENCE)).payload for _ in range(2)]
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
    assert parsed(replies["/metrics"].body.decode()).total("hpwsn_notifications_published_total") == 1
    (listed,) = json.loads(replies["/subscriptions"].body)["items"]
    assert (listed["consumer"], listed["topics"], listed["state"]) == (consumer.url, ["A"], "live")


async def test_a_receiver_on_a_free_port_takes_its_subscriptions_along(node: NodeProcess) -> None:
    async with Client(node.url) as client:
        async with Receiver() as passing:
            await client.subscribe("A", passing)
            await client.subscribe("B", passing)
        async with Receiver(public_url="http://127.0.0.1:9/kept") as lasting:
            await client.subscribe("A", lasting)
    listed = json.loads((await send(f"{node.base}/subscriptions", b"", method="GET")).body)["items"]
    assert [one["consumer"] for one in listed] == ["http://127.0.0.1:9/kept"]
