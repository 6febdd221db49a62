"""One log behind all doors: whoever reads, by whatever door, sees the same events in the same order.

Publishers at both doors work at once. A JSON poll, a stream of server-sent events, a pushed SOAP consumer, a
pull point read by hand and one read by zeep must all tell the same story.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import zeep
from lxml import etree

from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.patience import eventually
from tests.raw_soap import CONCRETE, NAMES, call, notify, subscribe

TOPIC = "both"
PUBLISHERS, EACH = 3, 15
TOTAL = 2 * PUBLISHERS * EACH
HEADER = '<hp:MessageId xmlns:hp="urn:hpwsn:1">{}</hp:MessageId>'


async def publish_json(session: aiohttp.ClientSession, node: NodeProcess, who: int) -> None:
    for n in range(EACH):
        name = f"json-{who}-{n}"
        url = f"{node.base}/topics/{TOPIC}:d{n % 3}/events"
        async with session.post(url, json={"name": name}, params={"id": name}) as response:
            assert response.status == 202


async def publish_soap(node: NodeProcess, who: int) -> None:
    for n in range(EACH):
        name = f"soap-{who}-{n}"
        body = notify(f"{TOPIC}/d{n % 3}", f"<event><name>{name}</name></event>", dialect=CONCRETE)
        assert (await call(node.url, body, headers=HEADER.format(name))).status == 202


async def publish_all(session: aiohttp.ClientSession, node: NodeProcess) -> None:
    """Everybody at once."""
    async with asyncio.TaskGroup() as group:
        for who in range(PUBLISHERS):
            group.create_task(publish_json(session, node, who))
            group.create_task(publish_soap(node, who))


async def follow(response: aiohttp.ClientResponse) -> list[dict[str, Any]]:
    """The events of a stream, until all are there."""
    events: list[dict[str, Any]] = []
    while len(events) < TOTAL:
        line = await response.content.readline()
        assert line, "the stream ended"
        if line.startswith(b"data: "):
            events.append(json.loads(line.removeprefix(b"data: ")))
    return events


async def subscribe_pull_point(node: NodeProcess) -> str:
    point = (await call(node.url, "<w:CreatePullPoint/>")).text("w:PullPoint/a:Address")
    assert (await call(node.url, subscribe(point, TOPIC))).status == 200
    return point


async def pull(point: str) -> list[etree._Element]:
    """All that a pull point holds, a few at a time."""
    found: list[etree._Element] = []

    async def complete() -> bool:
        request = "<w:GetMessages><w:MaximumNumber>7</w:MaximumNumber></w:GetMessages>"
        found.extend((await call(point, request)).content.iterfind("w:NotificationMessage", NAMES))
        return len(found) >= TOTAL

    await eventually(complete)
    return found


def pull_by_zeep(wsdl: str, point: str) -> list[str]:
    """The names in a pull point, as zeep reads them."""
    client = zeep.Client(wsdl)
    service = client.create_service("{urn:hpwsn:1}PullPointSoap12", point)
    found: list[str] = []
    while len(found) < TOTAL:
        messages = service.GetMessages(MaximumNumber=11).NotificationMessage
        found += [name_in(message.Message._value_1) for message in messages]
    client.transport.session.close()
    return found


def name_in(payload: Any) -> str:
    """The name in a payload; zeep knows hp:event from the WSDL, and gives other payloads as they are."""
    fields = payload if isinstance(payload, etree._Element) else payload._value_1
    return str(next(field.text for field in fields if field.tag == "name"))


def names(messages: list[etree._Element]) -> list[str]:
    return [str(message.findtext(".//name")) for message in messages]


async def test_every_reader_at_every_door_sees_the_same_events_in_the_same_order(node: NodeProcess) -> None:
    url = f"{node.base}/topics/{TOPIC}/events"
    accept = {"Accept": "text/event-stream"}
    async with Consumer() as consumer, aiohttp.ClientSession() as session:
        assert (await call(node.url, subscribe(consumer.url, TOPIC))).status == 200
        points = [await subscribe_pull_point(node) for _ in range(2)]
        async with session.get(url, headers=accept) as stream:
            await stream.content.readline()
            _, followed = await asyncio.gather(publish_all(session, node), follow(stream))
        async with session.get(url, params={"max": "1000"}) as response:
            polled = await response.json()
        pulled = await pull(points[0])
        pulled_by_zeep = await asyncio.to_thread(pull_by_zeep, f"{node.url}?wsdl", points[1])
        await consumer.wait(lambda c: len(c.messages()) >= TOTAL)
    order = [event["id"] for event in polled]
    assert len(set(order)) == TOTAL
    assert followed == polled
    assert [event["data"]["name"] for event in polled] == order
    assert names(consumer.messages()) == order
    assert names(pulled) == order
    assert pulled_by_zeep == order


async def test_each_publisher_s_own_order_is_kept(node: NodeProcess) -> None:
    async with aiohttp.ClientSession() as session:
        await publish_all(session, node)
        async with session.get(f"{node.base}/topics/{TOPIC}/events", params={"max": "1000"}) as response:
            order = [event["id"] for event in await response.json()]
    for door in ("json", "soap"):
        for who in range(PUBLISHERS):
            mine = [name for name in order if name.startswith(f"{door}-{who}-")]
            assert mine == [f"{door}-{who}-{n}" for n in range(EACH)]
