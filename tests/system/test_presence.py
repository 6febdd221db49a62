"""A consumer that announces itself gets what waits at once, though its next retry is far away."""

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from hpwsn_client import BadReply, Client, ConnectionFailed, DeliveryPolicy, Receiver
from hpwsn_client.announcing import Woken
from tests.cet_node import cet_node, has
from tests.consumer import Consumer
from tests.harness import hpwsn, quiet_port
from tests.patience import PATIENCE, eventually
from tests.raw_soap import call
from tests.webhooks import ask

PAUSE = "<w:PauseSubscription/>"


async def test_every_subscription_of_the_consumer_is_woken_and_no_other(tmp_path: Path) -> None:
    answers = {"status": 503}
    async with (
        cet_node(tmp_path) as node,
        Consumer(lambda number: answers["status"]) as away,
        Consumer(lambda number: answers["status"]) as other,
    ):
        for topic in ("A", "B"):
            await node.subscribed(away.url, "", topic)
        stays = await node.subscribed(other.url, "")
        webhook = {"callback": away.url, "topic": "A"}
        status, _ = await ask("POST", f"{node.base}/subscriptions", webhook)
        assert status == 201
        await node.publish(1)
        await node.publish(2, topic="B")
        await away.wait(lambda consumer: len(consumer.requests) >= 3)
        await node.waits(stays, 1)
        answers["status"] = 202
        away.requests.clear()
        other.requests.clear()
        status, woken = await ask("POST", f"{node.base}/presence", {"consumer": away.url})
        assert (status, woken) == (200, {"subscriptions": 3, "waiting": 3})
        await away.wait(lambda consumer: len(consumer.requests) == 3)
        await node.waits(stays, 1)
        assert not other.requests


async def test_a_send_that_was_under_way_and_fails_is_repeated_at_once(tmp_path: Path) -> None:
    answers = {1: 0}
    async with (
        cet_node(tmp_path, response_timeout=0.5) as node,
        Consumer(lambda number: answers.get(number, 202)) as away,
    ):
        reference = await node.subscribed(away.url, "")
        await node.publish(1)
        await away.wait(has(1))
        assert node.held(reference).progress.busy
        status, woken = await ask("POST", f"{node.base}/presence", {"consumer": away.url})
        assert (status, woken) == (200, {"subscriptions": 1, "waiting": 1})
        await away.wait(has(2))
        await node.waits(reference, 0)


async def test_an_address_is_found_however_it_is_written(tmp_path: Path) -> None:
    async with cet_node(tmp_path) as node:
        await node.subscribed("http://LocalHost:80/x?y=1", "")
        for written in ("http://localhost/x?y=1", "HTTP://localhost:80/x?y=1", "http://LocalHost:80/x?y=1"):
            status, woken = await ask("POST", f"{node.base}/presence", {"consumer": written})
            assert (status, woken["subscriptions"]) == (200, 1), written
        for written in ("http://localhost/x", "http://localhost:81/x?y=1", "https://localhost:80/x?y=1"):
            status, woken = await ask("POST", f"{node.base}/presence", {"consumer": written})
            assert (status, woken) == (200, {"subscriptions": 0, "waiting": 0}), written


async def test_a_paused_subscription_stays_paused(tmp_path: Path) -> None:
    async with cet_node(tmp_path) as node, Consumer() as consumer:
        reference = await node.subscribed(consumer.url, "")
        await call(reference, PAUSE)
        await node.publish(1)
        await node.waits(reference, 1)
        status, woken = await ask("POST", f"{node.base}/presence", {"consumer": consumer.url})
        assert (status, woken) == (200, {"subscriptions": 0, "waiting": 0})
        await node.waits(reference, 1)
        assert not consumer.requests


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "consumer is missing"),
        ({"consumer": ""}, "consumer is missing"),
        ({"consumer": 5}, "not a text"),
        ({"consumer": "nowhere"}, "must begin with http"),
        ({"consumer": "http://a b/"}, "spaces"),
        ({"consumer": "http://u:p@host/"}, "user name"),
        ({"consumer": "http://host/", "topic": "A"}, "the field 'topic' is unknown"),
        ([1], "object"),
    ],
    ids=str,
)
async def test_what_is_wrong_with_an_announcement_is_told(tmp_path: Path, body: object, words: str) -> None:
    async with cet_node(tmp_path) as node:
        status, told = await ask("POST", f"{node.base}/presence", body)
        assert status == 400
        assert words in told["error"]
        status, told = await ask("POST", f"{node.base}/presence?when=now", {"consumer": "http://host/"})
        assert (status, "when" in told["error"]) == (400, True)


async def test_a_receiver_that_starts_again_announces_itself(tmp_path: Path) -> None:
    port = quiet_port()
    async with cet_node(tmp_path) as node, Client(node.url) as client:
        where = f"http://127.0.0.1:{port}/"
        policy = DeliveryPolicy(discipline="cet", alpha=5, batch=1)
        subscription = await client.subscribe("A", where, policy=policy)
        await node.publish(1, 2, 3)
        held = node.held(subscription.epr.address)

        async def failed() -> bool:
            return held.progress.failures == 1 and held.cursor.backlog == 3

        await eventually(failed)
        async with Receiver(port=port, announce_to=node.url) as receiver:
            found = [(await receiver.get(PATIENCE)).element.text for _ in range(3)]
        assert found == ["3", "2", "1"]


async def test_the_client_announces_a_consumer_and_tells_what_failed(tmp_path: Path) -> None:
    async with cet_node(tmp_path) as node, Client(node.url) as client, Consumer() as consumer:
        assert await client.announce(consumer.url) == Woken(0, 0)
        await node.subscribed(consumer.url, "")
        assert await client.announce(consumer.url) == Woken(1, 0)
        async with Client(f"http://127.0.0.1:{consumer.port}/wsn") as other:
            with pytest.raises(BadReply, match="status 404"):
                await other.announce(consumer.url)
    async with Client(f"http://127.0.0.1:{quiet_port()}/wsn") as nobody:
        with pytest.raises(ConnectionFailed, match="check the broker's URL"):
            await nobody.announce("http://127.0.0.1:9/")


async def test_the_command_line_announces_a_consumer(tmp_path: Path) -> None:
    async with cet_node(tmp_path) as node, Consumer() as consumer:
        await node.subscribed(consumer.url, "")

        async def announce(*arguments: str) -> subprocess.CompletedProcess[str]:
            return await asyncio.to_thread(hpwsn, "announce", *arguments, "--url", node.url)

        done = await announce(consumer.url)
        assert (done.returncode, done.stdout) == (0, "1 subscription woken, 0 notifications were waiting\n")
        done = await announce("http://127.0.0.1:9/", "--json")
        assert (done.returncode, json.loads(done.stdout)) == (0, {"subscriptions": 0, "waiting": 0})
        done = await announce("http://127.0.0.1:9/")
        assert done.stdout.startswith("no subscription of this node has this consumer")
        done = await announce("nowhere")
        assert (done.returncode, "as it was subscribed" in done.stderr) == (2, True), done.stderr


async def test_a_receiver_starts_where_the_broker_cannot_be_told(caplog: pytest.LogCaptureFixture) -> None:
    async with Receiver(announce_to=f"http://127.0.0.1:{quiet_port()}/wsn") as receiver:
        assert receiver.url.startswith("http://127.0.0.1:")
    assert "was not told of this receiver" in caplog.text
