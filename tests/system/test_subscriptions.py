"""The life of a subscription: made once, renewed, paused, ended, expired, and back after a restart."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from tests import raw_soap
from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.patience import eventually
from tests.raw_soap import Reply, call, notify, send, subscribe

ADDRESS = "w:SubscriptionReference/a:Address"


async def _subscriptions(node: NodeProcess) -> int:
    reply = await send(f"{node.base}/status", b"", method="GET")
    status: int = json.loads(reply.body)["subscriptions"]
    return status


async def _none_left(node: NodeProcess) -> bool:
    return await _subscriptions(node) == 0


async def test_an_unsubscribed_consumer_gets_nothing_more_and_its_address_is_unknown(
    node: NodeProcess,
) -> None:
    async with Consumer() as ended, Consumer() as other:
        reference = (await call(node.url, subscribe(ended.url, "A"))).text(ADDRESS)
        await call(node.url, subscribe(other.url, "A"))
        assert (await call(reference, "<w:Unsubscribe/>")).status == 200
        await call(node.url, notify("A", "<n>1</n>"))
        await other.wait(lambda c: bool(c.requests))
        assert not ended.requests
        again = await call(reference, "<w:Unsubscribe/>")
    assert (again.status, again.fault) == (500, "ResourceUnknownFault")
    assert await _subscriptions(node) == 1


async def test_a_repeated_subscription_allocates_nothing_and_sets_the_lifetime_anew(
    node: NodeProcess,
) -> None:
    later = "<w:InitialTerminationTime>PT2H</w:InitialTerminationTime>"
    async with Consumer() as consumer:
        first = await call(node.url, subscribe(consumer.url, "A"))
        second = await call(node.url, subscribe(consumer.url, "A", more=later))
        other = await call(node.url, subscribe(consumer.url, "B"))
        assert first.text(ADDRESS) == second.text(ADDRESS) != other.text(ADDRESS)
        assert (first.text("w:TerminationTime"), second.text("w:TerminationTime") > "2") == ("", True)
        assert await _subscriptions(node) == 2
        await call(first.text(ADDRESS), "<w:Unsubscribe/>")
        assert await _subscriptions(node) == 1


async def test_a_consumer_that_subscribes_while_its_subscription_ends_is_subscribed(
    shared_node: NodeProcess,
) -> None:
    body = subscribe("http://consumer.example.org/", "subscribed:again")
    for _ in range(10):
        old = (await call(shared_node.url, body)).text(ADDRESS)
        many = (
            call(old, "<w:Unsubscribe/>") if number == 5 else call(shared_node.url, body)
            for number in range(12)
        )
        assert {reply.status for reply in await asyncio.gather(*many)} == {200}
        assert (await call(shared_node.url, body)).text(ADDRESS) != old
    await call((await call(shared_node.url, body)).text(ADDRESS), "<w:Unsubscribe/>")


async def test_a_paused_subscription_keeps_its_messages_for_the_resume(node: NodeProcess) -> None:
    async with Consumer() as consumer, Consumer() as witness:
        reference = (await call(node.url, subscribe(consumer.url, "A"))).text(ADDRESS)
        await call(node.url, subscribe(witness.url, "A"))
        assert (await call(reference, "<w:PauseSubscription/>")).content.tag.endswith(
            "PauseSubscriptionResponse"
        )
        for number in range(5):
            await call(node.url, notify("A", f"<n>{number}</n>"))
        await witness.wait(lambda c: len(c.messages()) >= 5)
        assert not consumer.requests
        await call(reference, "<w:ResumeSubscription/>")
        await consumer.wait(lambda c: len(c.messages()) >= 5)
        assert consumer.payloads() == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("version", ["1.1", "1.2"])
async def test_renew_answers_with_the_new_end_in_utc(node: NodeProcess, version: str) -> None:
    async with Consumer() as consumer:
        reference = (await call(node.url, subscribe(consumer.url, "A"), version)).text(ADDRESS)
        for text in ("PT1H", "2999-01-01T00:00:00Z", "2999-01-01T02:00:00+02:00", "2999-01-01T00:00:00"):
            reply = await call(
                reference, f"<w:Renew><w:TerminationTime>{text}</w:TerminationTime></w:Renew>", version
            )
            ends = reply.text("w:TerminationTime")
            assert reply.status == 200
            assert ends.endswith("Z")
            if text.startswith("2"):
                assert ends == "2999-01-01T00:00:00Z"


@pytest.mark.parametrize("text", ["2001-01-01T00:00:00Z", "PT0S", "-PT5M", "soon", ""])
async def test_an_end_that_cannot_be_is_the_unacceptable_fault(node: NodeProcess, text: str) -> None:
    asked = f"<w:InitialTerminationTime>{text}</w:InitialTerminationTime>"
    async with Consumer() as consumer:
        refused = await call(node.url, subscribe(consumer.url, "A", more=asked))
        reference = (await call(node.url, subscribe(consumer.url, "A"))).text(ADDRESS)
        renewed = await call(reference, f"<w:Renew><w:TerminationTime>{text}</w:TerminationTime></w:Renew>")
    assert refused.fault == "UnacceptableInitialTerminationTimeFault"
    assert renewed.fault == "UnacceptableTerminationTimeFault"
    assert refused.detail.findtext("w:MinimumTime", namespaces=raw_soap.NAMES)


async def test_an_expired_subscription_ends_and_frees_everything(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", "--set", "subscriptions.grace=0") as node:
        async with Consumer() as consumer:
            brief = "<w:InitialTerminationTime>PT0.3S</w:InitialTerminationTime>"
            reference = (await call(node.url, subscribe(consumer.url, "A", more=brief))).text(ADDRESS)
            await eventually(lambda: _none_left(node))
            await call(node.url, notify("A", "<n>1</n>"))
            assert (await call(reference, "<w:Unsubscribe/>")).fault == "ResourceUnknownFault"
            assert not consumer.requests


async def test_a_renew_within_the_grace_revives_an_expired_subscription(node: NodeProcess) -> None:
    async with Consumer() as consumer, Consumer() as witness:
        brief = "<w:InitialTerminationTime>PT0.2S</w:InitialTerminationTime>"
        reply = await call(node.url, subscribe(consumer.url, "A", more=brief))
        await call(node.url, subscribe(witness.url, "A"))
        reference = reply.text(ADDRESS)
        await eventually(lambda: _expired(node, reference))
        await call(node.url, notify("A", "<n>1</n>"))
        await witness.wait(lambda c: bool(c.requests))
        assert not consumer.requests
        renewed = await call(reference, "<w:Renew><w:TerminationTime>PT1H</w:TerminationTime></w:Renew>")
        assert renewed.status == 200
        await call(node.url, notify("A", "<n>2</n>"))
        await consumer.wait(lambda c: "2" in c.payloads())


async def _expired(node: NodeProcess, reference: str) -> bool:
    address = f"{node.base}/subscriptions/{reference.rsplit('/', 1)[1]}"
    return b'"expired"' in (await send(address, b"", method="GET")).body


async def test_subscriptions_and_their_addresses_outlive_the_process(tmp_path: Path) -> None:
    async with Consumer() as consumer:
        node = NodeProcess(tmp_path / "data").start()
        reference = (await call(node.url, subscribe(consumer.url, "A"))).text(ADDRESS)
        paused = (await call(node.url, subscribe(consumer.url, "B"))).text(ADDRESS)
        await call(paused, "<w:PauseSubscription/>")
        await call(node.url, notify("B", "<n>kept</n>"))
        await call(node.url, notify("A", "<n>before</n>"))
        await consumer.wait(lambda c: bool(c.requests))
        assert node.terminate() == 0
        with node:
            await call(node.url, notify("A", "<n>after</n>"))
            await consumer.wait(lambda c: "after" in c.payloads())
            await call(paused, "<w:ResumeSubscription/>")
            await consumer.wait(lambda c: "kept" in c.payloads())
            assert (await call(reference, "<w:Unsubscribe/>")).status == 200
            assert consumer.payloads().count("before") == 1


async def test_after_kill_9_all_that_was_accepted_is_delivered(tmp_path: Path) -> None:
    async with Consumer(lambda number: 503) as consumer:
        node = NodeProcess(tmp_path / "data", "--set", "delivery.retry_first=0.1").start()
        await call(node.url, subscribe(consumer.url, "A"))
        for number in range(20):
            assert (await call(node.url, notify("A", f"<n>{number}</n>"))).status == 202
        node.kill()
        consumer.requests.clear()
        consumer.answer = lambda number: 202
        with node:
            await consumer.wait(lambda c: len(c.messages()) >= 20)
            assert consumer.payloads() == [str(number) for number in range(20)]


def _has(count: int, consumer: Consumer) -> bool:
    return len(consumer.messages()) >= count


async def test_topic_dialects_select_what_the_standard_says(node: NodeProcess) -> None:
    expressions = [
        ("t:A", raw_soap.SIMPLE, {"A", "A/B", "A/B/C"}),
        ("t:A/B", raw_soap.CONCRETE, {"A/B"}),
        ("t:A/*", raw_soap.FULL, {"A/B"}),
        ("t:A//.", raw_soap.FULL, {"A", "A/B", "A/B/C"}),
        ("t:A//C|t:D", raw_soap.FULL, {"A/B/C", "D"}),
        ("t://*", raw_soap.FULL, {"A", "A/B", "A/B/C", "D"}),
    ]
    consumers = [Consumer() for _ in expressions]
    for consumer, (text, dialect, _) in zip(consumers, expressions, strict=True):
        await consumer.__aenter__()
        expression = f'<w:TopicExpression Dialect="{dialect}" xmlns:t="urn:t">{text}</w:TopicExpression>'
        assert (await call(node.url, subscribe(consumer.url, filters=expression))).status == 200
    for path in ("A", "A/B", "A/B/C", "D"):
        topic = f'<w:Topic Dialect="{raw_soap.CONCRETE}" xmlns:t="urn:t">t:{path}</w:Topic>'
        message = (
            f"<w:NotificationMessage>{topic}<w:Message><p>{path}</p></w:Message></w:NotificationMessage>"
        )
        assert (await call(node.url, f"<w:Notify>{message}</w:Notify>")).status == 202
    for consumer, (text, _, wanted) in zip(consumers, expressions, strict=True):
        await consumer.wait(partial(_has, len(wanted)))
        assert set(consumer.payloads()) == wanted, text
        await consumer.__aexit__(None, None, None)


async def test_content_filters_look_at_the_payload(node: NodeProcess) -> None:
    expression = "/s:car/s:speed &gt; 60"
    xpath = f'<w:MessageContent Dialect="{raw_soap.XPATH}" xmlns:s="urn:s">{expression}</w:MessageContent>'
    async with Consumer() as consumer, Consumer() as witness:
        await call(node.url, subscribe(consumer.url, "cars", filters=xpath))
        await call(node.url, subscribe(witness.url, "cars"))
        for speed in (50, 61, 60, 99):
            await call(node.url, notify("cars", f'<car xmlns="urn:s"><speed>{speed}</speed></car>'))
        await witness.wait(lambda c: len(c.messages()) >= 4)
        await consumer.wait(lambda c: len(c.messages()) >= 2)
        assert consumer.payloads() == ["61", "99"]


async def test_a_message_without_a_topic_goes_to_subscribers_without_a_topic_filter(
    node: NodeProcess,
) -> None:
    async with Consumer() as everything, Consumer() as one:
        await call(node.url, subscribe(everything.url))
        await call(node.url, subscribe(one.url, "A"))
        await call(node.url, notify(None, "<n>1</n>"))
        await call(node.url, notify("A", "<n>2</n>"))
        await everything.wait(lambda c: len(c.messages()) >= 2)
        await one.wait(lambda c: bool(c.requests))
        assert (everything.payloads(), one.payloads()) == (["1", "2"], ["2"])


async def test_a_termination_time_is_near_the_duration_asked_for(node: NodeProcess) -> None:
    asked = "<w:InitialTerminationTime>PT1H</w:InitialTerminationTime>"
    async with Consumer() as consumer:
        reply: Reply = await call(node.url, subscribe(consumer.url, "A", more=asked))
    ends = datetime.fromisoformat(reply.text("w:TerminationTime"))
    assert abs(ends - datetime.now(UTC) - timedelta(hours=1)) < timedelta(minutes=5)
