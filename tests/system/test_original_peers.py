"""A node beside a node of the original: here a bare socket that knows nothing of ours but the XML form."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Self

import pytest
from lxml import etree

from hpwsn_client import Client, Receiver
from tests.cluster import Member
from tests.harness import NodeProcess
from tests.patience import PATIENCE, eventually, patience

SIZE = 900
HP = "{urn:hpwsn:1}"
NOTIFICATION = (
    '<w:NotificationMessage xmlns:w="http://docs.oasis-open.org/wsn/b-2">'
    '<w:Topic Dialect="http://docs.oasis-open.org/wsn/t-1/TopicExpression/Simple">{topic}</w:Topic>'
    "<w:Package><Identification>{id}</Identification><Fragment>{fragment}</Fragment></w:Package>"
    "<w:Message>{message}</w:Message></w:NotificationMessage>"
)


@dataclass(frozen=True)
class Packed:
    """A datagram as the original reads it."""

    topic: str
    identification: str
    fragment: tuple[int, ...]
    content: str

    @classmethod
    def parse(cls, data: bytes) -> Self:
        assert len(data) <= SIZE
        topic, package, message = etree.fromstring(data)
        elements = (etree.tostring(each, method="c14n", exclusive=True).decode() for each in message)
        content = (message.text or "") + "".join(elements)
        identification, fragment = (each.text for each in package)
        return cls(topic.text, identification, tuple(map(int, fragment.split("-"))), content)


class Original:
    """The peer: one socket."""

    def __init__(self) -> None:
        self.socket = socket.socket(type=socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.setblocking(False)
        self.address = "{}:{}".format(*self.socket.getsockname())

    async def get(self) -> Packed:
        async with patience():
            return Packed.parse(await asyncio.get_running_loop().sock_recv(self.socket, 65536))

    async def whole(self) -> Packed:
        """All pieces of a message, put together."""
        pieces = [await self.get()]
        while pieces[-1].fragment[1]:
            pieces.append(await self.get())
        first = pieces[0]
        split, _, partial, _ = first.fragment
        last = len(pieces) - 1
        assert [each.fragment for each in pieces] == [
            (split, int(index < last), partial, index) for index in range(len(pieces))
        ]
        assert {(each.topic, each.identification) for each in pieces} == {(first.topic, first.identification)}
        return Packed(
            first.topic, first.identification, first.fragment, "".join(each.content for each in pieces)
        )


@dataclass
class Beside:
    """A node with its original, and the port by which that one reaches it."""

    node: NodeProcess
    original: Original
    port: int

    def send(self, data: str, by: socket.socket | None = None) -> None:
        (by or self.original.socket).sendto(data.encode(), ("127.0.0.1", self.port))

    def figures(self) -> dict[str, int]:
        found: dict[str, int] = Member.status(self.node)["originals"]  # type: ignore[arg-type]
        return found


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beside]:
    original = Original()
    with socket.socket(type=socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = (
        f"routing.originals={original.address}",
        f"routing.original_port={port}",
        f"routing.fragment_size={SIZE}",
    )
    given = [part for each in settings for part in ("--set", each)]
    with original.socket, NodeProcess(tmp_path_factory.mktemp("beside") / "node", *given) as node:
        yield Beside(node, original, port)


@asynccontextmanager
async def subscribed(beside: Beside, topic: str) -> AsyncIterator[tuple[Client, Receiver]]:
    async with Client(beside.node.url) as client, Receiver() as receiver:
        await client.subscribe(topic, receiver)
        yield client, receiver


async def test_what_is_published_goes_to_the_original_in_its_form_whole_or_in_pieces(
    beside: Beside,
) -> None:
    text = "京B34C91 <&> " * 300
    element = "<m>" + "<v>1</v>" * 300 + "</m>"
    async with Client(beside.node.url) as client:
        await client.notify("A:B", "<m>1</m>")
        whole = await beside.original.get()
        assert (whole.topic, whole.fragment, whole.content) == ("A:B", (0, 0, 0, 0), "<m>1</m>")
        await client.notify("A:B", text)
        pieces = await beside.original.whole()
        assert (pieces.fragment[0], pieces.fragment[2], pieces.content) == (1, 0, text)
        await client.notify("A", element, partial=True)
        partial = await beside.original.whole()
        assert (partial.topic, partial.fragment[2], partial.content) == ("A", 1, element)
    assert len({whole.identification, pieces.identification, partial.identification}) == 3


async def test_what_the_original_sends_is_published_once_and_does_not_go_back(beside: Beside) -> None:
    text = "0123456789 " * 200
    parts = [text[at : at + 500] for at in range(0, len(text), 500)]
    async with subscribed(beside, "FROM") as (client, receiver):
        sent = [
            NOTIFICATION.format(
                topic="FROM", id="9:1", fragment=f"1-{index < len(parts) - 1:d}-0-{index}", message=part
            )
            for index, part in enumerate(parts)
        ]
        random.Random(1).shuffle(sent)
        for data in [*sent, *sent]:
            beside.send(data)
        received = await receiver.get(timeout=PATIENCE)
        assert "".join(etree.fromstring(received.payload).itertext()) == text
        beside.send(NOTIFICATION.format(topic="FROM", id="9:2", fragment="0-0-0-0", message="<m>2</m>"))
        assert (await receiver.get(timeout=PATIENCE)).payload == b"<m>2</m>"
        await client.notify("END", "<end/>")
    assert (await beside.original.get()).topic == "END"


async def test_comments_go_to_the_original_and_come_from_it_whole_and_in_pieces(beside: Beside) -> None:
    small, large = ("<m>1<!-- c --><?pi x?></m>" * times for times in (1, 80))
    async with subscribed(beside, "REMARKED") as (client, receiver):
        for payload in (small, f"<r>{large}</r>"):
            await client.notify("REMARKED", payload)
            assert (await beside.original.whole()).content == payload
            assert (await receiver.get(timeout=20)).payload == payload.encode()
        escaped = small.replace("<", "&lt;").replace(">", "&gt;")
        for id_, fragment, message in (
            ("9:6", "0-0-0-0", f"<!-- beside -->{small}"),
            ("9:7", "1-1-0-0", escaped[:20]),
            ("9:7", "1-0-0-1", escaped[20:]),
        ):
            beside.send(NOTIFICATION.format(topic="REMARKED", id=id_, fragment=fragment, message=message))
        for _ in range(2):
            assert (await receiver.get(timeout=20)).payload == small.encode()


async def test_pieces_that_may_be_partial_are_handed_out_as_they_come_though_one_is_lost(
    beside: Beside,
) -> None:
    async with subscribed(beside, "PART") as (_, receiver):
        for index in (2, 0, 4):
            fragment = f"1-{index < 4:d}-1-{index}"
            data = NOTIFICATION.format(topic="PART", id="9:3", fragment=fragment, message=f"&lt;{index}&gt;")
            beside.send(data)
            beside.send(data)
        got = [etree.fromstring((await receiver.get(timeout=PATIENCE)).payload) for _ in range(3)]
        beside.send(NOTIFICATION.format(topic="PART", id="9:4", fragment="0-0-0-0", message="<end/>"))
        assert (await receiver.get(timeout=PATIENCE)).payload == b"<end/>"
    assert {each.tag for each in got} == {f"{HP}Piece"}
    assert sorted((each.get("index"), each.get("more"), each.text) for each in got) == [
        ("0", "1", "<0>"),
        ("2", "1", "<2>"),
        ("4", "0", "<4>"),
    ]
    assert {each.get("identification") for each in got} == {"9:3"}


async def test_others_and_what_is_no_notification_are_refused_and_told(beside: Beside) -> None:
    before = beside.figures()["refused"]
    with socket.socket(type=socket.SOCK_DGRAM) as stranger:
        stranger.bind(("127.0.0.2", 0))
        beside.send(NOTIFICATION.format(topic="X", id="9:5", fragment="0-0-0-0", message="<m/>"), by=stranger)
    for bad in ("no XML", "<m/>", NOTIFICATION.format(topic="X", id="", fragment="1-1-0-0", message="x")):
        beside.send(bad)

    async def refused() -> bool:
        return beside.figures()["refused"] == before + 4

    await eventually(refused)
    assert "is not in routing.originals" in beside.node.log()
