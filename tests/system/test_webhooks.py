"""Webhooks: consumers that get JSON, with the guarantees of every subscription."""

from __future__ import annotations

import io
import json
from pathlib import Path

import aiohttp
import pytest

from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.patience import eventually
from tests.raw_soap import call, notify, subscribe
from tests.webhooks import SECRET, ask, create, data_of, events_of, is_signed, listed, publish, show

QUICK = ("--set", "delivery.retry_first=0.05", "--set", "delivery.retry_max=0.2")
NOWHERE = "http://127.0.0.1:9/"


async def test_a_webhook_gets_the_events_that_a_reader_of_its_topic_gets(node: NodeProcess) -> None:
    async with Consumer() as consumer, aiohttp.ClientSession() as session:
        asked = {"topic": "road", "callback": consumer.url, "secret": SECRET, "expires": "PT1H"}
        async with session.post(f"{node.base}/subscriptions", json=asked) as response:
            answer = await response.json()
            assert (response.status, response.headers["Location"]) == (201, answer["url"])
        assert set(answer) == {"id", "url", "terminates"}
        assert answer["url"] == f"{node.base}/subscriptions/{answer['id']}"
        await publish(node, "road:ring", {"speed": 61.5, "plate": "京B34C91"}, {"speed": 50})
        await publish(node, "rail", {"speed": 200})
        await call(node.url, notify("road", "<car><speed>70</speed></car>"))
        await consumer.wait(lambda c: len(events_of(c)) == 3)
        async with session.get(f"{node.base}/topics/road/events") as response:
            assert events_of(consumer) == await response.json()
    assert is_signed(consumer)
    assert {headers["Content-Type"] for headers in consumer.headers} == {"application/json"}


async def test_without_a_secret_nothing_is_signed_and_without_a_topic_all_is_sent(node: NodeProcess) -> None:
    async with Consumer() as consumer:
        await create(node, consumer, topic=None, secret=None, filter=None, delivery=None, expires=None)
        await publish(node, "a", {"n": 1})
        await call(node.url, notify(None, "<n>2</n>", dialect=None))
        await consumer.wait(lambda c: len(events_of(c)) == 2)
    assert [event["topic"] for event in events_of(consumer)] == ["a", None]
    assert not any("Hpwsn-Signature" in headers for headers in consumer.headers)


@pytest.mark.parametrize(
    "given",
    [
        {"filter": "speed > 60"},
        {"filter": "speed > 60", "dialect": "predicates"},
        {"filter": "number(/*/speed) > 60", "dialect": "xpath"},
    ],
)
async def test_a_filter_selects_events(shared_node: NodeProcess, given: dict[str, str]) -> None:
    async with Consumer() as consumer:
        url = await create(shared_node, consumer, topic="filtered", **given)
        await publish(shared_node, "filtered", {"speed": 50}, {"speed": 61}, {"speed": 9}, {"speed": 99})
        await consumer.wait(lambda c: len(events_of(c)) == 2)
        await ask("DELETE", url)
    assert data_of(consumer) == [{"speed": 61}, {"speed": 99}]


async def test_a_repeated_request_gets_the_same_webhook_with_a_new_lifetime(shared_node: NodeProcess) -> None:
    asked: dict[str, object] = {"topic": "again", "callback": NOWHERE, "secret": "one", "expires": "PT1H"}
    url = f"{shared_node.base}/subscriptions"
    status, first = await ask("POST", url, asked)
    again = await ask("POST", url, {**asked, "expires": "2100-01-01T00:00:00Z"})
    assert (status, again[0]) == (201, 201)
    assert again[1] == {**first, "terminates": "2100-01-01T00:00:00+00:00"}
    others: list[dict[str, object]] = [
        {"secret": "two"},
        {"secret": None},
        {"filter": "n > 1"},
        {"delivery": {"batch": 5}},
    ]
    ids = {(await ask("POST", url, asked | other))[1]["id"] for other in others}
    assert len(ids | {first["id"]}) == 5
    assert (await ask("DELETE", first["url"]))[0] == 204
    assert (await ask("GET", first["url"]))[0] == 404
    for id_ in ids:
        await ask("DELETE", f"{url}/{id_}")


async def test_events_that_waited_travel_in_batches_of_the_policy(node: NodeProcess) -> None:
    async with Consumer() as consumer:
        url = await create(node, consumer, topic="a", delivery={"batch": 2})
        assert (await ask("PATCH", url, {"paused": True}))[1]["state"] == "paused"
        await publish(node, "a", *({"n": number} for number in range(5)))
        await eventually(lambda: _waits(url, 5))
        assert (await ask("PATCH", url, {"paused": False}))[1]["state"] == "live"
        await consumer.wait(lambda c: len(events_of(c)) == 5)
    assert [len(json.loads(body)) for body in consumer.requests] == [2, 2, 1]
    assert data_of(consumer) == [{"n": number} for number in range(5)]


async def _waits(url: str, count: int) -> bool:
    return bool((await show(url))["waiting"] == count)


@pytest.mark.parametrize("size", [100, 70_000, 3 << 20])
async def test_an_event_of_any_size_is_signed(node: NodeProcess, size: int) -> None:
    async with Consumer() as consumer, Consumer() as second:
        for each in (consumer, second):
            await create(node, each, topic="a", secret=SECRET)
        await publish(node, "a", {"text": "x" * size}, {"n": 2})
        for each in (consumer, second):
            await each.wait(lambda c: len(events_of(c)) == 2)
            assert [len(data) for data in data_of(each)] == [1, 1]
            assert data_of(each)[0] == {"text": "x" * size}
            assert is_signed(each)


async def test_a_failing_consumer_is_tried_again_and_misses_nothing(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", *QUICK) as node:
        async with Consumer(lambda number: 500 if number < 4 else 200) as consumer:
            await create(node, consumer, topic="a", secret=SECRET)
            await publish(node, "a", {"n": 1})
            await publish(node, "a", {"n": 2})
            await consumer.wait(lambda c: {"n": 2} in data_of(c) and len(c.requests) > 4)
            assert is_signed(consumer)


async def test_undeliverable_events_become_dead_letters_and_can_be_replayed(tmp_path: Path) -> None:
    once = ("--set", "retry.server_error_attempts=1")
    with NodeProcess(tmp_path / "data", *QUICK, *once) as node:
        async with Consumer(lambda number: 500 if number == 1 else 200) as consumer:
            url = await create(node, consumer, topic="a", secret=SECRET)
            await publish(node, "a", {"n": 1})

            async def is_dead() -> bool:
                return bool((await show(url))["dead_letters"] == 1)

            await eventually(is_dead)
            await ask("POST", f"{node.base}/deadletters/replay", {"all": True})
            await consumer.wait(lambda c: len(c.requests) == 2)
            assert data_of(consumer) == [{"n": 1}, {"n": 1}]
            assert is_signed(consumer)


@pytest.mark.parametrize(("on_gone", "status"), [("end", 404), ("keep", 200)])
async def test_a_consumer_that_is_gone_ends_its_webhook_if_configured(
    tmp_path: Path, on_gone: str, status: int
) -> None:
    with NodeProcess(tmp_path / "data", "--set", f"delivery.on_gone={on_gone}", *QUICK) as node:
        async with Consumer(lambda number: 410) as consumer:
            url = await create(node, consumer, topic="a")
            await publish(node, "a", {"n": 1})

            async def is_so() -> bool:
                found, answer = await ask("GET", url)
                return found == status and answer.get("failures", 1) > 0

            await eventually(is_so)


async def test_a_webhook_ends_with_its_lifetime(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", "--set", "subscriptions.grace=0") as node:
        url = await create(node, NOWHERE, topic="a", expires=1)

        async def is_gone() -> bool:
            return (await ask("GET", url))[0] == 404

        await eventually(is_gone)


async def test_events_that_waited_too_long_are_not_sent(node: NodeProcess) -> None:
    async with Consumer() as consumer:
        url = await create(node, consumer, topic="a", delivery={"expires": "PT0.05S"})
        await ask("PATCH", url, {"paused": True})
        await publish(node, "a", {"n": 1})

        async def is_old() -> bool:
            await ask("PATCH", url, {"paused": False})
            return bool((await show(url))["expired_unsent"] + len(consumer.requests))

        await eventually(lambda: _waits(url, 1))
        await eventually(is_old)


@pytest.mark.parametrize(
    "wanted",
    [
        {"filter": "n > 0"},
        {
            "filter": "number(/hp:event/n) > 0",
            "dialect": "xpath",
            "delivery": {"batch": 3, "expires": "PT1H"},
        },
        {"filter": 'n >= 1 and not m = "京"', "expires": "2100-01-01T00:00:00Z"},
    ],
)
async def test_after_kill_9_a_webhook_is_the_same(tmp_path: Path, wanted: dict[str, object]) -> None:
    async with Consumer() as consumer:
        node = NodeProcess(tmp_path / "data").start()
        url = await create(node, consumer, topic="{urn:example}a", secret=SECRET, **wanted)
        await ask("PATCH", url, {"paused": True})
        before = await show(url)
        await publish(node, "%7Burn:example%7Da", {"n": 0}, {"n": 1})
        node.kill()
        with node:
            assert {**await show(url), "waiting": 0, "oldest": None} == before
            assert await create(node, consumer, topic="{urn:example}a", secret=SECRET, **wanted) == url
            await ask("PATCH", url, {"paused": False})
            await consumer.wait(lambda c: data_of(c) == [{"n": 1}])
    assert is_signed(consumer)


async def test_the_operations_of_soap_work_on_a_webhook(node: NodeProcess) -> None:
    async with Consumer() as consumer:
        url = await create(node, consumer, topic="a", secret=SECRET)
        manager = (await show(url))["reference"]
        renew = "<w:Renew><w:TerminationTime>PT1H</w:TerminationTime></w:Renew>"
        assert (await call(manager, renew)).status == 200
        assert (await show(url))["terminates"] is not None
        assert (await call(manager, "<w:PauseSubscription/>")).status == 200
        await publish(node, "a", {"n": 1})
        await eventually(lambda: _waits(url, 1))
        assert (await call(manager, "<w:ResumeSubscription/>")).status == 200
        await consumer.wait(lambda c: data_of(c) == [{"n": 1}])
        assert (await call(manager, "<w:Unsubscribe/>")).status == 200
        assert (await ask("GET", url))[0] == 404


async def test_nothing_shows_the_secret(node: NodeProcess) -> None:
    secret = "do-not-show-this"
    url = await create(node, NOWHERE, topic="a", secret=secret)
    manager = (await show(url))["reference"]
    namespaces = 'xmlns:rp="http://docs.oasis-open.org/wsrf/rp-2"'
    dialect = "http://www.w3.org/TR/1999/REC-xpath-19991116"
    document = await call(
        manager,
        f"<rp:QueryResourceProperties {namespaces}>"
        f'<rp:QueryExpression Dialect="{dialect}">/*</rp:QueryExpression></rp:QueryResourceProperties>',
    )
    assert b"ConsumerReference" in document.body
    answers = [str(await ask("PATCH", url, {"expires": "PT1H"})), document.body.decode(), node.log()]
    answers += [str(await listed(node)), str(await show(url))]
    async with aiohttp.ClientSession() as session:
        for path in ("/status", "/metrics"):
            async with session.get(node.base + path) as response:
                answers.append(await response.text())
    for answer in answers:
        assert secret not in answer
        assert secret.encode().hex() not in answer


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"callback": None}, "callback is missing"),
        ({"callback": 5}, "callback is '5'; give a text"),
        ({"callback": "mailto:a@b"}, "http:// or https://"),
        ({"callback": "http://u:p@h/"}, "a user name"),
        ({"topics": "a"}, "'topics' is unknown"),
        ({"topic": "a//b"}, "is not a topic expression"),
        ({"topic": ["a"]}, "topic is"),
        ({"filter": "speed >"}, "column 8"),
        ({"filter": "speed > 1", "dialect": "sql"}, "predicates or xpath"),
        ({"filter": 'a = "\u0001"'}, "U+0001"),
        ({"expires": "soon"}, "expires is not valid"),
        ({"expires": "2001-01-01T00:00:00Z"}, "not in the future"),
        ({"expires": 0}, "from 1 to 1000000000"),
        ({"expires": True}, "expires is 'true'"),
        ({"delivery": "fast"}, "delivery is"),
        ({"delivery": {"size": 1}}, "maxQueue, overflow, batch, expires, discipline, alpha, beta"),
        ({"delivery": {"batch": 0}}, "whole number from 1"),
        ({"delivery": {"batch": [1]}}, "give a number or a text"),
        ({"delivery": {"overflow": "\u0000"}}, "give a number or a text"),
        ({"delivery": {"alpha": 3}}, "discipline="),
        ({"secret": ""}, "1 to 1024"),
        ({"secret": "x" * 1025}, "1 to 1024"),
        ({"secret": 12345678}, "secret is not a text"),
        ({"secret": "\ud800"}, "surrogate"),
    ],
)
async def test_a_wrong_field_is_refused_and_creates_nothing(
    shared_node: NodeProcess, fields: dict[str, object], words: str
) -> None:
    body = {"topic": "wrong", "callback": NOWHERE, **fields}
    status, answer = await ask("POST", f"{shared_node.base}/subscriptions", body)
    assert (status, words in answer["error"]) == (400, True), answer
    assert (await listed(shared_node, "?topic=wrong"))["total"] == 0


async def test_limits_hold_up_to_their_edge(shared_node: NodeProcess) -> None:
    url = await create(shared_node, NOWHERE, topic="edge", secret="京" * 1024, expires=10**9)
    await ask("DELETE", url)
    body = json.dumps({"callback": NOWHERE, "topic": "edge"}).encode()
    async with aiohttp.ClientSession() as session:
        for size, status in ((1 << 20, 201), ((1 << 20) + 1, 413)):
            data = body + b" " * (size - len(body))
            body_of_size = io.BytesIO(data)
            async with session.post(f"{shared_node.base}/subscriptions", data=body_of_size) as response:
                assert response.status == status
                if status == 201:
                    await ask("DELETE", (await response.json())["url"])


@pytest.mark.parametrize(
    "path", ["/wsn", "/topics/a/events", "/wsn/pullpoints/x", "/", "/ui/?a=b", "/wsn/registrations/x"]
)
async def test_the_node_itself_is_not_a_consumer(shared_node: NodeProcess, path: str) -> None:
    for base in (shared_node.base, shared_node.base.replace("127.0.0.1", "localhost")):
        status, answer = await ask(
            "POST", f"{shared_node.base}/subscriptions", {"callback": base + path, "topic": "own"}
        )
        assert (status, "is a node itself" in answer["error"]) == (400, True), answer


@pytest.mark.parametrize("path", ["/wsn", "/onvif/events"])
@pytest.mark.parametrize(
    "extension",
    [
        '<hp:Webhook xmlns:hp="urn:hpwsn:1"/>',
        '<hp:Webhook xmlns:hp="urn:hpwsn:1" secret="00"/>',
        '<Webhook xmlns="urn:hpwsn:1">other</Webhook>',
    ],
)
async def test_a_subscribe_cannot_stand_for_a_webhook(
    shared_node: NodeProcess, path: str, extension: str
) -> None:
    before = (await listed(shared_node))["total"]
    reply = await call(shared_node.base + path, subscribe(NOWHERE, "soap", more=extension), "1.2")
    assert b"SubscribeCreationFailedFault" in reply.body
    assert b"create webhooks with POST /subscriptions" in reply.body
    assert (await listed(shared_node))["total"] == before


async def test_another_extension_of_that_name_is_no_webhook(shared_node: NodeProcess) -> None:
    extension = '<x:Webhook xmlns:x="urn:other"/>'
    reply = await call(shared_node.url, subscribe(NOWHERE, "soap", more=extension))
    assert reply.status == 200, reply.body


async def test_topics_outside_of_a_fixed_tree_are_refused(tmp_path: Path) -> None:
    tree = tmp_path / "topics.toml"
    tree.write_text("[topics.a]\n")
    with NodeProcess(tmp_path / "data", "--topics", str(tree)) as node:
        status, answer = await ask("POST", f"{node.base}/subscriptions", {"callback": NOWHERE, "topic": "b"})
        assert status == 404, answer
        await create(node, NOWHERE, topic="a")


async def test_a_node_that_sends_only_raw_payloads_still_has_webhooks(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", "--set", "delivery.raw_only=true") as node:
        async with Consumer() as consumer:
            await create(node, consumer, topic="a")
            await publish(node, "a", {"n": 1})
            await consumer.wait(lambda c: data_of(c) == [{"n": 1}])


async def test_the_limit_of_subscriptions_is_told(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", "--set", "subscriptions.limit=1") as node:
        await create(node, NOWHERE, topic="a")
        status, answer = await ask("POST", f"{node.base}/subscriptions", {"callback": NOWHERE, "topic": "b"})
        assert (status, "subscriptions.limit" in answer["error"]) == (503, True)
