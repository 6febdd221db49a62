"""Receipts on request and plug-ins for outcomes, with real nodes: what became of a notification, for whom."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import aiohttp

from hpwsn_client import Client, Receiver
from tests.cluster import AdminProcess, Member
from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.patience import PATIENCE, eventually
from tests.raw_soap import NAMES, call, notify, subscribe

QUICK = ("--set", "delivery.retry_first=0.01", "--set", "delivery.retry_max=0.02")
RECEIPT_TO = (
    '<hp:ReceiptTo xmlns:hp="urn:hpwsn:1" s:mustUnderstand="1"><a:Address>{}</a:Address></hp:ReceiptTo>'
)

PLUGIN = """
import json, os

def note(outcome):
    line = {
        "result": outcome.result.value, "offsets": list(outcome.offsets), "consumer": outcome.consumer,
        "subscription": outcome.subscription, "attempt": outcome.attempt, "status": outcome.status,
        "kind": outcome.kind, "topics": [str(each.topic) for each in outcome.notifications],
    }
    with open(os.environ["OUTCOMES"], "a") as file:
        file.write(json.dumps(line) + "\\n")
"""


def _statuses(node: NodeProcess) -> dict[str, Any]:
    with urlopen(f"{node.base}/status", timeout=PATIENCE) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


async def test_a_receipt_names_the_message_and_hides_the_subscription(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data") as node:
        async with Consumer() as consumer, Receiver() as receiver, Client(node.url) as client:
            await call(node.url, subscribe(consumer.url, "A"))
            await client.notify("A:B", "<n>1</n>", message_id="first", receipt_to=receiver)
            receipt = await receiver.get_receipt(PATIENCE)
            assert (receipt.outcome, receipt.message_id, receipt.topic) == ("delivered", "first", "A:B")
            assert (receipt.count, receipt.status, receipt.reason) == (1, 202, None)
            assert receipt.is_delivered
            assert _statuses(node)["receipts"] == {"sent": 1, "failed": 0, "skipped": 0, "in_flight": 0}
            (subscription,) = json.loads(await _get(f"{node.base}/subscriptions"))["items"]
            assert receipt.consumer not in subscription["id"]
            assert subscription["id"] not in receipt.consumer
            # The consumer finds the address beside the producer's own, as in the original.
            (message,) = consumer.messages()
            assert message.findtext(".//{urn:hpwsn:1}ReceiptTo/{*}Address") == receiver.url


async def test_each_consumer_has_its_own_receipt_and_a_pull_point_is_queued(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data") as node:
        async with Consumer() as consumer, Receiver() as receiver, Client(node.url) as client:
            point = await client.create_pull_point()
            await client.subscribe("A", point)
            await call(node.url, subscribe(consumer.url, "A"))
            await client.notify("A", "<n>1</n>", receipt_to=receiver.url)
            receipts = [await receiver.get_receipt(PATIENCE) for _ in range(2)]
            assert {receipt.outcome for receipt in receipts} == {"delivered", "queued"}
            assert len({receipt.consumer for receipt in receipts}) == 2


async def test_messages_of_one_notify_share_a_receipt(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data") as node:
        async with Consumer() as consumer, Receiver() as receiver:
            await call(node.url, subscribe(consumer.url, "A"))
            header = RECEIPT_TO.format(receiver.url)
            await call(node.url, notify("A", "<n>1</n>", "<n>2</n>", "<n>3</n>"), headers=header)
            receipt = await receiver.get_receipt(PATIENCE)
            assert (receipt.outcome, receipt.count, receipt.message_id) == ("delivered", 3, None)


async def test_a_dead_letter_is_reported_once_and_again_when_it_is_delivered(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", *QUICK, "--set", "retry.server_error_attempts=2") as node:
        async with (
            Consumer(lambda number: 500 if number <= 2 else 202) as consumer,
            Receiver() as receiver,
            Client(node.url) as client,
        ):
            await call(node.url, subscribe(consumer.url, "A"))
            await client.notify("A", "<n>1</n>", message_id="m", receipt_to=receiver)
            receipt = await receiver.get_receipt(PATIENCE)
            assert (receipt.outcome, receipt.status, receipt.reason) == ("dead-letter", 500, "server_error")
            async with aiohttp.ClientSession() as session:
                await session.post(f"{node.base}/deadletters/replay", json={"all": True})
            again = await receiver.get_receipt(PATIENCE)
            assert (again.outcome, again.message_id, again.consumer) == ("delivered", "m", receipt.consumer)


async def test_expired_and_dropped_notifications_are_reported(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", *QUICK) as node:
        async with (
            Consumer(lambda number: 503) as consumer,
            Receiver() as receiver,
            Client(node.url) as client,
        ):
            policy = '<hp:Delivery xmlns:hp="urn:hpwsn:1" {}/>'
            for wanted in ('maxQueue="1" overflow="drop-oldest"', 'expires="PT0.05S"'):
                policies = f"<w:SubscriptionPolicy>{policy.format(wanted)}</w:SubscriptionPolicy>"
                reply = await call(node.url, subscribe(consumer.url, "A", more=policies))
                assert reply.status == 200, reply.body
            for number in range(3):
                await client.notify("A", f"<n>{number}</n>", message_id=str(number), receipt_to=receiver)
            found = set()
            while not {("dropped", "0"), ("expired", "0"), ("expired", "2")} <= found:
                receipt = await receiver.get_receipt(PATIENCE)
                found.add((receipt.outcome, receipt.message_id))


async def test_a_receipt_asked_for_before_a_crash_is_sent_after_the_restart(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", *QUICK) as node:
        answers = [503]
        async with Consumer(lambda number: answers[-1]) as consumer, Receiver() as receiver:
            await call(node.url, subscribe(consumer.url, "A"))
            async with Client(node.url) as client:
                await client.notify("A", "<n>1</n>", message_id="kept", receipt_to=receiver)
            await consumer.wait(lambda c: len(c.requests) >= 2)
            node.kill()
            answers.append(202)
            node.start()
            receipt = await receiver.get_receipt(PATIENCE)
            assert (receipt.outcome, receipt.message_id) == ("delivered", "kept")


async def test_a_json_publisher_gets_its_receipt_in_json(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data") as node:
        async with Consumer() as consumer, Consumer() as publisher, aiohttp.ClientSession() as session:
            await call(node.url, subscribe(consumer.url, "A"))
            headers = {"Hpwsn-Receipt-To": publisher.url, "Hpwsn-Message-Id": "j"}
            async with session.post(
                f"{node.base}/topics/A/events", json=[{"n": 1}, {"n": 2}], headers=headers
            ) as answer:
                assert answer.status == 202
            await publisher.wait(lambda c: len(c.requests) == 1)
            receipt = json.loads(publisher.requests[0])
            assert publisher.headers[0]["Content-Type"] == "application/json"
            assert (receipt["outcome"], receipt["message_id"], receipt["count"]) == ("delivered", "j", 2)


async def test_a_receipt_is_tried_again_and_then_given_up(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", *QUICK, "--set", "delivery.receipt_retry_for=0.2") as node:
        async with (
            Consumer() as consumer,
            Consumer(lambda number: 202 if number == 3 else 503) as publisher,
            Client(node.url) as client,
        ):
            await call(node.url, subscribe(consumer.url, "A"))
            await client.notify("A", "<n>1</n>", receipt_to=publisher.url)
            await eventually(lambda: _has(node, "sent", 1))
            assert len(publisher.requests) == 3
            await client.notify("A", "<n>2</n>", receipt_to=publisher.url)
            await eventually(lambda: _has(node, "failed", 1))


async def test_receipts_beyond_the_limit_are_not_sent(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", "--set", "delivery.receipt_limit=1") as node:
        async with (
            Consumer() as consumer,
            Consumer(lambda number: 0) as publisher,
            Client(node.url) as client,
        ):
            await call(node.url, subscribe(consumer.url, "A"))
            for number in range(3):
                await client.notify("A", f"<n>{number}</n>", message_id=str(number), receipt_to=publisher.url)
            await eventually(lambda: _has(node, "skipped", 2))
            assert _statuses(node)["receipts"]["in_flight"] == 1


async def test_an_address_that_cannot_be_used_is_refused_and_nothing_is_stored(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data") as node:
        for address in ("ftp://x/", "nowhere", node.url, f"{node.base}/wsn/pullpoints/1"):
            reply = await call(node.url, notify("A", "<n>1</n>"), headers=RECEIPT_TO.format(address))
            assert (reply.status, b"receipts cannot be sent" in reply.body) == (500, True), reply.body
        assert _statuses(node)["published"]["accepted"] == 0


async def test_a_request_inside_of_the_message_is_removed(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data") as node:
        async with Consumer() as consumer:
            await call(node.url, subscribe(consumer.url, "A"))
            request = RECEIPT_TO.format("http://127.0.0.1:9/").replace(' s:mustUnderstand="1"', "")
            inside = f"<w:ProducerReference><a:Address>http://p/</a:Address>{request}</w:ProducerReference>"
            body = notify("A", "<n>1</n>").replace("<w:Message>", f"{inside}<w:Message>")
            assert (await call(node.url, body)).status == 202
            await consumer.wait(lambda c: len(c.requests) == 1)
            (message,) = consumer.messages()
            assert message.findtext("w:ProducerReference/a:Address", namespaces=NAMES) == "http://p/"
            assert message.find(".//{urn:hpwsn:1}ReceiptTo") is None


async def test_a_node_without_receipts_says_so(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", "--set", "delivery.receipts=false") as node:
        header = RECEIPT_TO.format("http://127.0.0.1:9/")
        reply = await call(node.url, notify("A", "<n>1</n>"), headers=header)
        assert (reply.status, b"delivery.receipts" in reply.body) == (500, True)
        assert "receipts" not in _statuses(node)


async def test_a_consumer_at_another_node_has_a_receipt_too(tmp_path: Path) -> None:
    with (
        AdminProcess(tmp_path / "admin") as admin,
        Member(tmp_path / "a", "a", "one", admin.base) as near,
        Member(tmp_path / "b", "b", "two", admin.base) as far,
    ):
        async with Consumer() as consumer, Receiver() as receiver, Client(near.url) as client:
            await call(far.url, subscribe(consumer.url, "A"))

            async def arrives() -> bool:
                # The first ones may be published before the far node's interest is known here.
                await client.notify("A", "<n/>", message_id=f"m{next(numbers)}", receipt_to=receiver)
                return bool(consumer.requests)

            numbers = itertools.count()
            await eventually(arrives)
            receipt = await receiver.get_receipt(PATIENCE)
            assert (receipt.outcome, receipt.topic) == ("delivered", "A")
            assert (receipt.message_id or "").startswith("m")


async def test_a_plug_in_gets_every_outcome(tmp_path: Path) -> None:
    installed, outcomes = tmp_path / "site", tmp_path / "outcomes"
    info = installed / "note_outcomes-1.dist-info"
    info.mkdir(parents=True)
    (installed / "note_outcomes.py").write_text(PLUGIN)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: note-outcomes\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[hpwsn.delivery_outcome]\nnote = note_outcomes:note\n")
    prefix = ("env", f"PYTHONPATH={installed}", f"OUTCOMES={outcomes}")
    settings = (*QUICK, "--set", "retry.server_error_attempts=2")
    with NodeProcess(tmp_path / "data", *settings, prefix=prefix) as node:
        async with Consumer(lambda number: 202 if number == 1 else 500) as consumer:
            await call(node.url, subscribe(consumer.url, "A"))
            await call(node.url, notify("A", "<n>1</n>"))
            await consumer.wait(lambda c: len(c.requests) == 1)
            await call(node.url, notify("A", "<n>2</n>"))

            async def four() -> bool:
                return outcomes.exists() and len(outcomes.read_text().splitlines()) == 4

            await eventually(four)
            lines = [json.loads(line) for line in outcomes.read_text().splitlines()]
            assert [line["result"] for line in lines] == ["delivered", "failed", "failed", "dead-letter"]
            assert [line["attempt"] for line in lines[:3]] == [1, 1, 2]
            assert [line["status"] for line in lines] == [202, 500, 500, 500]
            assert lines[0]["topics"] == ["A"]
            assert {line["consumer"] for line in lines} == {consumer.url}
        assert _statuses(node)["outcomes"]["reported"] == 4


def test_a_plug_in_that_cannot_be_loaded_stops_the_start(tmp_path: Path) -> None:
    info = tmp_path / "site" / "broken-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[hpwsn.delivery_outcome]\nnote = no_such_module:note\n")
    started = subprocess.run(
        [sys.executable, "-m", "hpwsn", "serve", "--port", "0", "--data", str(tmp_path / "data")],
        env=os.environ | {"PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert started.returncode == 1
    assert "the plug-in note = no_such_module:note of hpwsn.delivery_outcome" in started.stderr


async def _get(url: str) -> str:
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return await answer.text()


async def _has(node: NodeProcess, name: str, count: int) -> bool:
    return bool(_statuses(node)["receipts"][name] == count)
