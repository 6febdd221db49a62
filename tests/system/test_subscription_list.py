"""The list of subscriptions, and what an operator does to one of any kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aiohttp
import pytest

from hpwsn_client import Client
from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.patience import eventually
from tests.raw_soap import call, subscribe
from tests.system.test_original_door import subscribed
from tests.webhooks import ask, create, listed, publish, show

NOWHERE = "http://127.0.0.1:9/"
FIELDS = {
    "id", "kind", "node", "reference", "consumer", "topics", "content", "conditions", "holding", "created",
    "terminates", "paused", "state", "reason", "waiting", "oldest", "rate", "next_attempt", "delivered",
    "dropped", "expired_unsent", "failures", "dead_letters", "last_error",
}  # fmt: skip
TEV = "http://www.onvif.org/ver10/events/wsdl"


def ids(page: dict[str, Any]) -> list[str]:
    return [item["id"] for item in page["items"]]


def id_of(url: str) -> str:
    return url.rsplit("/", 1)[1]


async def state_of(url: str) -> str:
    return str((await show(url))["state"])


async def test_the_list_has_its_shape_and_each_item_all_fields(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", "--name", "dock-1") as node:
        empty = {"live": 0, "paused": 0, "retrying": 0, "expired": 0}
        assert await listed(node) == {"items": [], "next": None, "total": 0, "counts": empty}
        url = await create(node, NOWHERE, topic="a", filter="n > 1", expires="2100-01-01T00:00:00Z")
        page = await listed(node)
        (item,) = page["items"]
        assert (page["next"], page["total"], page["counts"]) == (None, 1, {**empty, "live": 1})
        assert set(item) == FIELDS
        assert item == await show(url)
        expected = {
            "kind": "webhook", "node": "dock-1", "consumer": NOWHERE, "topics": ["a"], "content": ["n > 1"],
            "terminates": "2100-01-01T00:00:00+00:00", "state": "live", "reason": None, "waiting": 0,
            "oldest": None, "rate": 0.0, "next_attempt": None, "dead_letters": 0,
        }  # fmt: skip
        assert {name: item[name] for name in expected} == expected


async def test_every_kind_of_subscription_has_its_name(node: NodeProcess) -> None:
    raw = "<w:SubscriptionPolicy><w:UseRaw/></w:SubscriptionPolicy>"
    await call(node.url, subscribe(f"{NOWHERE}soap", "A"))
    await call(node.url, subscribe(f"{NOWHERE}raw", "A", more=raw))
    await create(node, f"{NOWHERE}webhook", topic="A")
    await subscribed(node, f"{NOWHERE}original", "A")
    create_pull = f'<t:CreatePullPointSubscription xmlns:t="{TEV}"/>'
    assert (await call(f"{node.base}/onvif/events", create_pull, "1.2")).status == 200
    async with Client(node.url) as client:
        await client.subscribe("A", await client.create_pull_point())
        found = {item["kind"]: item["consumer"] for item in (await listed(node))["items"]}
    assert set(found) == {"soap", "raw", "webhook", "original", "onvif", "pull"}
    for kind in ("soap", "raw", "webhook", "original"):
        assert found[kind] == NOWHERE + kind
    assert len((await listed(node, "?sort=kind"))["items"]) == 6


async def test_search_state_and_topic_select_subscriptions(node: NodeProcess) -> None:
    ring = await create(node, f"{NOWHERE}Alpha", topic="road:ring", filter="speed > 60")
    road = await create(node, f"{NOWHERE}beta", topic="road")
    rail = await create(node, f"{NOWHERE}gamma", topic="rail")
    every = await create(node, f"{NOWHERE}delta")
    await ask("PATCH", road, {"paused": True})
    cases = {
        "?q=ALPHA": {ring}, "?q=SPEED": {ring}, "?q=ring": {ring}, "?q=nothing": set(),
        "?q=": {ring, road, rail, every},
        f"?q={id_of(rail)}": {rail}, "?state=paused": {road}, "?state=live": {ring, rail, every},
        "?state=expired": set(), "?topic=road": {road, every}, "?topic=road:ring": {ring, road, every},
        "?topic=road:ring&state=paused": {road}, "?topic=rail&q=gamma": {rail},
    }  # fmt: skip
    for query, wanted in cases.items():
        page = await listed(node, query)
        assert set(ids(page)) == set(map(id_of, wanted)), query
        assert page["total"] == len(wanted), query
    counts = {"live": 2, "paused": 1, "retrying": 0, "expired": 0}
    assert (await listed(node, "?topic=road:ring&state=paused"))["counts"] == counts


@pytest.mark.parametrize(
    "query", ["?state=ended", "?sort=size", "?order=id", "?limit=0", "?after=AAAA", "?topic=a//b"]
)
async def test_a_wrong_parameter_is_refused(shared_node: NodeProcess, query: str) -> None:
    status, answer = await ask("GET", f"{shared_node.base}/subscriptions{query}")
    assert (status, set(answer) >= {"error"}) == (400, True)


async def test_the_worst_come_first_and_every_order_has_all(node: NodeProcess) -> None:
    urls = [await create(node, f"{NOWHERE}{number}", topic=f"t{number}") for number in range(3)]
    for url in urls:
        await ask("PATCH", url, {"paused": True})
    for number, count in ((2, 1), (1, 3)):
        await publish(node, f"t{number}", *({"n": each} for each in range(count)))

    async def has_all() -> bool:
        return [item["waiting"] for item in (await listed(node))["items"]] == [3, 1, 0]

    await eventually(has_all)
    first, second, third = (urls[number] for number in (1, 2, 0))
    assert ids(await listed(node)) == list(map(id_of, (first, second, third)))
    page = await listed(node, "?sort=oldest")
    assert ids(page) == list(map(id_of, (second, first, third)))
    assert page["items"][0]["oldest"] < page["items"][1]["oldest"]
    assert page["items"][2]["oldest"] is None
    names = (
        "waiting", "oldest", "rate", "delivered", "dropped", "failures", "dead_letters", "created",
        "terminates", "consumer", "state", "kind", "id",
    )  # fmt: skip
    for name in names:
        up, down = [ids(await listed(node, f"?sort={sign}{name}")) for sign in ("", "-")]
        assert up == down[::-1]
        assert len(up) == 3


async def test_a_thousand_subscriptions_come_in_pages(node: NodeProcess) -> None:
    for number in range(1010):
        await create(node, f"{NOWHERE}{number}", topic=f"t:n{number % 10}")
    found: list[str] = []
    query, pages = "?limit=300", 0
    while True:
        page = await listed(node, query)
        assert page["total"] == 1010
        found += ids(page)
        pages += 1
        if page["next"] is None:
            break
        query = f"?limit=300&after={page['next']}"
    assert (pages, len(found), len(set(found))) == (4, 1010, 1010)
    assert len(ids(await listed(node))) == 100
    assert len(ids(await listed(node, "?limit=5000"))) == 1000
    assert (await listed(node, "?topic=t:n3"))["total"] == 101


async def test_a_failing_consumer_is_retrying_with_its_reason_until_it_answers(tmp_path: Path) -> None:
    long = ("--set", "delivery.retry_first=600", "--set", "delivery.retry_max=600")
    well = False
    with NodeProcess(tmp_path / "data", *long) as node:
        async with Consumer(lambda number: 200 if well else 503) as consumer:
            url = await create(node, consumer, topic="a")
            await publish(node, "a", {"n": 1})

            async def waits() -> bool:
                return (await show(url))["next_attempt"] is not None

            await eventually(waits)
            item = await show(url)
            assert (item["state"], item["waiting"], item["failures"]) == ("retrying", 1, 1)
            assert "503" in item["reason"]
            assert item["oldest"] is not None
            assert (await listed(node, "?state=retrying"))["counts"]["retrying"] == 1
            status, tried = await ask("POST", f"{url}/retry")
            assert (status, tried["id"]) == (202, item["id"])
            await consumer.wait(lambda c: len(c.requests) == 2)
            well = True

            async def delivered() -> bool:
                await ask("POST", f"{url}/retry")
                return await state_of(url) == "live"

            await eventually(delivered)
            item = await show(url)
            assert (item["waiting"], item["reason"], item["next_attempt"]) == (0, None, None)
            assert item["last_error"] is not None

            async def has_rate() -> bool:
                return bool((await show(url))["rate"] > 0)

            await eventually(has_rate)


async def test_a_retry_that_can_do_nothing_says_why(node: NodeProcess) -> None:
    url = await create(node, NOWHERE, topic="a")
    status, answer = await ask("POST", f"{url}/retry")
    assert (status, "nothing waits" in answer["error"]) == (409, True)
    await ask("PATCH", url, {"paused": True})
    status, answer = await ask("POST", f"{url}/retry")
    assert (status, "is paused" in answer["error"]) == (409, True)
    assert (await ask("POST", f"{node.base}/subscriptions/none/retry"))[0] == 404


async def test_a_subscription_of_soap_is_paused_and_renewed_as_any_other(node: NodeProcess) -> None:
    async with Consumer() as consumer:
        reply = await call(node.url, subscribe(consumer.url, "A"))
        reference = reply.text(".//a:Address")
        url = f"{node.base}/subscriptions/{id_of(reference)}"
        status, item = await ask("PATCH", url, {"paused": True, "expires": "2100-01-01T00:00:00Z"})
        assert (status, item["state"], item["terminates"]) == (200, "paused", "2100-01-01T00:00:00+00:00")
        status, item = await ask("PATCH", url, {"paused": False, "expires": None})
        assert (status, item["state"], item["terminates"]) == (200, "live", None)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"paused": 1},
        {"paused": None},
        {"secret": "x"},
        {"expires": "soon"},
        {"paused": True, "expires": "P0D"},
    ],
)
async def test_a_wrong_change_changes_nothing(shared_node: NodeProcess, change: dict[str, object]) -> None:
    url = await create(shared_node, NOWHERE, topic="unchanged")
    before = await show(url)
    assert (await ask("PATCH", url, change))[0] == 400
    assert await show(url) == before
    assert (await ask("DELETE", url))[0] == 204
    assert (await ask("PATCH", url, {"paused": True}))[0] == 404


async def test_an_expired_subscription_is_listed_and_comes_back_when_renewed(node: NodeProcess) -> None:
    url = await create(node, NOWHERE, topic="a", expires=1)

    async def expired() -> bool:
        return await state_of(url) == "expired"

    await eventually(expired)
    assert (await listed(node, "?state=expired"))["counts"]["expired"] == 1
    for method, address, body in (("PATCH", url, {"paused": True}), ("POST", f"{url}/retry", None)):
        status, answer = await ask(method, address, body)
        assert (status, "has expired" in answer["error"]) == (409, True)
    status, item = await ask("PATCH", url, {"expires": "PT1H", "paused": True})
    assert (status, item["state"]) == (200, "paused")


async def test_pages_of_other_servers_create_and_change_nothing(node: NodeProcess) -> None:
    url = await create(node, NOWHERE, topic="a")
    headers = {"Origin": "http://evil.example.org"}
    async with aiohttp.ClientSession(headers=headers) as session:
        for method, address in (
            ("POST", f"{node.base}/subscriptions"),
            ("PATCH", url),
            ("DELETE", url),
            ("POST", f"{url}/retry"),
        ):
            async with session.request(method, address, json={"callback": NOWHERE}) as response:
                assert response.status == 403
    assert (await listed(node))["total"] == 1


async def test_a_consumer_that_took_its_dead_letter_again_is_not_failing(tmp_path: Path) -> None:
    once = ("--set", "retry.server_error_attempts=1", "--set", "monitoring.alert_after=0")
    with NodeProcess(tmp_path / "data", *once) as node:
        answers = {1: 500, 2: 200}
        # The third request hangs: an event waits, and the consumer has not failed since the second one.
        async with Consumer(lambda number: answers.get(number, 0)) as consumer:
            url = await create(node, consumer, topic="a")
            await publish(node, "a", {"n": 1})

            async def is_dead() -> bool:
                return bool((await show(url))["dead_letters"])

            await eventually(is_dead)
            assert await state_of(url) == "live"
            _, answer = await ask("POST", f"{node.base}/deadletters/replay?wait=30", {"all": True})
            assert answer["delivered"] == 1
            await publish(node, "a", {"n": 2})
            await consumer.wait(lambda c: len(c.requests) == 3)
            found = await show(url)
            assert (found["waiting"], found["state"], found["reason"]) == (1, "live", None)
            names = [alert["name"] for alert in (await show(f"{node.base}/alerts"))["items"]]
            assert "ConsumersFailing" not in names


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/subscriptions"),
        ("GET", "/subscriptions/x"),
        ("PATCH", "/subscriptions/x"),
        ("DELETE", "/subscriptions/x"),
        ("POST", "/subscriptions/x/retry"),
        ("GET", "/deadletters/1"),
        ("DELETE", "/deadletters/1"),
        ("GET", "/pullpoints/x"),
        ("DELETE", "/pullpoints/x"),
        ("GET", "/registrations/x"),
        ("DELETE", "/registrations/x"),
        ("GET", "/status"),
    ],
)
async def test_an_unknown_parameter_is_refused(shared_node: NodeProcess, method: str, path: str) -> None:
    body = {"callback": NOWHERE} if method == "POST" else None
    status, answer = await ask(method, f"{shared_node.base}{path}?x=1", body)
    assert (status, answer) == (400, {"error": "parameter 'x' is unknown; this address has none"})


async def test_health_checks_take_any_parameter(shared_node: NodeProcess) -> None:
    async with aiohttp.ClientSession() as session:
        for path in ("/healthz", "/readyz", "/metrics"):
            async with session.get(f"{shared_node.base}{path}?x=1") as response:
                assert response.status == 200


@pytest.mark.parametrize(
    ("path", "body", "name"),
    [
        ("/subscriptions", b'{"callback": "http://127.0.0.1:9/", "callback": "http://a/"}', "callback"),
        ("/subscriptions", b'{"callback": "http://a/", "delivery": {"batch": 1, "batch": 2}}', "batch"),
        ("/deadletters/drop", b'{"subscription": "a", "subscription": "b"}', "subscription"),
    ],
)
async def test_a_name_that_occurs_twice_in_an_object_is_refused(
    shared_node: NodeProcess, path: str, body: bytes, name: str
) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.post(shared_node.base + path, data=body) as response,
    ):
        answer = await response.json()
    assert (response.status, f"'{name}' is given twice" in answer["error"]) == (400, True), answer
