"""Predicates in Subscribe, in the client and on the command line: each subscriber gets what they select."""

import asyncio
import json
from pathlib import Path

import pytest
from lxml import etree

from hpwsn.matching.content.attributes import event_of
from hpwsn.matching.language.predicate_parser import parse_predicates
from hpwsn.matching.language.predicates import disjunction_holds
from hpwsn_client import Client, PullPoint
from hpwsn_client.wsn.operations.filters import ContentFilter
from hpwsn_client.wsn.soap.faults import InvalidMessageContentExpressionFault
from hpwsn_client.wsn.soap.names import DIALECT_PREDICATES
from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.patience import eventually
from tests.raw_soap import call, notify, send, subscribe
from tests.system.test_client_cli import listening, run
from tests.system.test_subscriptions import ADDRESS

PREDICATES = [
    "speed > 60",
    "speed <= 60",
    'speed > 60 and (vid = "京B34C91" or within(longitude, latitude, 115.25, 39.26, 117.30, 41.03))',
    'has(keywords, "fire", "smoke")',
    "not exists(speed)",
    "speed != 60",
    "not speed = 60",
    "vid like '京B%' and open = true",
    "time >= 2026-01-01 and time < 2026-02-01",
    "115.25 < longitude < 117.30",
    "lane in (1, 2, 'left') or speed between 10 and 20",
    *(f"speed > {limit} and lane = {limit % 3}" for limit in range(45)),
]
PAYLOADS = [
    "<car><speed>61</speed><vid>京B34C91</vid><open>true</open></car>",
    '<car speed="60"><longitude>116</longitude><latitude>40</latitude></car>',
    '<car speed="99"><longitude>116</longitude><latitude>40</latitude></car>',
    '<car speed="99"><longitude>115.25</longitude><latitude>42</latitude></car>',
    "<event><keywords>smoke, fire</keywords><time>2026-01-15T12:00:00Z</time></event>",
    "<event><keywords>fire</keywords><keywords>smoke</keywords><time>2026-02-01</time></event>",
    "<car><speed>fast</speed><lane>left</lane></car>",
    *(f"<car><speed>{n * 2}</speed><lane>{n % 3}</lane></car>" for n in range(20)),
    "<car><speed>5</speed><speed>30</speed><lane>1</lane></car>",
]


def selected(predicate: str, payloads: list[str] = PAYLOADS) -> list[str]:
    request = parse_predicates(predicate)
    return [text for text in payloads if disjunction_holds(request, event_of(etree.fromstring(text)))]


async def received(point: PullPoint) -> list[bytes]:
    return [canonical(notification.payload) for notification in await point.get_messages(1000)]


def canonical(payload: str | bytes) -> bytes:
    return etree.tostring(etree.fromstring(payload), method="c14n")


async def test_each_gets_what_the_definition_says_before_and_after_a_crash(tmp_path: Path) -> None:
    assert {len(selected(each)) for each in PREDICATES} >= {0, 1, 2}
    half = len(PAYLOADS) // 2
    with NodeProcess(tmp_path / "data") as node:
        async with Client(node.url) as client:
            points = [await client.create_pull_point() for _ in PREDICATES]
            for point, predicate in zip(points, PREDICATES, strict=True):
                await client.subscribe("cars", point, predicate=predicate)
            await client.notify_many(("cars", payload) for payload in PAYLOADS[:half])
        node.kill()
        node.start()
        async with Client(node.url) as client:
            await client.notify_many(("cars:fast", payload) for payload in PAYLOADS[half:])
            for point, predicate in zip(points, PREDICATES, strict=True):
                await _gets(PullPoint(client, point.epr), list(map(canonical, selected(predicate))))


async def test_engines_chosen_by_name_and_topic_deliver_the_same(tmp_path: Path) -> None:
    chosen = ("matching.engine=matching_tree", "matching.topics=cars:fast=cma,boats=naive")
    arguments = [part for each in chosen for part in ("--set", each)]
    with NodeProcess(tmp_path / "data", *arguments) as node:
        async with Client(node.url) as client:
            wanted: list[tuple[PullPoint, str]] = []
            for topic in ("cars", "cars:fast"):
                for predicate in PREDICATES:
                    point = await client.create_pull_point()
                    await client.subscribe(topic, point, predicate=predicate)
                    wanted.append((point, predicate))
            await client.notify_many(("cars:fast", payload) for payload in PAYLOADS)
            for point, predicate in wanted:
                await _gets(point, list(map(canonical, selected(predicate))))
        status = json.loads((await send(f"{node.base}/status", b"", method="GET")).body)
        assert status["matching"] == {
            "engine": "matching_tree",
            "topics": {"cars:fast": "cma", "boats": "naive"},
            "state": "running",
            "mode": "local",
            "subscriptions": 2 * len(PREDICATES),
            "lag": 0,
        }


async def _gets(point: PullPoint, wanted: list[bytes]) -> None:
    got: list[bytes] = []

    async def complete() -> bool:
        got.extend(await received(point))
        return len(got) >= len(wanted)

    await eventually(complete)
    assert got == wanted


async def test_two_thousand_on_one_topic_get_their_own(node: NodeProcess) -> None:
    async with Client(node.url) as client:
        points = [await client.create_pull_point() for _ in range(4)]
        gate = asyncio.Semaphore(16)

        async def ask(number: int) -> tuple[str, int]:
            async with gate:
                low = number % 1000
                wanted = f"speed between {low} and {low + 3} and lane = {number // 1000}"
                made = await client.subscribe("cars", points[number % 4], predicate=wanted)
                return made.epr.address, number

        numbers = dict(await asyncio.gather(*map(ask, range(2000))))
        await client.notify("cars", "<car><speed>500</speed><lane>1</lane></car>")
        found: list[int] = []

        async def complete() -> bool:
            for point in points:
                for message in await point.get_messages(1000):
                    assert message.subscription is not None
                    found.append(numbers[message.subscription.address])
            return len(found) >= 4

        await eventually(complete)
    assert sorted(found) == [1497, 1498, 1499, 1500]


async def test_one_that_is_paused_renewed_or_ended_is_like_any_other(node: NodeProcess) -> None:
    async with Client(node.url) as client:
        points = [await client.create_pull_point() for _ in range(3)]
        fast, slow, gone = [
            await client.subscribe("cars", point, predicate=predicate)
            for point, predicate in zip(points, ["speed > 60", "speed <= 60", "speed > 0"], strict=True)
        ]
        await client.pause(fast)
        await client.unsubscribe(gone)
        await client.notify("cars", "<car><speed>70</speed></car>")
        await client.notify("cars", "<car><speed>50</speed></car>")
        await client.resume(fast)

        async def complete() -> bool:
            return (await received(points[0])) == [b"<car><speed>70</speed></car>"]

        await eventually(complete)
        assert await received(points[1]) == [b"<car><speed>50</speed></car>"]
        assert await received(points[2]) == []
        await client.renew(slow, 60)


@pytest.mark.parametrize(("version", "status"), [("1.1", 500), ("1.2", 400)])
@pytest.mark.parametrize(
    ("expressions", "words"),
    [
        (["speed &gt;&gt; 60"], "column 8"),
        (["speed"], "column 6"),
        ([""], "column 1"),
        (["speed &gt; 60 and speed &lt; 50"], "is not a valid predicate filter: it can never match"),
        (["speed &gt; 60", "speed &lt; 50"], "together"),
    ],
)
async def test_a_predicate_that_cannot_be_used_is_the_fault_for_content(
    shared_node: NodeProcess, version: str, status: int, expressions: list[str], words: str
) -> None:
    filters = "".join(
        f'<w:MessageContent Dialect="{DIALECT_PREDICATES}">{each}</w:MessageContent>' for each in expressions
    )
    reply = await call(shared_node.url, subscribe("http://127.0.0.1:9/", "A", filters=filters), version)
    assert (reply.status, reply.fault) == (status, "InvalidMessageContentExpressionFault")
    assert words in reply.body.decode()


async def test_predicates_and_xpath_of_one_subscriber_must_hold_together(node: NodeProcess) -> None:
    filters = (
        f'<w:MessageContent Dialect="{DIALECT_PREDICATES}">speed &gt; 60</w:MessageContent>'
        "<w:MessageContent>@lane = 'left'</w:MessageContent>"
        f'<w:MessageContent Dialect="{DIALECT_PREDICATES}">speed &lt; 90</w:MessageContent>'
    )
    async with Consumer() as consumer:
        assert (await call(node.url, subscribe(consumer.url, "A", filters=filters))).text(ADDRESS)
        cars = [("left", 50), ("left", 95), ("right", 70), ("left", 71)]
        payloads = [f"<car lane='{lane}'><speed>{speed}</speed></car>" for lane, speed in cars]
        await call(node.url, notify("A", *payloads))
        await consumer.wait(lambda c: bool(c.requests))
        assert b"71" in consumer.requests[0]
        assert b"<speed>70" not in consumer.requests[0]


async def test_a_full_queue_refuses_only_what_its_predicate_selects(node: NodeProcess) -> None:
    from hpwsn_client.wsn.operations.policy import DeliveryPolicy
    from hpwsn_client.wsn.soap.faults import SoapFault

    async with Client(node.url) as client:
        policy = DeliveryPolicy(max_queue=1, overflow="reject")
        await client.subscribe("cars", "http://127.0.0.1:9/", predicate="speed > 60", policy=policy)

        async def full() -> bool:
            try:
                await client.notify("cars", "<car><speed>70</speed></car>")
            except SoapFault:
                return True
            return False

        await eventually(full)
        await client.notify("cars", "<car><speed>50</speed></car>")


async def test_the_command_line_filters_by_predicates_and_marks_the_column(node: NodeProcess) -> None:
    process = await listening(
        "cars", "--filter", "speed > 60 and has(tags, 'a')", "--count", "1", url=node.url
    )
    async with Client(node.url) as client:
        for speed in (50, 70):
            await client.notify("cars", f"<car><speed>{speed}</speed><tags>a b</tags></car>")
    out, _ = await process.communicate()
    assert out == b"cars\t<car><speed>70</speed><tags>a b</tags></car>\n"
    code, _, err = await run("listen", "cars", "--filter", "speed >> 60", url=node.url)
    assert code == 1
    assert err.splitlines()[:2] == ["  speed >> 60", "         ^"]
    assert "column 8" in err
    code, _, err = await run("listen", "cars", "--dialect", "xpath", url=node.url)
    assert (code, "--filter" in err) == (2, True)


async def test_the_client_gets_the_fault(shared_node: NodeProcess) -> None:
    async with Client(shared_node.url) as client:
        point = await client.create_pull_point()
        with pytest.raises(InvalidMessageContentExpressionFault, match="column 9"):
            await client.subscribe("cars", point, predicate="speed > fast")
        given = ContentFilter(DIALECT_PREDICATES, "speed > 'fast'")
        assert await client.subscribe("cars", point, content=given)
