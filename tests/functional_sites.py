"""A node with a subscriber and a publisher of its own, in the standard's form or in that of the original.

The original's functional tests are written once against this, and run in both forms.
"""

from __future__ import annotations

import asyncio
import uuid
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from html import escape

from lxml import etree

from hpwsn_client import Client, Receiver, Subscription
from hpwsn_client.errors import TimedOut
from hpwsn_client.wsn.soap.names import hp
from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.original_messages import CREATE, NOTIFICATION, SUBSCRIBE, UNSUBSCRIBE_BY_BODY
from tests.patience import PATIENCE, patience
from tests.raw_soap import NAMES, Reply, send

Message = tuple[str, str]
"""A topic, and the text of a message or of a piece of one."""


class Site(ABC):
    """A node, seen by one subscriber and one publisher."""

    def __init__(self, node: NodeProcess) -> None:
        self.node = node
        self._taken = 0

    @abstractmethod
    async def open(self) -> None:
        """Open the receiver."""

    @abstractmethod
    async def subscribe(self, topic: str) -> None:
        """Subscribe this site's receiver to a topic and its subtree."""

    @abstractmethod
    async def publish(self, topic: str, text: str, *, partial: bool = False, reliable: bool = False) -> None:
        """Publish a text at this node."""

    @abstractmethod
    async def next(self, seconds: float = PATIENCE) -> Message:
        """The next message, or piece; TimeoutError if none comes."""

    @abstractmethod
    async def close(self) -> None:
        """Unsubscribe, and close the receiver."""

    async def get(self) -> Message:
        """The next message that is not a probe."""
        while True:
            topic, text = await self.next()
            if not text.startswith("probe "):
                return topic, text

    async def gets(self, count: int) -> list[Message]:
        """So many messages, sorted."""
        return sorted([await self.get() for _ in range(count)])

    async def take_pieces(self, topic: str, text: str) -> int:
        """Take pieces, in any order, until they are the whole text; how many there were.

        No part of the text is equal to another one, so that each piece has one place.
        """
        pieces: dict[int, str] = {}
        while sum(map(len, pieces.values())) < len(text):
            from_topic, piece = await self.get()
            place = text.find(piece)
            assert (from_topic, place >= 0, place not in pieces) == (topic, True, True), piece
            pieces[place] = piece
        assert "".join(piece for _, piece in sorted(pieces.items())) == text
        return len(pieces)


class StandardSite(Site):
    """By the client library, in the standard's messages."""

    async def open(self) -> None:
        self._client = await Client(self.node.url).__aenter__()
        self._receiver = await Receiver().__aenter__()
        self._subscriptions: list[Subscription] = []

    async def subscribe(self, topic: str) -> None:
        self._subscriptions.append(await self._client.subscribe(topic, self._receiver))

    async def publish(self, topic: str, text: str, *, partial: bool = False, reliable: bool = False) -> None:
        await self._client.notify(topic, text, partial=partial, reliable=reliable)

    async def next(self, seconds: float = PATIENCE) -> Message:
        try:
            received = await self._receiver.get(timeout=seconds)
        except TimedOut:
            raise TimeoutError from None
        element = etree.fromstring(received.payload)
        assert element.tag in (hp("text"), hp("Piece"))
        return str(received.topic), element.text or ""

    async def close(self) -> None:
        for subscription in self._subscriptions:
            await subscription.unsubscribe()
        await self._receiver.__aexit__(None, None, None)
        await self._client.__aexit__(None, None, None)


class OriginalSite(Site):
    """By hand, in the messages that the original's author printed, at POST /wsn/process."""

    async def open(self) -> None:
        self._receiver = await Consumer().__aenter__()
        self._subscriptions: list[str] = []

    async def _process(self, request: str, **parts: str) -> Reply:
        return await send(f"{self.node.url}/process", request.format(**parts).encode())

    async def subscribe(self, topic: str) -> None:
        endpoint = _address(await self._process(CREATE, name=""))
        parts = {"endpoint": endpoint, "topic": topic, "receiver": self._receiver.url}
        self._subscriptions.append(_address(await self._process(SUBSCRIBE, **parts)))

    async def publish(self, topic: str, text: str, *, partial: bool = False, reliable: bool = False) -> None:
        request = NOTIFICATION.replace("1235324366:344", f"{uuid.uuid4()}:1")
        if reliable:
            header = '<hp:Routing xmlns:hp="urn:hpwsn:1" reliable="true"/>'
            request = request.replace("<soapenv:Header/>", f"<soapenv:Header>{header}</soapenv:Header>")
        parts = {"topic": topic, "fragment": f"0-0-{partial:d}-0", "message": escape(text, quote=False)}
        reply = await self._process(request, **parts)
        assert (reply.status, reply.body) == (202, b"")

    async def next(self, seconds: float = PATIENCE) -> Message:
        async with asyncio.timeout(seconds):
            await self._receiver.wait(lambda consumer: len(consumer.requests) > self._taken)
        body = self._receiver.requests[self._taken]
        self._taken += 1
        assert b"Package" not in body
        (message,) = etree.fromstring(body).iterfind(".//w:NotificationMessage", NAMES)
        content = message.find("w:Message", NAMES)
        assert not len(content), "text stays text for the original's receivers"
        return message.findtext("w:Topic", "", NAMES).strip(), content.text or ""

    async def close(self) -> None:
        for subscription in self._subscriptions:
            assert (await self._process(UNSUBSCRIBE_BY_BODY, subscription=subscription)).status == 200
        await self._receiver.__aexit__(None, None, None)


def _address(reply: Reply) -> str:
    assert reply.status == 200, reply.body
    found: str = reply.content.findtext(".//a:Address", "", NAMES)
    return found


FORMS = {"standard": StandardSite, "original": OriginalSite}


@asynccontextmanager
async def sites(nodes: Mapping[str, NodeProcess], form: str, *names: str) -> AsyncIterator[dict[str, Site]]:
    """A site at each of these nodes."""
    async with AsyncExitStack() as stack:
        made: dict[str, Site] = {}
        for name in names:
            site = FORMS[form](nodes[name])
            await site.open()
            stack.push_async_callback(site.close)
            made[name] = site
        yield made


async def reaches(publisher: Site, topic: str, *subscribers: Site) -> None:
    """Publish probes until each subscriber has one: from then on the nodes know what is wanted."""
    probe = f"probe {uuid.uuid4()}"
    for subscriber in subscribers:
        async with patience():
            while True:
                await publisher.publish(topic, probe)
                try:
                    while (await subscriber.next(0.2))[1] != probe:
                        pass
                    break
                except TimeoutError:
                    continue
