"""Large messages between nodes: whole, once, without holding up others, and across the death of a node."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from hpwsn_client import Client, Receiver
from hpwsn_client.wsn import Limits
from tests.cluster import AdminProcess, Member
from tests.harness import NodeProcess
from tests.patience import PATIENCE, eventually, patience
from tests.raw_soap import TYPES, envelope

MB = 1_000_000
SIZE = 24 * MB
LIMIT = 64 << 20
TEXT = b"<big>" + b"0123456789abcdef" * (SIZE // 16) + b"</big>"
ELEMENTS = b"<big>" + b"<row><v>12</v><w>abc</w><e/></row>" * (SIZE // 34) + b"</big>"
SMALL = 20


class SlowConsumer:
    """Takes large requests; reads a part of each, and the rest when it may."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.arrived = asyncio.Event()
        self.payloads: list[bytes] = []

    async def handle(self, request: web.Request) -> web.Response:
        parts = [await request.content.readany()]
        self.begun.set()
        await self.may_end.wait()
        parts.append(await request.content.read())
        found = re.search(rb"<wsnt:Message[^>]*>(.*)</wsnt:Message>", b"".join(parts), re.DOTALL)
        assert found is not None
        self.payloads.append(found[1])
        self.arrived.set()
        return web.Response(status=202)


@asynccontextmanager
async def slow_consumer() -> AsyncIterator[tuple[SlowConsumer, str]]:
    consumer = SlowConsumer()
    app = web.Application()
    app.router.add_post("/big", consumer.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield consumer, f"http://127.0.0.1:{runner.addresses[0][1]}/big"
    finally:
        await runner.cleanup()


@contextmanager
def two_nodes(folder: Path, clusters: tuple[str, str]) -> Iterator[tuple[AdminProcess, Member, Member]]:
    settings = (
        f"server.body_limit={LIMIT}",
        f"routing.reassembly_bytes={2 * LIMIT}",
        "routing.resend_after=1",
    )
    given = [part for each in settings for part in ("--set", each)]
    with AdminProcess(folder / "admin") as admin:
        nodes = [
            Member(folder / name, name, cluster, admin.base, *given)
            for name, cluster in zip("ab", clusters, strict=True)
        ]
        try:
            for node in nodes:
                node.start()
            yield admin, nodes[0], nodes[1]
        finally:
            for node in nodes:
                node.close()


@asynccontextmanager
async def across(first: Member, second: Member) -> AsyncIterator[tuple[Client, SlowConsumer, Receiver]]:
    """A publisher at one node; at the other, the subscribers to `big` and `small`, which it reaches."""
    async with (
        slow_consumer() as (consumer, url),
        Receiver() as receiver,
        Client(first.url, timeout=PATIENCE, limits=Limits(body=LIMIT)) as publisher,
        Client(second.url) as subscriber,
    ):
        await subscriber.subscribe("small", receiver)
        await subscriber.subscribe("big", url)
        await reaches(publisher, "small", receiver)
        yield publisher, consumer, receiver


async def reaches(publisher: Client, topic: str, receiver: Receiver) -> None:
    """Publish probes until one has arrived, and leave none behind."""
    async with patience():
        while True:
            await publisher.notify(topic, "<probe/>")
            try:
                await receiver.get(timeout=0.2)
                return
            except TimeoutError:
                continue


@pytest.mark.parametrize("clusters", [("one", "one"), ("one", "two")], ids=["one cluster", "two clusters"])
@pytest.mark.parametrize("reliable", [False, True], ids=["best effort", "reliable"])
async def test_a_large_message_arrives_whole_and_once_and_holds_nobody_up(
    tmp_path: Path, clusters: tuple[str, str], reliable: bool
) -> None:
    with two_nodes(tmp_path, clusters) as (admin, first, second):
        states = [admin.states()]
        async with across(first, second) as (publisher, consumer, receiver):
            consumer.may_end.clear()
            for payload in (TEXT, ELEMENTS):
                consumer.begun.clear()
                large = asyncio.create_task(publisher.notify("big", payload, reliable=reliable))
                # While the large one is under way, later ones of another publisher are delivered.
                for number in range(SMALL):
                    await publisher.notify("small", f"<n>{number}</n>")
                await large
                async with patience():
                    await consumer.begun.wait()
                for number in range(SMALL, 2 * SMALL):
                    await publisher.notify("small", f"<n>{number}</n>")
                got: list[bytes] = []
                while len(got) < 2 * SMALL:
                    received = (await receiver.get(timeout=PATIENCE)).payload
                    got += [received] if received != b"<probe/>" else []
                assert got == [b"<n>%d</n>" % number for number in range(2 * SMALL)]
                assert not consumer.arrived.is_set()
                consumer.may_end.set()
                async with patience():
                    await consumer.arrived.wait()
                consumer.arrived.clear()
                consumer.may_end.clear()
            consumer.may_end.set()
            # A later one on the same topic shows that nothing comes twice.
            await publisher.notify("big", "<end/>", reliable=reliable)
            async with patience():
                await consumer.arrived.wait()
            digests = [hashlib.sha256(each).hexdigest() for each in consumer.payloads]
            assert digests == [hashlib.sha256(each).hexdigest() for each in (TEXT, ELEMENTS, b"<end/>")]
            states.append(admin.states())
            assert states[0] == states[1]


async def test_a_reliable_large_message_arrives_after_the_receiving_node_was_killed(tmp_path: Path) -> None:
    with two_nodes(tmp_path, ("one", "one")) as (_, first, second):
        async with across(first, second) as (publisher, consumer, _):
            before = second.status()["routing"]["tcp"]["frames_received"]

            async def arriving() -> bool:
                frames = (await asyncio.to_thread(second.status))["routing"]["tcp"]["frames_received"]
                return bool(frames > before + 3)

            large = asyncio.create_task(publisher.notify("big", TEXT, reliable=True))
            await eventually(arriving)
            second.kill()
            await asyncio.to_thread(second.start)
            await large
            async with patience():
                while not consumer.payloads or consumer.payloads[-1] != b"<end/>":
                    if consumer.arrived.is_set():
                        consumer.arrived.clear()
                        await publisher.notify("big", "<end/>", reliable=True)
                    await asyncio.sleep(0.02)
            assert [hashlib.sha256(each).digest() for each in consumer.payloads if each != b"<end/>"] == [
                hashlib.sha256(TEXT).digest()
            ]


@pytest.mark.parametrize("kind", ["text", "elements"])
async def test_the_limit_of_a_body_is_exact_for_large_messages(tmp_path: Path, kind: str) -> None:
    limit = 3 << 20
    inner = {"text": b"x", "elements": b"<i/>"}[kind]
    around = envelope(
        '<w:Notify xmlns:w="http://docs.oasis-open.org/wsn/b-2"><w:NotificationMessage><w:Topic'
        ' Dialect="http://docs.oasis-open.org/wsn/t-1/TopicExpression/Simple">big</w:Topic>'
        "<w:Message><big>%</big></w:Message></w:NotificationMessage></w:Notify>"
    )
    with NodeProcess(tmp_path / "data", "--set", f"server.body_limit={limit}") as node:
        async with aiohttp.ClientSession() as session:
            for size, status in ((limit, 202), (limit + 1, 413)):
                room = size - len(around) + 1
                filling = inner * (room // len(inner)) + b" " * (room % len(inner))
                body = around.replace(b"%", filling)
                assert len(body) == size
                async with session.post(
                    node.url, data=io.BytesIO(body), headers={"Content-Type": TYPES["1.1"]}
                ) as reply:
                    assert reply.status == status
                async with session.get(f"{node.base}/topics/big/events") as page:
                    assert len(await page.json()) == 1


async def test_a_client_sends_and_receives_as_much_as_its_limits_allow(tmp_path: Path) -> None:
    large, more = Limits(body=24 << 20), 20 * MB
    with NodeProcess(tmp_path / "data", "--set", "server.body_limit=32MiB") as node:
        async with (
            Receiver(limits=large) as receiver,
            Client(node.url, limits=large, timeout=PATIENCE) as client,
            Client(node.url) as ordinary,
        ):
            await client.subscribe("big", receiver)
            text = "x" * more
            with pytest.raises(ValueError, match=r"limit of this client is 16777216; send less, or give"):
                await ordinary.notify("big", text)
            await client.notify("big", text)
            assert len((await receiver.get(timeout=PATIENCE)).payload) > more
            with pytest.raises(ValueError, match=r"limit of this client is 25165824"):
                await client.notify("big", "x" * (25 << 20))


async def test_a_very_large_json_event_is_stored_and_read(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", "--set", f"server.body_limit={LIMIT}") as node:
        events, kind = f"{node.base}/topics/big/events", {"Content-Type": "application/json"}
        async with aiohttp.ClientSession() as session:
            text = "<&é" * (SIZE // 4)
            body = io.BytesIO(json.dumps({"text": text}, ensure_ascii=False).encode())
            async with session.post(events, data=body, headers=kind) as reply:
                assert (reply.status, await reply.json()) == (202, {"first": 1, "last": 1})
            async with session.get(events) as page:
                (event,) = await page.json()
                assert event["data"] == {"text": text}
            body = io.BytesIO(b'{"text":\n"' + b"x" * SIZE + b'"]')
            async with session.post(events, data=body, headers=kind) as reply:
                told = await reply.json()
                assert (reply.status, told["line"], told["column"]) == (400, 2, SIZE + 3)
