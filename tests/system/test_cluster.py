"""Nodes in clusters behave as one broker, also when some of them fail.

One set of processes for all: n1 and n2 in the cluster `one`, n3 in `two`, n4 in `three`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import ClientSession
from lxml import etree

from hpwsn_client import Client, DemandPublisher, Receiver
from hpwsn_client.errors import HpwsnClientError, TimedOut
from hpwsn_client.wsn.soap.faults import SoapFault
from hpwsn_client.wsn.soap.names import hp
from tests.cluster import AdminProcess, Member
from tests.consumer import Consumer
from tests.harness import hpwsn
from tests.original_messages import CREATE, NOTIFICATION, SUBSCRIBE
from tests.patience import PATIENCE, patience
from tests.raw_soap import NAMES, WSA, call, notify, send

FRAGMENT = 3000
PLACES = {"n1": "one", "n2": "one", "n3": "two", "n4": "three"}


@contextmanager
def running(folder: Path, places: dict[str, str]) -> Iterator[tuple[AdminProcess, dict[str, Member]]]:
    """An admin node and members, in the order in which they register."""
    with AdminProcess(folder / "admin") as admin:
        nodes: dict[str, Member] = {}
        try:
            for name, cluster in places.items():
                settings = (f"routing.fragment_size={FRAGMENT}", "routing.resend_after=1")
                given = [part for each in settings for part in ("--set", each)]
                node = Member(folder / name, name, cluster, admin.base, *given)
                nodes[name] = node
                node.start()
            yield admin, nodes
        finally:
            for node in nodes.values():
                node.close()


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Member]]:
    """The four nodes that most tests share."""
    with running(tmp_path_factory.mktemp("cluster"), PLACES) as (_, nodes):
        yield nodes


@dataclass
class Place:
    """A node with a client, and a subscriber of its own."""

    client: Client
    receiver: Receiver

    async def get(self) -> tuple[str | None, str]:
        """The topic and the text of the next message that is no probe."""
        while True:
            received = await self.receiver.get(timeout=PATIENCE)
            element = etree.fromstring(received.payload)
            if element.tag != "probe":
                return received.topic, "".join(element.itertext())

    async def element(self) -> etree._Element:
        """The payload of the next message that is no probe."""
        while True:
            element = etree.fromstring((await self.receiver.get(timeout=PATIENCE)).payload)
            if element.tag != "probe":
                return element


@asynccontextmanager
async def places(nodes: dict[str, Member], *names: str) -> AsyncIterator[dict[str, Place]]:
    """A client and a receiver for each of these nodes."""
    async with AsyncExitStack() as stack:
        yield {
            name: Place(
                await stack.enter_async_context(Client(nodes[name].url)),
                await stack.enter_async_context(Receiver()),
            )
            for name in names
        }


async def reaches(publisher: Place, topic: str, *subscribers: Place) -> None:
    """Publish probes until each subscriber has got one: from then on the nodes know what is wanted."""
    mark = f"<probe>{topic} by {id(publisher)}</probe>"
    for subscriber in subscribers:
        async with patience():
            while True:
                await publisher.client.notify(topic, mark)
                with suppress(TimedOut):
                    while (await subscriber.receiver.get(timeout=0.2)).payload != mark.encode():
                        pass
                    break


def text_of(times: int) -> str:
    """A text of many times the fragment size, with characters of several bytes and some to be escaped."""
    piece = "0123456789 <&> 京B34C91 "
    size = FRAGMENT * times
    return (piece * (size // len(piece.encode()) + 1)).encode()[:size].decode(errors="ignore")


def pieces_together(pieces: list[etree._Element]) -> str:
    """The text that pieces were cut from; they must be numbered, of one message, and end with the last."""
    pieces = sorted(pieces, key=lambda piece: int(piece.get("index")))
    assert {piece.tag for piece in pieces} == {hp("Piece")}
    assert len({piece.get("identification") for piece in pieces}) == 1
    assert [piece.get("index") for piece in pieces] == list(map(str, range(len(pieces))))
    assert [piece.get("more") for piece in pieces] == ["1"] * (len(pieces) - 1) + ["0"]
    return "".join(piece.text for piece in pieces)


async def take_pieces(place: Place) -> str:
    """Take pieces, in whatever order they come, until all are there."""
    pieces: list[etree._Element] = []
    expected: int | None = None
    while expected is None or len(pieces) < expected:
        pieces.append(await place.element())
        if pieces[-1].get("more") == "0":
            expected = int(pieces[-1].get("index")) + 1
    return pieces_together(pieces)


async def test_a_notification_that_nobody_elsewhere_wants_stays_at_its_node(nodes: dict[str, Member]) -> None:
    async with places(nodes, "n2") as at:
        before = {name: node.status()["routing"] for name, node in nodes.items()}
        await at["n2"].client.subscribe("NOBODY", at["n2"].receiver)
        await at["n2"].client.notify("NOBODY", "<m>1</m>")
        assert await at["n2"].get() == ("NOBODY", "1")
        after = {name: node.status()["routing"] for name, node in nodes.items()}
    assert after["n2"]["forwarded"] == before["n2"]["forwarded"]
    assert all(after[name]["arrived"] == before[name]["arrived"] for name in nodes)


async def test_a_publisher_on_demand_at_one_node_publishes_for_a_subscriber_at_another(
    nodes: dict[str, Member],
) -> None:
    async with places(nodes, "n1", "n4") as at, DemandPublisher() as publisher:
        await at["n1"].client.register_publisher("TIDES", publisher=publisher, demand=True, expires=600)
        assert await publisher.notify("TIDES", "low") == 0
        await at["n4"].client.subscribe("TIDES", at["n4"].receiver)
        async with patience():
            await publisher.wait_until_wanted("TIDES")
        assert await publisher.notify("TIDES", "high") == 1
        assert await at["n4"].get() == ("TIDES", "high")


async def test_the_command_line_asks_for_reliable_and_partial(nodes: dict[str, Member]) -> None:
    async with places(nodes, "n1", "n3") as at:
        here, there = at.values()
        await there.client.subscribe("CLI", there.receiver)
        await reaches(here, "CLI", there)
        words = ("publish", "CLI", "-", "--url", nodes["n1"].url, "--reliable", "--partial")
        ended = await asyncio.to_thread(hpwsn, *words, stdin=text_of(3))
        assert (ended.returncode, ended.stderr) == (0, "")
        assert await take_pieces(there) == text_of(3)


async def test_events_in_json_may_be_reliable_and_partial(nodes: dict[str, Member]) -> None:
    async with places(nodes, "n1", "n3") as at, ClientSession() as session:
        here, there = at.values()
        await there.client.subscribe("JSON", there.receiver)
        await reaches(here, "JSON", there)
        address = f"{nodes['n1'].base}/topics/JSON/events"
        before = nodes["n1"].status()["routing"]["tcp"]["messages_sent"]
        async with session.post(f"{address}?reliable=true&partial=true", json={"v": text_of(2)}) as answer:
            assert answer.status == 202
        assert text_of(2) in "".join(etree.fromstring(await take_pieces(there)).itertext())
        assert nodes["n1"].status()["routing"]["tcp"]["messages_sent"] > before
        async with session.post(f"{address}?reliable=maybe", json={}) as answer:
            assert answer.status == 400


async def test_the_originals_pieces_reach_its_receivers_at_another_node_as_bare_text(
    nodes: dict[str, Member],
) -> None:
    async with Consumer() as receiver, places(nodes, "n1", "n2") as at:
        door = f"{nodes['n2'].url}/process"
        created = await send(door, CREATE.format(name="").encode())
        endpoint = created.content.findtext(f".//{{{WSA}}}Address")
        asked = SUBSCRIBE.format(endpoint=endpoint, topic="ORIG", receiver=receiver.url)
        assert (await send(door, asked.encode())).status == 200
        await at["n2"].client.subscribe("ORIG", at["n2"].receiver)
        await reaches(at["n1"], "ORIG", at["n2"])
        text = "x" * FRAGMENT * 2
        for fragment, part in (("1-0-1-1", text[FRAGMENT:]), ("1-1-1-0", text[:FRAGMENT])):
            sent = NOTIFICATION.format(topic="ORIG", fragment=fragment, message=part)
            assert (await send(f"{nodes['n1'].url}/process", sent.encode())).status == 202
        assert await take_pieces(at["n2"]) == text
        await receiver.wait(
            lambda r: "".join(each.findtext("w:Message", "", NAMES) for each in r.messages()) == text
        )


@pytest.mark.parametrize("header", ['reliable="maybe"', 'partial=""'])
async def test_a_routing_header_that_says_nothing_clear_is_a_fault(
    nodes: dict[str, Member], header: str
) -> None:
    routing = f'<hp:Routing xmlns:hp="urn:hpwsn:1" {header}/>'
    reply = await call(nodes["n1"].url, notify("CLEAR", "<m/>"), headers=routing)
    assert reply.status == 500
    assert b"write true or false" in reply.body


async def publish_steadily(url: str, topic: str, count: int, sent: asyncio.Event) -> None:
    """Publish numbered reliable notifications, each tried until it is accepted, the half announced."""
    async with Client(url, timeout=5) as client:
        for number in range(count):
            while True:
                try:
                    await client.notify(
                        topic, f"<m>{number}</m>", reliable=True, message_id=f"{topic}-{number}"
                    )
                    break
                except (HpwsnClientError, SoapFault):
                    await asyncio.sleep(0.05)
            if number == count // 2:
                sent.set()


async def test_reliable_notifications_arrive_once_each_whoever_is_killed_on_their_way(
    tmp_path: Path,
) -> None:
    clusters = {"r1": "one", "r2": "one", "s1": "two", "s2": "two"}
    with running(tmp_path, clusters) as (admin, nodes):
        async with places(nodes, "r2", "s2") as at:
            publisher, subscriber = at.values()
            await subscriber.client.subscribe("LOAD", subscriber.receiver)
            await reaches(publisher, "LOAD", subscriber)
            for victim in ("r1", "s1", "r2"):
                half = asyncio.Event()
                topic = f"LOAD:{victim}"
                load = asyncio.create_task(publish_steadily(nodes["r2"].url, topic, 200, half))
                await half.wait()
                nodes[victim].kill()
                if victim == "r1":
                    # Without an admin node nobody takes over, and what is reliable waits.
                    admin.kill()
                    await asyncio.to_thread(admin.start)
                if victim == "r2":
                    await asyncio.to_thread(nodes[victim].start)
                await load
                got = sorted([int((await subscriber.get())[1]) for _ in range(200)])
                assert got == list(range(200)), victim
            assert (admin.representative("one"), admin.representative("two")) == ("r2", "s2")
            # A node that is stopped and started again, as for an upgrade, has its subscriptions still.
            await asyncio.to_thread(nodes["s2"].terminate)
            for number in range(20):
                await publisher.client.notify("LOAD:stop", f"<m>{number}</m>", reliable=True)
            await asyncio.to_thread(nodes["s2"].start)
            assert sorted([int((await subscriber.get())[1]) for _ in range(20)]) == list(range(20))
            await publisher.client.notify("LOAD", "<end/>", reliable=True)
            assert (await subscriber.element()).tag == "end"
