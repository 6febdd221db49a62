"""Users of virtual sensors, as each door has them: what they get, as JSON objects, while a block lasts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from xml.sax.saxutils import escape

import aiohttp
from lxml import etree

from hpwsn_client.wsn.formats.json_events import decode_event
from hpwsn_client.wsn.soap.names import DIALECT_PREDICATES
from tests.consumer import Consumer
from tests.patience import holds
from tests.raw_soap import NAMES, SIMPLE, Reply, call, subscribe
from tests.sensor_node import SensorNode

Got = Callable[[], list[dict[str, Any]]]
User = Callable[..., AbstractAsyncContextManager[Got]]


def topic_events(node: SensorNode, topic: str) -> str:
    return f"{node.base}/topics/{topic}/events"


def content(wanted: str) -> str:
    """A content filter of a Subscribe, or none for the empty text."""
    if not wanted:
        return ""
    return f'<w:MessageContent Dialect="{DIALECT_PREDICATES}">{escape(wanted)}</w:MessageContent>'


def payload(message: etree._Element) -> dict[str, Any]:
    """The event of a NotificationMessage."""
    return decode_event(etree.tostring(message.find("w:Message", NAMES)[0]))


async def subscribed(node: SensorNode, consumer: str, topic: str | None, **more: Any) -> str:
    """The address of a new subscription."""
    reply = await call(node.url, subscribe(consumer, topic, **more))
    assert reply.status == 200, reply.body
    return reply.text("w:SubscriptionReference/a:Address")


@asynccontextmanager
async def by_soap(
    node: SensorNode, topic: str, wanted: str = "", dialect: str = SIMPLE
) -> AsyncIterator[Got]:
    """A SOAP subscription, with Unsubscribe at the end."""
    async with Consumer() as consumer:
        address = await subscribed(node, consumer.url, topic, dialect=dialect, filters=content(wanted))
        yield lambda: [payload(message) for message in consumer.messages()]
        assert (await call(address, "<w:Unsubscribe/>")).status == 200


@asynccontextmanager
async def by_webhook(node: SensorNode, topic: str, wanted: str = "") -> AsyncIterator[Got]:
    """A JSON webhook, deleted at the end."""
    async with Consumer() as consumer:
        asked = {"callback": consumer.url, "topic": topic, "filter": wanted or None}
        made = node.ask("POST", "/subscriptions", asked)
        assert made.status == 201, made
        yield lambda: [event["data"] for body in consumer.requests for event in json.loads(body)]
        assert node.ask("DELETE", f"/subscriptions/{made.body['id']}").status == 204


@asynccontextmanager
async def by_stream(node: SensorNode, topic: str, wanted: str = "") -> AsyncIterator[Got]:
    """An open SSE stream."""
    found: list[dict[str, Any]] = []

    async def read(response: aiohttp.ClientResponse) -> None:
        async for line in response.content:
            if line.startswith(b"data: "):
                found.append(json.loads(line[6:])["data"])  # noqa: PERF401 (seen before the end)

    headers = {"Accept": "text/event-stream"}
    params = {"filter": wanted} if wanted else {}
    timeout = aiohttp.ClientTimeout(total=None)
    async with (
        aiohttp.ClientSession(timeout=timeout) as session,
        session.get(topic_events(node, topic), headers=headers, params=params) as response,
    ):
        assert response.status == 200, await response.text()
        reading = asyncio.create_task(read(response))
        yield lambda: found
        reading.cancel()
        await asyncio.wait([reading])


@asynccontextmanager
async def by_socket(node: SensorNode, topic: str, wanted: str = "") -> AsyncIterator[Got]:
    """An open WebSocket."""
    found: list[dict[str, Any]] = []

    async def read(socket: aiohttp.ClientWebSocketResponse) -> None:
        async for message in socket:
            event = json.loads(message.data)
            if "data" in event:
                found.append(event["data"])

    params = {"filter": wanted} if wanted else {}
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(topic_events(node, topic), params=params) as socket,
    ):
        reading = asyncio.create_task(read(socket))
        yield lambda: found
        reading.cancel()
        await asyncio.wait([reading])


@asynccontextmanager
async def by_poll(node: SensorNode, topic: str, wanted: str = "") -> AsyncIterator[Got]:
    """A poll that waits, again and again."""
    found: list[dict[str, Any]] = []

    async def read(session: aiohttp.ClientSession) -> None:
        after: object = None
        while True:
            params = {"wait": "10", **({"filter": wanted} if wanted else {})}
            params |= {} if after is None else {"after": str(after)}
            async with session.get(topic_events(node, topic), params=params) as response:
                assert response.status == 200, await response.text()
                for event in await response.json():
                    found.append(event["data"])
                    after = event["offset"]

    async with aiohttp.ClientSession() as session:
        reading = asyncio.create_task(read(session))
        yield lambda: found
        reading.cancel()
        await asyncio.wait([reading])


class PullPoint:
    """A pull point with a subscription, which both outlive the node."""

    def __init__(self, address: str, subscription: str) -> None:
        self.address = address
        self.subscription = subscription
        self.got: list[dict[str, Any]] = []

    @classmethod
    async def on(cls, node: SensorNode, topic: str, wanted: str = "") -> PullPoint:
        """A new one that gets the events of a topic."""
        address = (await call(node.url, "<w:CreatePullPoint/>")).text("w:PullPoint/a:Address")
        return cls(address, await subscribed(node, address, topic, filters=content(wanted)))

    async def fetch(self) -> Reply:
        """Get all that waits into `got`."""
        reply = await call(self.address, "<w:GetMessages/>")
        assert reply.status == 200, reply.body
        self.got += [payload(each) for each in reply.content.iterfind("w:NotificationMessage", NAMES)]
        return reply


@asynccontextmanager
async def by_pull_point(node: SensorNode, topic: str, wanted: str = "") -> AsyncIterator[Got]:
    """A pull point, which somebody empties, destroyed at the end."""
    point = await PullPoint.on(node, topic, wanted)

    async def read() -> None:
        while True:
            await point.fetch()
            await asyncio.sleep(0.02)

    reading = asyncio.create_task(read())
    yield lambda: point.got
    reading.cancel()
    await asyncio.wait([reading])
    assert (await call(point.address, "<w:DestroyPullPoint/>")).status == 200


USERS: dict[str, User] = {
    "soap": by_soap,
    "webhook": by_webhook,
    "stream": by_stream,
    "socket": by_socket,
    "poll": by_poll,
    "pull point": by_pull_point,
}


def define(node: SensorNode, name: str, **fields: Any) -> dict[str, Any]:
    """Define a virtual sensor of the temperature with short windows."""
    body = {"quantity": "t", "every": 0.2, "lateness": 0.1, **fields}
    found = node.ask("PUT", f"/virtual/{name}", body)
    assert found.status in (200, 201), found
    return dict(found.body)


def state(node: SensorNode, name: str) -> str:
    return str(node.get(f"/virtual/{name}")["state"])


async def state_is(node: SensorNode, name: str, wanted: str) -> None:
    """Wait until a virtual sensor runs, or is idle."""
    await holds(lambda: state(node, name) == wanted)


async def ready(node: SensorNode, name: str) -> None:
    """Wait until a virtual sensor runs and has its members."""
    await holds(lambda: bool(node.get(f"/virtual/{name}")["members"]))


def ahead(values: list[float], name: str = "s1", every: float = 0.2, first: float = 1.0) -> list[Any]:
    """Readings of the next windows, one in the middle of each."""
    begin = (datetime.now(UTC).timestamp() // every + 1) * every + first + every / 2
    return [
        {"sensor": name, "t": value, "time": time_text(begin + every * number)}
        for number, value in enumerate(values)
    ]


def time_text(seconds: float) -> str:
    """RFC 3339 in milliseconds."""
    moment = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=round(seconds * 1000))
    return moment.isoformat(timespec="milliseconds")


async def has(got: Got, count: int) -> list[dict[str, Any]]:
    """Wait for so many events."""
    await holds(lambda: len(got()) >= count)
    return got()
