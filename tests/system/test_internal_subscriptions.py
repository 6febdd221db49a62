"""Internal topics: no subscription or pull point gets their notifications, whatever it asks for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hpwsn_client import Client, DemandPublisher, Receiver
from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.internal_topics import (
    PLATE,
    PUBLIC_TREE,
    TREE,
    get,
    internal_node,
    internal_tree,
    on_file,
    post,
    publish_both,
    pulled,
    shows,
)
from tests.original_messages import CREATE, SUBSCRIBE
from tests.patience import patience
from tests.raw_soap import CONCRETE_SET, FULL, NAMES, Reply, call, envelope, send, subscribe
from tests.webhooks import ask, create, data_of, listed

__all__ = ["internal_node", "internal_tree"]

TEV = "http://www.onvif.org/ver10/events/wsdl"


@pytest.mark.parametrize(
    ("topic", "dialect"),
    [
        ("traffic:anpr", "Simple"),
        ("traffic:anpr:lane1", "Simple"),
        ("t:traffic/anpr", "Concrete"),
        ("t:traffic/anpr/*", "Full"),
        ("t:traffic/anpr//.", "Full"),
        ("t:traffic/anpr|t:traffic/anpr/lane1", "Full"),
    ],
)
async def test_a_subscribe_of_internal_topics_only_is_a_fault(
    node: NodeProcess, topic: str, dialect: str
) -> None:
    uri = f"http://docs.oasis-open.org/wsn/t-1/TopicExpression/{dialect}"
    body = subscribe("http://127.0.0.1:9/", topic, dialect=uri)
    reply = await call(node.url, body.replace("<w:Subscribe", '<w:Subscribe xmlns:t="urn:hpwsn:topics"', 1))
    assert (reply.status, reply.fault) == (500, "TopicNotSupportedFault")
    assert "is internal" in reply.body.decode()
    assert json.loads((await get(node, "/subscriptions"))[2])["items"] == []


async def test_other_subscriptions_get_what_is_public_and_nothing_internal(node: NodeProcess) -> None:
    raw = "<w:SubscriptionPolicy><w:UseRaw/></w:SubscriptionPolicy>"
    predicate = f'vid = "{PLATE}" or mark = "mark"'
    content = f'<w:MessageContent Dialect="urn:hpwsn:predicates">{predicate}</w:MessageContent>'
    asked: list[dict[str, Any]] = [
        {"topic": "traffic"},
        {"topic": None},
        {"topic": "t:traffic//.", "dialect": FULL},
        {"topic": "t:*/*", "dialect": FULL},
        {"topic": "traffic", "more": raw},
        {"topic": "traffic", "filters": content},
        {"topic": None, "filters": content},
    ]
    consumers = [Consumer() for _ in asked]
    try:
        for consumer, wanted in zip(consumers, asked, strict=True):
            await consumer.__aenter__()
            body = subscribe(consumer.url, **wanted)
            body = body.replace("<w:Subscribe", '<w:Subscribe xmlns:t="urn:hpwsn:topics"', 1)
            reply = await call(node.url, body)
            assert reply.status == 200, reply.body
        await publish_both(node)
        for consumer in consumers:
            await consumer.wait(lambda c: any(b"mark" in body for body in c.requests))
            assert not [body for body in consumer.requests if PLATE.encode() in body]
    finally:
        for consumer in consumers:
            await consumer.__aexit__(None, None, None)


async def test_the_current_message_of_an_internal_topic_is_a_fault(node: NodeProcess, tree: Path) -> None:
    await on_file(node, tree, PUBLIC_TREE, internal=False)
    await post(node, "traffic:anpr", {"vid": "public"})
    await on_file(node, tree, TREE, internal=True)
    await publish_both(node)
    body = (
        "<w:GetCurrentMessage><w:Topic"
        ' Dialect="http://docs.oasis-open.org/wsn/t-1/TopicExpression/Simple">traffic:anpr</w:Topic>'
        "</w:GetCurrentMessage>"
    )
    reply = await call(node.url, body)
    assert (reply.status, reply.fault) == (500, "TopicNotSupportedFault")
    await on_file(node, tree, PUBLIC_TREE, internal=False)
    reply = await call(node.url, body)
    assert PLATE not in reply.body.decode()
    assert "public" in reply.body.decode()


async def test_a_pull_point_gets_nothing_internal(node: NodeProcess) -> None:
    created = await call(node.url, "<w:CreatePullPoint/>")
    point = created.text("w:PullPoint/a:Address")
    refused = await call(node.url, subscribe(point, "traffic:anpr"))
    assert refused.fault == "TopicNotSupportedFault"
    assert (await call(node.url, subscribe(point, "traffic"))).status == 200
    await publish_both(node)
    assert await pulled(point) == ["mark"]


async def test_the_door_of_the_original_refuses_and_leaves_out(node: NodeProcess) -> None:
    async def process(text: str) -> Reply:
        return await send(f"{node.url}/process", text.encode())

    async with Consumer() as consumer:
        for topic in ("traffic:anpr", "traffic"):
            created = await process(CREATE.format(name=""))
            endpoint = created.content.findtext(".//a:Address", namespaces=NAMES)
            request = SUBSCRIBE.format(endpoint=endpoint, topic=topic, receiver=consumer.url)
            reply = await process(request)
            if topic == "traffic:anpr":
                assert reply.fault == "TopicNotSupportedFault"
            else:
                assert reply.status == 200, reply.body
        await publish_both(node)
        await consumer.wait(lambda c: len(c.requests) >= 1)
        assert b"mark" in consumer.requests[0]


async def test_onvif_refuses_and_leaves_out(node: NodeProcess) -> None:
    async def ask(url: str, body: str) -> Reply:
        return await send(
            url,
            envelope(body.replace(">", f' xmlns:t="{TEV}" xmlns:tns="urn:hpwsn:topics">', 1), "1.2"),
            "application/soap+xml; charset=utf-8",
        )

    def create(topic: str) -> str:
        on = f'<w:TopicExpression Dialect="{CONCRETE_SET}">{topic}</w:TopicExpression>'
        return (
            f"<t:CreatePullPointSubscription><t:Filter>{on}</t:Filter>"
            "<t:InitialTerminationTime>PT60S</t:InitialTerminationTime></t:CreatePullPointSubscription>"
        )

    door = f"{node.base}/onvif/events"
    for expression in ("tns:traffic/anpr", "tns:traffic/anpr//.", "tns:traffic/anpr|tns:traffic/anpr/lane1"):
        assert (await ask(door, create(expression))).fault == "TopicNotSupportedFault"
    refused = await ask(door, subscribe("http://127.0.0.1:9/", "tns:traffic/anpr", dialect=CONCRETE_SET))
    assert refused.fault == "TopicNotSupportedFault"
    created = await ask(door, create("tns:traffic//."))
    assert created.status == 200, created.body
    address = created.content.findtext(".//a:Address", namespaces=NAMES)
    await publish_both(node)
    pull = "<t:PullMessages><t:Timeout>PT60S</t:Timeout><t:MessageLimit>10</t:MessageLimit></t:PullMessages>"
    reply = await ask(address, pull)
    assert PLATE not in reply.body.decode()
    assert "mark" in reply.body.decode()
    assert (await ask(address, "<t:SetSynchronizationPoint></t:SetSynchronizationPoint>")).status == 200
    await post(node, "traffic:flow", {"mark": "second"})
    seen = ""
    while "second" not in seen:
        seen += (await ask(address, pull)).body.decode()
    assert PLATE not in seen


async def test_the_names_of_internal_topics_are_listed(node: NodeProcess) -> None:
    body = (
        '<rp:GetResourceProperty xmlns:rp="http://docs.oasis-open.org/wsrf/rp-2"'
        ' xmlns:t="http://docs.oasis-open.org/wsn/t-1">t:TopicSet</rp:GetResourceProperty>'
    )
    await publish_both(node)
    reply = await call(node.url, body)
    assert "anpr" in reply.body.decode()
    assert PLATE not in reply.body.decode()


async def test_what_a_publisher_on_demand_sends_stays_internal(node: NodeProcess) -> None:
    """A subscription to a topic above is interest; the publisher sends, and the subscriber gets nothing."""
    async with Client(node.url) as client, DemandPublisher() as publisher, Receiver() as receiver:
        await client.register_publisher("traffic:anpr", publisher=publisher, demand=True)
        await client.subscribe("traffic", receiver)
        async with patience():
            await publisher.wait_until_wanted("traffic:anpr")
            assert await publisher.notify("traffic:anpr", f"<v>{PLATE}</v>") == 1
            await client.notify("traffic:flow", "<v>mark</v>")
            assert "mark" in (await receiver.get()).text
        _, _, body = await get(node, "/topics/traffic:anpr/events", headers=shows(node))
        assert PLATE.encode() in body


async def test_a_webhook_of_internal_topics_only_is_refused(node: NodeProcess) -> None:
    asked = {"callback": "http://127.0.0.1:9/", "topic": "traffic:anpr"}
    status, answer = await ask("POST", f"{node.base}/subscriptions", asked)
    assert (status, "is internal" in answer["error"]) == (401, True)
    assert (await listed(node))["total"] == 0
    await create(node, "http://127.0.0.1:9/")
    assert (await listed(node, "?topic=traffic:anpr"))["items"] == []


async def test_other_webhooks_get_what_is_public_and_nothing_internal(node: NodeProcess) -> None:
    async with Consumer() as consumer, Consumer() as all_topics:
        await create(node, consumer, topic="traffic")
        await create(node, all_topics)
        await publish_both(node)
        for each in (consumer, all_topics):
            await each.wait(lambda c: "mark" in str(data_of(c)))
            assert PLATE not in str(data_of(each))
