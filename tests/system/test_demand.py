"""Publishers on demand: subscribed to while somebody is interested in one of their topics, and only then."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from lxml import etree

from hpwsn_client.wsn.soap.names import request_action
from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.patience import eventually
from tests.producer import Producer, register
from tests.raw_soap import ENV, FULL, XPATH, Reply, call, notify, subscribe

QUICK = (
    *("--set", "registrations.linger=0"),
    *("--set", "delivery.retry_first=0.02"),
    *("--set", "delivery.retry_max=0.1"),
    *("--set", "subscriptions.grace=0"),
)
BR = {"r": "http://docs.oasis-open.org/wsn/br-2", "a": "http://www.w3.org/2005/08/addressing"}
DESTROY = '<r:DestroyRegistration xmlns:r="http://docs.oasis-open.org/wsn/br-2"/>'
RL = "http://docs.oasis-open.org/wsrf/rl-2"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    """A node that retries and lets go at once."""
    with NodeProcess(tmp_path_factory.mktemp("demand") / "data", *QUICK) as node:
        yield node


@pytest.fixture
async def broker(running: NodeProcess) -> AsyncIterator[NodeProcess]:
    """The node, left without subscriptions and registrations."""
    yield running
    async with aiohttp.ClientSession(running.base) as session:
        for kind in ("subscriptions", "registrations"):
            async with session.get(f"/{kind}") as response:
                found = (await response.json())["items"]
            for each in found:
                async with session.delete(f"/{kind}/{each['id']}") as response:
                    assert response.status == 204


@pytest.fixture
async def publisher() -> AsyncIterator[Producer]:
    async with Producer() as running:
        yield running


def reference(reply: Reply) -> str:
    """The address of the registration in the answer."""
    assert reply.status == 200, reply.body
    found = reply.content.findtext("r:PublisherRegistrationReference/a:Address", namespaces=BR)
    assert found is not None
    return str(found)


async def renew(subscription: str, span: str) -> None:
    """Have a subscription end after this time from now."""
    body = f"<w:Renew><w:TerminationTime>{span}</w:TerminationTime></w:Renew>"
    assert (await call(subscription, body)).status == 200


async def registered(broker: NodeProcess, publisher: Producer, *topics: str, **more: Any) -> str:
    """The address of a new registration on demand."""
    return reference(await call(broker.url, register(publisher.url, *topics, demand=True, **more)))


async def subscribed(broker: NodeProcess, consumer: str, topic: str | None = None, **more: Any) -> str:
    """The address of a new subscription."""
    reply = await call(broker.url, subscribe(consumer, topic, **more))
    assert reply.status == 200, reply.body
    return reply.text("w:SubscriptionReference/a:Address")


async def upstream(broker: NodeProcess, registration: str) -> list[dict[str, Any]]:
    """What the node's operator sees of a registration's topics."""
    url = f"{broker.base}/registrations/{registration.rpartition('/')[2]}"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return list((await response.json())["upstream"])


async def test_the_first_interest_subscribes_and_the_last_one_gone_pauses_and_the_next_resumes(
    broker: NodeProcess, publisher: Producer
) -> None:
    await registered(broker, publisher, "A:B")
    async with Consumer() as consumer:
        first = await subscribed(broker, consumer.url, "A:B")
        await publisher.wait(lambda p: p.active() == ["A:B"])
        second = await subscribed(broker, f"{consumer.url}/2", "A:B")
        assert await publisher.publish("A:B", "<n>1</n>") == 1
        await consumer.wait(lambda c: len(c.requests) == 2)
        await call(first, "<w:Unsubscribe/>")
        await call(second, "<w:Unsubscribe/>")
        await publisher.wait(lambda p: p.operations == ["Subscribe", "PauseSubscription"])
        assert await publisher.publish("A:B", "<n>2</n>") == 0
        await subscribed(broker, consumer.url, "A:B")
        await publisher.wait(lambda p: p.operations[2:] == ["ResumeSubscription"])
        assert await publisher.publish("A:B", "<n>3</n>") == 1
        await consumer.wait(lambda c: len(c.requests) == 3)
        assert consumer.payloads() == ["1", "1", "3"]


@pytest.mark.parametrize(
    ("wanted", "concerned"),
    [
        ({"topic": "B"}, ["B"]),
        ({"topic": "C:deep:er"}, ["C"]),
        ({"topic": None}, ["A", "B", "C"]),
        ({"topic": "*", "dialect": FULL}, ["A", "B", "C"]),
        ({"topic": "A|C/*", "dialect": FULL}, ["A", "C"]),
        ({"topic": "B//.", "dialect": FULL}, ["B"]),
        ({"topic": "A", "filters": f'<w:MessageContent Dialect="{XPATH}">false()</w:MessageContent>'}, ["A"]),
    ],
)
async def test_only_the_topics_concerned_are_subscribed_to(
    broker: NodeProcess, publisher: Producer, wanted: dict[str, Any], concerned: list[str]
) -> None:
    registration = await registered(broker, publisher, "A", "B", "C")
    point = (await call(broker.url, "<w:CreatePullPoint/>")).text("w:PullPoint/a:Address")
    await subscribed(broker, point, "D")
    subscription = await subscribed(broker, point, **wanted)
    await publisher.wait(lambda p: p.active() == concerned)
    states = {each["topic"]: each["state"] for each in await upstream(broker, registration)}
    assert states == {topic: "subscribed" if topic in concerned else "none" for topic in "ABC"}
    await call(subscription, "<w:Unsubscribe/>")
    await publisher.wait(lambda p: p.active() == [])
    assert sorted(publisher.calls) == sorted(
        (operation, topic) for operation in ("Subscribe", "PauseSubscription") for topic in concerned
    )


@pytest.mark.parametrize(("topics", "dialect"), [(["A", "A"], ""), (["A|B/*", "B/*|A", "A|B/*"], FULL)])
async def test_a_topic_that_is_named_again_is_subscribed_to_once(
    broker: NodeProcess, publisher: Producer, topics: list[str], dialect: str
) -> None:
    await registered(broker, publisher, *topics, "last", dialect=dialect)
    point = (await call(broker.url, "<w:CreatePullPoint/>")).text("w:PullPoint/a:Address")
    await subscribed(broker, point)
    await publisher.wait(lambda p: "last" in p.active() and len(p.active()) > 1)
    assert publisher.active() == [topics[0], "last"]


async def test_a_publisher_without_topics_is_wanted_by_whoever_wants_anything(
    broker: NodeProcess, publisher: Producer
) -> None:
    await registered(broker, publisher)
    async with Consumer() as consumer:
        await subscribed(broker, consumer.url, "Any:Thing")
        await publisher.wait(lambda p: p.active() == [None])
        await publisher.publish("Any:Thing", "<n>1</n>")
        await consumer.wait(lambda c: c.payloads() == ["1"])


async def test_interest_that_was_there_before_the_publisher_counts(
    broker: NodeProcess, publisher: Producer
) -> None:
    await subscribed(broker, "http://127.0.0.1:1/nobody", "A")
    await registered(broker, publisher, "A")
    await publisher.wait(lambda p: p.active() == ["A"])


async def test_a_paused_subscription_is_no_interest_until_it_is_resumed(
    broker: NodeProcess, publisher: Producer
) -> None:
    await registered(broker, publisher, "A")
    subscription = await subscribed(broker, "http://127.0.0.1:1/nobody", "A")
    await publisher.wait(lambda p: p.active() == ["A"])
    await call(subscription, "<w:PauseSubscription/>")
    await publisher.wait(lambda p: p.operations == ["Subscribe", "PauseSubscription"])
    await call(subscription, "<w:ResumeSubscription/>")
    await publisher.wait(lambda p: p.operations[2:] == ["ResumeSubscription"])


async def test_the_end_of_a_lifetime_ends_the_interest_and_a_renew_within_the_grace_revives_it(
    tmp_path: Path, publisher: Producer
) -> None:
    with NodeProcess(tmp_path / "data", *QUICK, "--set", "subscriptions.grace=60") as broker:
        await registered(broker, publisher, "A")
        subscription = await subscribed(broker, "http://127.0.0.1:1/nobody", "A")
        await publisher.wait(lambda p: p.operations == ["Subscribe"])
        await renew(subscription, "PT0.1S")
        await publisher.wait(lambda p: p.operations == ["Subscribe", "PauseSubscription"])
        await renew(subscription, "PT1H")
        await publisher.wait(lambda p: p.operations[2:] == ["ResumeSubscription"])


async def test_a_stream_and_a_waiting_poll_are_interest_and_a_poll_that_does_not_wait_is_none(
    broker: NodeProcess, publisher: Producer
) -> None:
    await registered(broker, publisher, "Read")
    url = f"{broker.base}/topics/Read/events"
    async with aiohttp.ClientSession() as session:
        async with session.get(url) as polled:
            assert await polled.json() == []
        waiting = asyncio.create_task(session.get(url, params={"wait": "60"}))
        await publisher.wait(lambda p: p.active() == ["Read"])
        await publisher.publish("Read", "<n>1</n>")
        async with await waiting as polled:
            assert [event["topic"] for event in await polled.json()] == ["Read"]
        await publisher.wait(lambda p: p.active() == [])
        async with session.get(url, headers={"Accept": "text/event-stream"}):
            await publisher.wait(lambda p: p.active() == ["Read"])
    assert publisher.operations == ["Subscribe", "PauseSubscription", "ResumeSubscription"]


async def test_two_publishers_with_overlapping_topics_are_each_asked_for_their_own(
    broker: NodeProcess, publisher: Producer
) -> None:
    async with Producer() as other, Consumer() as consumer:
        await registered(broker, publisher, "A", "B")
        await registered(broker, other, "B", "C")
        subscription = await subscribed(broker, consumer.url, "B")
        for each in (publisher, other):
            await each.wait(lambda p: p.active() == ["B"])
            await each.publish("B", "<n>1</n>")
        await consumer.wait(lambda c: c.payloads() == ["1", "1"])
        await subscribed(broker, consumer.url, "C")
        await other.wait(lambda p: p.active() == ["B", "C"])
        await call(subscription, "<w:Unsubscribe/>")
        await publisher.wait(lambda p: p.active() == [])
        await other.wait(lambda p: p.active() == ["C"])


async def test_a_publisher_that_is_away_is_subscribed_to_when_it_is_back(broker: NodeProcess) -> None:
    async with Producer() as publisher:
        registration = await registered(broker, publisher, "A")
        await publisher.close()
        await subscribed(broker, "http://127.0.0.1:1/nobody", "A")

        async def has_failed() -> bool:
            return (await upstream(broker, registration))[0]["last_error"] is not None

        await eventually(has_failed)
        await publisher.open()
        await publisher.wait(lambda p: p.active() == ["A"])
    assert "(Connection refused); retrying" in broker.log()


async def test_a_publisher_that_answers_503_is_asked_again(broker: NodeProcess, publisher: Producer) -> None:
    await registered(broker, publisher, "A")
    publisher.answer = lambda operation: 503 if len(publisher.calls) < 3 else 200
    await subscribed(broker, "http://127.0.0.1:1/nobody", "A")
    await publisher.wait(lambda p: p.active() == ["A"])
    assert publisher.operations == ["Subscribe"] * 4


async def test_a_publisher_that_cannot_pause_is_unsubscribed_from(broker: NodeProcess) -> None:
    async with Producer(pausable=False) as publisher:
        await registered(broker, publisher, "A")
        subscription = await subscribed(broker, "http://127.0.0.1:1/nobody", "A")
        await publisher.wait(lambda p: p.active() == ["A"])
        await call(subscription, "<w:Unsubscribe/>")
        await publisher.wait(lambda p: p.operations == ["Subscribe", "PauseSubscription", "Unsubscribe"])
        await subscribed(broker, "http://127.0.0.1:1/nobody", "A")
        await publisher.wait(lambda p: p.active() == ["A"])


async def test_a_publisher_that_answers_with_nothing_but_a_status_is_understood(broker: NodeProcess) -> None:
    async with Producer(terse=True) as publisher:
        registration = await registered(broker, publisher, "A")
        for number in range(2):
            subscription = await subscribed(broker, "http://127.0.0.1:1/nobody", "A")
            await publisher.wait(lambda p: p.active() == ["A"])
            await call(subscription, "<w:Unsubscribe/>")
            await publisher.wait(lambda p, n=number: p.operations.count("PauseSubscription") > n)
        await call(registration, DESTROY)
        await publisher.wait(lambda p: not p.subscriptions)
        assert publisher.operations == [
            "Subscribe",
            "PauseSubscription",
            "ResumeSubscription",
            "PauseSubscription",
            "Unsubscribe",
        ]


async def test_a_publisher_that_has_forgotten_its_subscriber_is_subscribed_to_anew(
    broker: NodeProcess, publisher: Producer
) -> None:
    await registered(broker, publisher, "A")
    subscription = await subscribed(broker, "http://127.0.0.1:1/nobody", "A")
    await publisher.wait(lambda p: p.active() == ["A"])
    await call(subscription, "<w:PauseSubscription/>")
    await publisher.wait(lambda p: p.active() == [])
    publisher.subscriptions.clear()
    await call(subscription, "<w:ResumeSubscription/>")
    await publisher.wait(lambda p: p.operations[2:] == ["ResumeSubscription", "Subscribe"])
    assert publisher.active() == ["A"]


async def test_registering_again_finds_the_registration_and_subscribes_a_publisher_that_forgot(
    broker: NodeProcess, publisher: Producer
) -> None:
    registration = await registered(broker, publisher, "A", "B")
    await subscribed(broker, "http://127.0.0.1:1/nobody", "A")
    await publisher.wait(lambda p: p.active() == ["A"])
    publisher.subscriptions.clear()
    assert await registered(broker, publisher, "B", "A") == registration
    await publisher.wait(lambda p: p.active() == ["A"])
    assert publisher.operations == ["Subscribe", "Renew", "Subscribe"]


async def test_subscriptions_at_publishers_are_renewed_before_they_end(broker: NodeProcess) -> None:
    async with Producer(lifetime=4) as publisher:
        await registered(broker, publisher, "A")
        await subscribed(broker, "http://127.0.0.1:1/nobody", "A")
        await publisher.wait(lambda p: p.operations == ["Subscribe", "Renew", "Renew"])


@pytest.mark.parametrize("way", ["kill", "terminate"])
async def test_after_a_restart_the_same_subscriptions_at_publishers_go_on(
    tmp_path: Path, publisher: Producer, way: str
) -> None:
    with NodeProcess(tmp_path / "data", *QUICK) as broker:
        registration = await registered(broker, publisher, "A", "B", "C")
        async with Consumer() as consumer:
            await subscribed(broker, consumer.url, "A")
            pausing = await subscribed(broker, consumer.url, "B")
            await publisher.wait(lambda p: p.active() == ["A", "B"])
            await call(pausing, "<w:Unsubscribe/>")
            await publisher.wait(lambda p: p.active() == ["A"])
            await asyncio.to_thread(getattr(broker, way))
            publisher.calls.clear()
            await asyncio.to_thread(broker.start)
            await publisher.wait(lambda p: ("Renew", "A") in p.calls)
            assert (len(publisher.subscriptions), publisher.active()) == (2, ["A"])
            await publisher.publish("A", "<n>1</n>")
            await consumer.wait(lambda c: c.payloads() == ["1"])
            await subscribed(broker, consumer.url, "B")
            await publisher.wait(lambda p: p.active() == ["A", "B"])
            assert "Subscribe" not in publisher.operations
            assert (await call(registration, DESTROY)).status == 200
            await publisher.wait(lambda p: not p.subscriptions)


async def noted(broker: NodeProcess) -> None:
    """Wait until the node's journal has the subscription at the publisher: a later change is answered."""

    async def subscribed_to() -> bool:
        async with aiohttp.request("GET", f"{broker.base}/status") as answer:
            return bool((await answer.json())["registrations"]["topics_subscribed"])

    await eventually(subscribed_to)
    await subscribed(broker, "http://127.0.0.1:1/nobody", "elsewhere")


async def test_what_changed_while_the_node_was_away_is_caught_up_with(tmp_path: Path) -> None:
    """The interest ends by its own lifetime, and the publisher is there again only after the node."""
    async with Producer() as publisher:
        with NodeProcess(tmp_path / "data", *QUICK) as broker:
            await registered(broker, publisher, "A")
            subscription = await subscribed(broker, "http://127.0.0.1:1/nobody", "A")
            await publisher.wait(lambda p: p.active() == ["A"])
            await noted(broker)
            await renew(subscription, "PT1S")
            await asyncio.to_thread(broker.kill)
            await publisher.close()
            await asyncio.to_thread(broker.start)
            await publisher.open()
            await publisher.wait(lambda p: p.active() == [])


@pytest.mark.parametrize("how", ["DestroyRegistration", "Destroy", "expiry", "operator"])
async def test_the_end_of_a_registration_unsubscribes_from_its_publisher(
    broker: NodeProcess, publisher: Producer, how: str
) -> None:
    registration = await registered(broker, publisher, "A")
    await subscribed(broker, "http://127.0.0.1:1/nobody", "A")
    await publisher.wait(lambda p: len(p.calls) == 1)
    if how == "operator":
        url = f"{broker.base}/registrations/{registration.rpartition('/')[2]}"
        async with aiohttp.ClientSession() as session, session.delete(url) as response:
            assert response.status == 204
    elif how == "expiry":
        soon = "<l:RequestedLifetimeDuration>PT0.1S</l:RequestedLifetimeDuration>"
        body = f'<l:SetTerminationTime xmlns:l="{RL}">{soon}</l:SetTerminationTime>'
        assert (await call(registration, body)).status == 200
    else:
        body = DESTROY if how != "Destroy" else f'<l:Destroy xmlns:l="{RL}"/>'
        assert (await call(registration, body)).status == 200
    await publisher.wait(lambda p: p.operations[-1] == "Unsubscribe")
    late = await call(registration, notify("A", "<n/>"))
    assert late.fault == "ResourceUnknownFault"


@pytest.mark.parametrize("version", ["1.1", "1.2"])
async def test_publishers_are_spoken_to_in_the_version_in_which_they_registered(
    broker: NodeProcess, publisher: Producer, oasis: Any, version: str
) -> None:
    await call(broker.url, register(publisher.url, "A", demand=True), version)
    subscription = await subscribed(broker, "http://127.0.0.1:1/nobody", "A")
    await publisher.wait(lambda p: p.active() == ["A"])
    await call(subscription, "<w:Unsubscribe/>")
    await publisher.wait(lambda p: p.active() == [])
    assert set(publisher.actions) == {'""' if version == "1.1" else None}
    for data in publisher.envelopes:
        root = etree.fromstring(data)
        assert etree.QName(root).namespace == ENV[version]
        oasis.validate(root.find("{*}Body")[0])


async def test_publishers_that_dispatch_on_soapaction_get_the_action(
    tmp_path: Path, publisher: Producer
) -> None:
    with NodeProcess(tmp_path / "data", *QUICK, "--set", "delivery.soap_action=action") as node:
        await registered(node, publisher, "A")
        await subscribed(node, "http://127.0.0.1:1/nobody", "A")
        await publisher.wait(lambda p: p.active() == ["A"])
    assert publisher.actions == [f'"{request_action("Subscribe")}"']


async def test_a_node_is_a_publisher_on_demand_of_another_node(tmp_path: Path, broker: NodeProcess) -> None:
    """Two whole nodes: the far one is subscribed to while the near one has subscribers."""
    with NodeProcess(tmp_path / "far", *QUICK) as far:
        await call(broker.url, register(far.url, "A", "B", demand=True))
        async with Consumer() as consumer:
            subscription = await subscribed(broker, consumer.url, "A")

            async def listed() -> list[dict[str, Any]]:
                async with (
                    aiohttp.ClientSession() as session,
                    session.get(f"{far.base}/subscriptions") as response,
                ):
                    return list((await response.json())["items"])

            async def is_there() -> bool:
                return [each["topics"] for each in await listed()] == [["A"]]

            await eventually(is_there)
            for number in range(3):
                await call(far.url, notify("A:below", f"<n>{number}</n>"))
                await call(far.url, notify("B", "<n>unwanted</n>"))
            await consumer.wait(lambda c: len(c.payloads()) == 3)
            assert consumer.payloads() == ["0", "1", "2"]
            await call(subscription, "<w:Unsubscribe/>")

            async def is_paused() -> bool:
                return [each["state"] for each in await listed()] == ["paused"]

            await eventually(is_paused)


async def test_many_subscribers_and_many_publishers_end_as_they_should(broker: NodeProcess) -> None:
    """Each publisher has a topic of its own, and subscribers come and go together."""
    async with Producer() as publisher:
        names = [f"R:t{number}" for number in range(60)]
        for name in names:
            await registered(broker, publisher, name)
        made = await asyncio.gather(*(subscribed(broker, "http://127.0.0.1:1/n", name) for name in names))
        await publisher.wait(lambda p: p.active() == sorted(names))
        await asyncio.gather(*(call(each, "<w:Unsubscribe/>") for each in made[10:]))
        await publisher.wait(lambda p: p.active() == sorted(names[:10]))


async def test_the_last_of_many_subscriptions_from_before_counts_too(
    broker: NodeProcess, publisher: Producer
) -> None:
    """More than are looked at in one go when the first publisher on demand registers."""
    point = (await call(broker.url, "<w:CreatePullPoint/>")).text("w:PullPoint/a:Address")
    for start in range(0, 250, 50):
        names = [f"R:t{number}" for number in range(start, start + 50)]
        await asyncio.gather(*(subscribed(broker, point, name) for name in names))
    wanted = await subscribed(broker, point, "Last")
    await registered(broker, publisher, "Last")
    await publisher.wait(lambda p: p.active() == ["Last"])
    await call(wanted, "<w:Unsubscribe/>")
    await publisher.wait(lambda p: p.active() == [])
