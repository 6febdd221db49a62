"""Ways in which an accepted notification could have been lost, as reviewers found them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hpwsn.broker.housekeeping import Housekeeping, RetentionPolicy
from hpwsn.node import Node
from hpwsn.settings import Config
from hpwsn_client import Client
from tests import raw_soap
from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.patience import eventually
from tests.raw_soap import Reply, call, notify, subscribe

ADDRESS = "w:SubscriptionReference/a:Address"


def _payloads(reply: Reply) -> list[str]:
    return ["".join(m[0].itertext()) for m in reply.content.iterfind(".//w:Message", raw_soap.NAMES)]


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Callable[..., Node]]:
    """Makes nodes in this process, one after the other on the same data."""
    made: list[Node] = []

    def build(**sections: object) -> Node:
        default = Config()
        config = replace(
            default,
            server=replace(default.server, port=0, drain_timeout=0.2),
            data=replace(default.data, dir=str(tmp_path / "data")),
            **sections,
        )
        made.append(Node(config))
        return made[-1]

    yield build
    for node in made:
        await node.close()


async def test_new_topics_below_a_subscription_that_catches_up_are_not_passed_over(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path / "data").start()
    async with Consumer(lambda number: 503) as consumer:
        for number in range(5):
            await call(node.url, subscribe(f"{consumer.url}/{number}", "root"))
        await call(node.url, notify("root:old", *["<n>old</n>"] * 1500))
        node.kill()
        consumer.answer = lambda number: 202
        with node:
            published = [f"new{number}" for number in range(60)]
            for name in published:
                await call(node.url, notify(f"root:{name}", f"<n>{name}</n>"))
            await consumer.wait(lambda c: len([p for p in c.payloads() if p.startswith("new")]) >= 5 * 60)
            new = [payload for payload in consumer.payloads() if payload.startswith("new")]
            assert sorted(set(new)) == sorted(published)


async def test_a_limit_does_not_drop_what_a_content_filter_never_wanted(tmp_path: Path) -> None:
    policy = '<hp:Delivery xmlns:hp="urn:hpwsn:1" maxQueue="10" overflow="drop-oldest"/>'
    xpath = f'<w:MessageContent Dialect="{raw_soap.XPATH}">/wanted</w:MessageContent>'
    more = f"<w:SubscriptionPolicy>{policy}</w:SubscriptionPolicy>"
    node = NodeProcess(tmp_path / "data", "--set", "delivery.window=4").start()
    async with Consumer() as consumer:
        reply = await call(node.url, subscribe(consumer.url, "A", filters=xpath, more=more))
        await call(reply.text(ADDRESS), "<w:PauseSubscription/>")
        for number in range(8):
            await call(node.url, notify("A", f"<wanted>{number}</wanted>", *["<other/>"] * 50))
        node.kill()
        with node:
            await call(reply.text(ADDRESS), "<w:ResumeSubscription/>")
            await consumer.wait(lambda c: len(c.messages()) >= 8)
            assert consumer.payloads() == [str(number) for number in range(8)]


async def test_what_comes_in_the_grace_is_kept_for_a_renew(make: Callable[..., Node]) -> None:
    node = make(journal=replace(Config().journal, retention_age=0.0))
    await node.start()
    async with Client(node.port.listening_url) as client, Consumer() as consumer:
        subscription = await client.subscribe("A", consumer.url, expires=0.2)

        async def expired() -> bool:
            return [s.state.value for s in node.parts.broker.subscriptions] == ["expired"]

        await eventually(expired)
        for number in range(3):
            await client.notify("A", f"<n>{number}</n>")
        await Housekeeping(node.parts.broker, RetentionPolicy.of(node.config)).tidy()
        await subscription.renew(3600)
        await consumer.wait(lambda c: len(c.messages()) >= 3)
        assert consumer.payloads() == ["0", "1", "2"]


async def test_a_clock_set_back_takes_nothing_to_the_grave_uncounted(make: Callable[..., Node]) -> None:
    node = make(delivery=replace(Config().delivery, retry_first=0.01, retry_max=0.02, retry_for=0.3))
    clock = [1_000_000.0]
    node.parts.broker.admission._clock = node.parts.delivery._clock = lambda: clock[0]  # type: ignore[method-assign]
    await node.start()
    async with Client(node.port.listening_url) as client:
        await client.subscribe("A", "http://127.0.0.1:9/nobody")
        await client.notify("A", "<n>1</n>")
        clock[0] -= 3600
        await client.notify("A", "<n>2</n>")
        clock[0] += 7200

        async def both() -> bool:
            return [letter.stored.offset for letter in await node.parts.journal.dead_letters(10)] == [1, 2]

        await eventually(both)


async def test_a_plain_call_confirms_neither_what_is_being_written_nor_what_was_named(
    node: NodeProcess,
) -> None:
    point = (await call(node.url, "<w:CreatePullPoint/>")).text("w:PullPoint/a:Address")
    await call(node.url, subscribe(point, "A"))
    await call(node.url, notify("A", "<n>1</n>", "<n>2</n>"))
    named = '<w:GetMessages><hp:Confirm xmlns:hp="urn:hpwsn:1"/></w:GetMessages>'
    first = await call(point, named)
    await call(node.url, notify("A", "<n>3</n>"))
    plain = await call(point, "<w:GetMessages/>")
    await call(point, "<w:GetMessages/>")
    again = await call(point, named)
    texts = [
        ["".join(m[0].itertext()) for m in r.content.iter(f"{{{raw_soap.WSNT}}}Message")]
        for r in (first, plain, again)
    ]
    assert texts == [["1", "2"], ["3"], ["1", "2"]]


async def test_a_name_still_confirms_after_a_restart(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path / "data").start()
    point = (await call(node.url, "<w:CreatePullPoint/>")).text("w:PullPoint/a:Address")
    await call(node.url, subscribe(point, "A"))
    await call(node.url, notify("A", "<n>1</n>"))
    request = '<w:GetMessages><hp:Confirm xmlns:hp="urn:hpwsn:1">{}</hp:Confirm></w:GetMessages>'
    name = (await call(point, request.format(""))).content.findtext("{urn:hpwsn:1}Batch")
    node.kill()
    with node:
        assert len((await call(point, request.format(name))).content) == 0
        assert len((await call(point, request.format("b-99"))).content) == 0


async def test_pause_and_unsubscribe_together_leave_no_subscription_behind(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path / "data").start()
    reference = (await call(node.url, subscribe("http://127.0.0.1:9/", "A"))).text(ADDRESS)
    await asyncio.gather(
        *(call(reference, body) for body in ("<w:PauseSubscription/>", "<w:Unsubscribe/>") * 4)
    )
    node.kill()
    with node:
        assert (await call(reference, "<w:Unsubscribe/>")).fault == "ResourceUnknownFault"
