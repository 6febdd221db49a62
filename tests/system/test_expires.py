"""Notifications that their subscriber has no use for after a while: not sent, not handed out, and counted."""

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hpwsn.broker.housekeeping import Housekeeping, RetentionPolicy
from hpwsn.node import Node
from hpwsn.settings import Config
from tests import raw_soap
from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.patience import eventually
from tests.raw_soap import Reply, call, notify, send, subscribe

ADDRESS = "w:SubscriptionReference/a:Address"
HOUR = 3600.0


def policy(attributes: str) -> str:
    delivery = f'<hp:Delivery xmlns:hp="urn:hpwsn:1" {attributes}/>'
    return f"<w:SubscriptionPolicy>{delivery}</w:SubscriptionPolicy>"


def payloads(reply: Reply) -> list[str]:
    return ["".join(m[0].itertext()) for m in reply.content.iterfind(".//w:Message", raw_soap.NAMES)]


class Clocked:
    """A node in this process whose clock the test sets."""

    def __init__(self, data: Path) -> None:
        self.now = 1_700_000_000.0
        default = Config()
        self.config = replace(
            default,
            server=replace(default.server, port=0, drain_timeout=0.2),
            data=replace(default.data, dir=str(data)),
            delivery=replace(default.delivery, window=8, retry_first=0.02, retry_max=0.05),
            journal=replace(default.journal, retention_age=10 * HOUR),
        )

    async def start(self) -> None:
        self.node = Node(self.config)
        parts = (
            self.node.parts.broker.admission,
            self.node.parts.delivery,
            self.node.parts.broker.subscriptions,
        )
        for part in parts:
            part._clock = lambda: self.now  # type: ignore[method-assign]
        self.node.parts.broker = replace(self.node.parts.broker, clock=lambda: self.now)
        await self.node.start()
        self.url = self.node.port.listening_url

    async def subscribed(self, consumer: str, attributes: str) -> str:
        reply = await call(self.url, subscribe(consumer, "A", more=policy(attributes)))
        assert reply.status == 200, reply.body
        return reply.text(ADDRESS)

    async def publish(self, *numbers: int) -> None:
        assert (await call(self.url, notify("A", *(f"<n>{n}</n>" for n in numbers)))).status == 202

    @property
    def expired(self) -> int:
        return self.node.parts.delivery.totals.expired


@pytest.fixture
async def clocked(tmp_path: Path) -> AsyncIterator[Clocked]:
    made = Clocked(tmp_path / "data")
    await made.start()
    yield made
    await made.node.close()


def has(count: int) -> Callable[[Consumer], bool]:
    return lambda consumer: len(consumer.messages()) >= count


@pytest.mark.parametrize("more", ["", 'batch="1"', 'discipline="fifo" maxQueue="100"'])
async def test_what_waited_longer_is_not_sent_and_the_rest_is_in_order(clocked: Clocked, more: str) -> None:
    async with Consumer() as consumer:
        reference = await clocked.subscribed(consumer.url, f'expires="PT1H" {more}')
        await call(reference, "<w:PauseSubscription/>")
        await clocked.publish(*range(20))
        clocked.now += 1
        await clocked.publish(*range(20, 40))
        clocked.now += HOUR
        await clocked.publish(40)
        await call(reference, "<w:ResumeSubscription/>")
        await consumer.wait(has(21))
        assert consumer.payloads() == [str(n) for n in range(20, 41)]
        assert clocked.expired == 20
        assert await clocked.node.parts.journal.dead_letters(10) == []


async def test_a_consumer_that_comes_back_gets_only_what_is_still_of_use(clocked: Clocked) -> None:
    async with Consumer(lambda number: 503) as consumer:
        await clocked.subscribed(consumer.url, 'expires="PT1M"')
        await clocked.publish(1)
        await consumer.wait(lambda c: len(c.requests) > 1)
        clocked.now += 61
        await clocked.publish(2)

        async def left() -> bool:
            return clocked.expired == 1

        await eventually(left)
        consumer.requests.clear()
        consumer.answer = lambda number: 202
        await consumer.wait(lambda c: "2" in c.payloads())
        assert set(consumer.payloads()) == {"2"}


async def test_a_month_is_one_of_the_calendar(clocked: Clocked) -> None:
    async with Consumer() as consumer:
        reference = await clocked.subscribed(consumer.url, 'expires="P1M"')
        await call(reference, "<w:PauseSubscription/>")
        await clocked.publish(1)
        clocked.now += 30 * 24 * HOUR - 60  # from a 14th of November
        await clocked.publish(2)
        clocked.now += 61
        await call(reference, "<w:ResumeSubscription/>")
        await consumer.wait(has(1))
        assert consumer.payloads() == ["2"]


async def test_a_paused_queue_that_rejects_has_room_again_once_what_waits_has_expired(
    clocked: Clocked,
) -> None:
    reference = await clocked.subscribed(
        "http://127.0.0.1:9/", 'expires="PT1H" maxQueue="30" overflow="reject"'
    )
    await call(reference, "<w:PauseSubscription/>")
    await clocked.publish(*range(30))
    assert (await call(clocked.url, notify("A", "<n/>"))).status == 503
    clocked.now += HOUR + 1
    await Housekeeping(clocked.node.parts.broker, RetentionPolicy.of(clocked.config)).tidy()

    async def room() -> bool:
        return (await call(clocked.url, notify("A", "<n/>"))).status == 202

    await eventually(room)

    async def all_expired() -> bool:
        return clocked.expired == 30

    # Room comes with the first of them; the others go beside it.
    await eventually(all_expired)


async def test_what_waits_in_a_pull_point_is_not_handed_out_once_it_expired(clocked: Clocked) -> None:
    point = (await call(clocked.url, "<w:CreatePullPoint/>")).text("w:PullPoint/a:Address")
    await clocked.subscribed(point, 'expires="PT1H"')
    await call(point, notify(None, "<n>own</n>"))
    await clocked.publish(1, 2, 3)
    clocked.now += HOUR
    assert payloads(await call(point, _named())) == ["own", "1", "2", "3"]
    clocked.now += 1
    await clocked.publish(4)
    assert payloads(await call(point, _named())) == ["own", "4"]
    clocked.now += 2 * HOUR
    assert payloads(await call(point, _named())) == ["own"]

    async def all_gone() -> bool:
        id_ = point.rsplit("/", 1)[1]
        return (
            await clocked.node.parts.journal.queue_length(id_) == 1
            and clocked.node.parts.broker.pull_points.expired == 4
        )

    await eventually(all_gone)


def _named() -> str:
    return '<w:GetMessages><hp:Confirm xmlns:hp="urn:hpwsn:1"/></w:GetMessages>'


async def test_a_pull_point_full_of_what_has_expired_gives_the_first_that_has_not(clocked: Clocked) -> None:
    point = (await call(clocked.url, "<w:CreatePullPoint/>")).text("w:PullPoint/a:Address")
    await clocked.subscribed(point, 'expires="PT1H"')
    await clocked.publish(*range(25))
    clocked.now += HOUR + 1
    await clocked.publish(25, 26)
    two = "<w:GetMessages><w:MaximumNumber>2</w:MaximumNumber></w:GetMessages>"
    assert payloads(await call(point, two)) == ["25", "26"]
    assert payloads(await call(point, two)) == []


async def test_time_goes_on_while_the_node_is_away(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path / "data").start()
    async with Consumer() as consumer:
        replies = [
            await call(node.url, subscribe(f"{consumer.url}/{n}", "A", more=policy(f'expires="{after}"')))
            for n, after in enumerate(("PT0.001S", "PT1H"))
        ]
        references = [reply.text(ADDRESS) for reply in replies]
        for reference in references:
            await call(reference, "<w:PauseSubscription/>")
        await call(node.url, notify("A", *(f"<n>{n}</n>" for n in range(5))))
        node.kill()
        with node:
            for reference in references:
                assert (await call(reference, "<w:ResumeSubscription/>")).status == 200
            await consumer.wait(has(5))

            async def counted() -> bool:
                status = json.loads((await send(f"{node.base}/status", b"", method="GET")).body)
                return status["delivery"]["expired"] == 5

            await eventually(counted)
            assert consumer.payloads() == [str(n) for n in range(5)]
            described = await send(
                f"{node.base}/subscriptions/{references[0].rsplit('/')[-1]}", b"", method="GET"
            )
            shown = json.loads(described.body)
            assert (shown["expired_unsent"], shown["delivered"], shown["waiting"]) == (5, 0, 0)


@pytest.mark.parametrize(
    ("attributes", "named"),
    [
        ('alpha="3"', "cet"),
        ('discipline="fifo" beta="PT1M"', "cet"),
        ('discipline="cet" alpha="0"', "alpha"),
        ('discipline="cet" beta="2 s"', "beta"),
        ('discipline="lifo"', "lifo"),
        ('expires="soon"', "soon"),
        ('expires="PT0S"', "PT0S"),
        ('expires="-PT1H"', "-PT1H"),
        ('expires="2999-01-01T00:00:00Z"', "2999"),
    ],
)
async def test_what_cannot_be_granted_is_refused_by_name(
    shared_node: NodeProcess, attributes: str, named: str
) -> None:
    reply = await call(shared_node.url, subscribe("http://127.0.0.1:9/", "A", more=policy(attributes)))
    assert reply.fault == "UnsupportedPolicyRequestFault"
    assert named in (reply.detail.findtext("b:Description", namespaces=raw_soap.NAMES) or "")
    assert reply.detail.findtext("w:UnsupportedPolicy", namespaces=raw_soap.NAMES) == "hp:Delivery"
