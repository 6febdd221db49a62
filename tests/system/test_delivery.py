"""Push: in order, many to a Notify, again after a failure, and nobody waits for anybody else."""

from pathlib import Path

import pytest

from hpwsn_client.wsn.soap.names import ACTION_NOTIFY
from tests import raw_soap
from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.raw_soap import call, notify, subscribe


async def test_notifications_arrive_in_the_order_of_acceptance(node: NodeProcess) -> None:
    async with Consumer() as consumer:
        await call(node.url, subscribe(consumer.url, "A"))
        for number in range(200):
            assert (await call(node.url, notify("A", f"<n>{number}</n>"))).status == 202
        await consumer.wait(lambda c: len(c.messages()) >= 200)
        assert consumer.payloads() == [str(number) for number in range(200)]


@pytest.mark.parametrize(("setting", "said"), [("empty", ""), ("action", ACTION_NOTIFY)])
async def test_soapaction_is_empty_unless_the_setting_asks_for_the_action(
    tmp_path: Path, setting: str, said: str
) -> None:
    with NodeProcess(tmp_path / "data", "--set", f"delivery.soap_action={setting}") as node:
        async with Consumer() as old, Consumer() as new:
            await call(node.url, subscribe(old.url, "A"), "1.1")
            await call(node.url, subscribe(new.url, "A"), "1.2")
            await call(node.url, notify("A", "<n/>"))
            await old.wait(lambda c: len(c.messages()) == 1)
            await new.wait(lambda c: len(c.messages()) == 1)
    assert old.headers[0]["SOAPAction"] == f'"{said}"'
    assert "SOAPAction" not in new.headers[0]
    assert new.headers[0]["Content-Type"] == f'{raw_soap.TYPES["1.2"]}; action="{ACTION_NOTIFY}"'


async def test_waiting_notifications_travel_together_up_to_the_policys_batch(node: NodeProcess) -> None:
    policy = '<w:SubscriptionPolicy><hp:Delivery xmlns:hp="urn:hpwsn:1" batch="7"/></w:SubscriptionPolicy>'
    async with Consumer() as consumer:
        await call(node.url, subscribe(consumer.url, "A", more=policy))
        await call(node.url, notify("A", *(f"<n>{number}</n>" for number in range(50))))
        await consumer.wait(lambda c: len(c.messages()) >= 50)
        sizes = [request.count(b"</wsnt:NotificationMessage>") for request in consumer.requests]
        assert consumer.payloads() == [str(number) for number in range(50)]
    assert max(sizes) == 7
    assert len(sizes) == 8


async def test_one_connection_serves_many_deliveries(node: NodeProcess) -> None:
    async with Consumer() as consumer:
        await call(node.url, subscribe(consumer.url, "A"))
        for number in range(20):
            await call(node.url, notify("A", f"<n>{number}</n>"))
            await consumer.wait(lambda c, wanted=number + 1: len(c.messages()) >= wanted)
        assert len(consumer.connections) == 1


async def test_a_failed_delivery_is_tried_again_and_keeps_its_place(fast_retry_node: NodeProcess) -> None:
    node = fast_retry_node
    async with Consumer(lambda number: 500 if number in (1, 2) else 202) as consumer:
        await call(node.url, subscribe(consumer.url, "A"))
        for number in range(10):
            await call(node.url, notify("A", f"<n>{number}</n>"))
        await consumer.wait(lambda c: "9" in c.payloads())
        seen = list(dict.fromkeys(consumer.payloads()))
    assert seen == [str(number) for number in range(10)]


async def test_a_dead_and_a_hanging_consumer_hold_up_nobody(node: NodeProcess) -> None:
    async with Consumer(lambda number: 0) as hanging, Consumer() as healthy:
        await call(node.url, subscribe("http://127.0.0.1:1/dead", "A"))
        await call(node.url, subscribe(hanging.url, "A"))
        await call(node.url, subscribe(healthy.url, "A"))
        for number in range(50):
            assert (await call(node.url, notify("A", f"<n>{number}</n>"))).status == 202
        await healthy.wait(lambda c: len(c.messages()) >= 50)
        assert healthy.payloads() == [str(number) for number in range(50)]
        assert len(hanging.requests) == 1


async def test_a_consumer_far_behind_gets_all_of_it_from_the_log(tmp_path: Path) -> None:
    settings = ("--set", "delivery.window=16", "--set", "delivery.cache_bytes=0")
    with NodeProcess(tmp_path / "data", *settings) as node:
        async with Consumer() as consumer:
            reply = await call(node.url, subscribe(consumer.url, "A"))
            reference = reply.text("w:SubscriptionReference/a:Address")
            assert (await call(reference, "<w:PauseSubscription/>")).status == 200
            for start in range(0, 300, 100):
                await call(node.url, notify("A", *(f"<n>{n}</n>" for n in range(start, start + 100))))
                await call(node.url, notify("B", "<n>not wanted</n>"))
            assert (await call(reference, "<w:ResumeSubscription/>")).status == 200
            await consumer.wait(lambda c: len(c.messages()) >= 300)
            await call(node.url, notify("A", "<n>300</n>"))
            await consumer.wait(lambda c: len(c.messages()) >= 301)
            assert consumer.payloads() == [str(number) for number in range(301)]


async def test_a_delivery_carries_its_subscription_the_real_topic_and_the_producer(node: NodeProcess) -> None:
    producer = "<w:ProducerReference><a:Address>http://sensor.example/1</a:Address></w:ProducerReference>"
    message = (
        "<w:Notify><w:NotificationMessage>"
        f'<w:Topic Dialect="{raw_soap.CONCRETE}" xmlns:t="urn:t">t:A/B</w:Topic>'
        f"{producer}<w:Message><t:x xmlns:t='urn:t'>1</t:x></w:Message></w:NotificationMessage></w:Notify>"
    )
    expression = f'<w:TopicExpression Dialect="{raw_soap.FULL}" xmlns:q="urn:t">q:A//.</w:TopicExpression>'
    async with Consumer() as consumer:
        reply = await call(node.url, subscribe(consumer.url, filters=expression))
        reference = reply.text("w:SubscriptionReference/a:Address")
        await call(node.url, message)
        await consumer.wait(lambda c: bool(c.requests))
        (received,) = consumer.messages()
    topic = received.find("w:Topic", raw_soap.NAMES)
    assert received.findtext("w:SubscriptionReference/a:Address", namespaces=raw_soap.NAMES) == reference
    assert (topic.text, topic.get("Dialect")) == ("t:A/B", raw_soap.CONCRETE)
    assert topic.nsmap["t"] == "urn:t"
    assert (
        received.findtext("w:ProducerReference/a:Address", namespaces=raw_soap.NAMES)
        == "http://sensor.example/1"
    )


async def test_reference_parameters_come_back_as_headers(node: NodeProcess) -> None:
    request = (
        "<w:Subscribe><w:ConsumerReference><a:Address>{url}</a:Address><a:ReferenceParameters>"
        '<k:key xmlns:k="urn:k">42</k:key></a:ReferenceParameters></w:ConsumerReference></w:Subscribe>'
    )
    async with Consumer() as consumer:
        await call(node.url, request.format(url=consumer.url))
        await call(node.url, notify("A", "<n>1</n>"))
        await consumer.wait(lambda c: bool(c.requests))
        root = raw_soap.Reply(200, {}, consumer.requests[0]).envelope
    (key,) = root.iterfind(".//{urn:k}key")
    assert (key.text, key.get(f"{{{raw_soap.WSA}}}IsReferenceParameter")) == ("42", "true")
    assert root.findtext(".//a:To", namespaces=raw_soap.NAMES) == consumer.url


async def test_deliveries_are_in_the_soap_version_of_the_subscribe(node: NodeProcess) -> None:
    async with Consumer() as first, Consumer() as second:
        await call(node.url, subscribe(first.url, "A"), "1.1")
        await call(node.url, subscribe(second.url, "A"), "1.2")
        await call(node.url, notify("A", "<n>1</n>"), "1.2")
        await first.wait(lambda c: bool(c.requests))
        await second.wait(lambda c: bool(c.requests))
    assert raw_soap.ENV["1.1"].encode() in first.requests[0]
    assert first.headers[0]["Content-Type"].startswith("text/xml")
    assert raw_soap.ENV["1.2"].encode() in second.requests[0]
    assert second.headers[0]["Content-Type"].startswith("application/soap+xml")


async def test_a_raw_subscriber_gets_the_payload_alone_one_to_a_request(node: NodeProcess) -> None:
    policy = "<w:SubscriptionPolicy><w:UseRaw/></w:SubscriptionPolicy>"
    async with Consumer() as consumer:
        await call(node.url, subscribe(consumer.url, "A", more=policy))
        await call(node.url, notify("A", "<n>1</n>", "<n>2</n>"))
        await consumer.wait(lambda c: len(c.requests) >= 2)
        bodies = [raw_soap.Reply(200, {}, request).content for request in consumer.requests]
    assert [(body.tag, body.text) for body in bodies] == [("n", "1"), ("n", "2")]


async def test_a_text_message_reaches_a_subscriber_as_a_text_element(node: NodeProcess) -> None:
    async with Consumer() as consumer:
        await call(node.url, subscribe(consumer.url, "A"))
        await call(node.url, notify("A", "fire &amp; smoke"))
        await consumer.wait(lambda c: bool(c.requests))
        (message,) = consumer.messages()
    payload = message.find("w:Message", raw_soap.NAMES)[0]
    assert (payload.tag, payload.text) == ("{urn:hpwsn:1}text", "fire & smoke")
