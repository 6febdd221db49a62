"""Subscriptions whose topics are removed: they wait for them, or are told and end, as the setting says."""

import json
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from tests.activemq import ActiveMQ, BackedNode
from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.patience import eventually
from tests.raw_soap import FULL, NAMES, call, notify, send, subscribe
from tests.slapd import BASE, Slapd, topic

RETRY = ("--set", "delivery.retry_first=0.05", "--set", "delivery.retry_max=0.1")
END = ("--set", "topics.on_remove=end", *RETRY)
FIRE = f"cn=FIRE,cn=ALARM,cn=ALL,{BASE}"
RL = "{http://docs.oasis-open.org/wsrf/rl-2}"


async def refuses(node: NodeProcess, on: str) -> bool:
    return (await call(node.url, notify(on, "<n>x</n>"))).status != 202


async def subscriptions(node: NodeProcess) -> list[dict[str, Any]]:
    reply = await send(f"{node.base}/subscriptions", b"", method="GET")
    found: list[dict[str, Any]] = json.loads(reply.body)["items"]
    return found


async def number_is(node: NodeProcess, number: int) -> bool:
    return len(await subscriptions(node)) == number


def farewells(consumer: Consumer) -> list[etree._Element]:
    return [
        e for body in consumer.requests for e in etree.fromstring(body).iter(f"{RL}TerminationNotification")
    ]


async def test_a_subscription_with_no_topic_left_is_told_and_ends_and_others_stay(
    slapd: Slapd, tmp_path: Path
) -> None:
    with NodeProcess(tmp_path / "data", "--topics", slapd.url, *END) as node:
        async with Consumer() as lost, Consumer() as wide, Consumer() as all_of_it:
            made = await call(node.url, subscribe(lost.url, "ALL:ALARM:FIRE"))
            manager = made.text("w:SubscriptionReference/a:Address")
            await call(node.url, subscribe(wide.url, "ALL/ALARM/*", dialect=FULL))
            await call(node.url, subscribe(all_of_it.url))
            slapd.delete(FIRE)
            await eventually(lambda: number_is(node, 2))
            await lost.wait(lambda c: bool(farewells(c)))
            reason = farewells(lost)[0].findtext(f"{RL}TerminationReason")
            assert reason == "all topics of the subscription were removed from this broker"
            assert farewells(lost)[0].findtext(f"{RL}TerminationTime")
            told = lost.messages()[0].findtext("w:SubscriptionReference/a:Address", namespaces=NAMES)
            assert told == manager
            assert (await call(manager, "<w:Unsubscribe/>")).fault == "ResourceUnknownFault"
            assert not wide.requests
            assert not all_of_it.requests
    assert "ends: all topics of the subscription were removed" in node.log()


async def test_what_was_accepted_before_the_removal_is_delivered_before_the_end(
    slapd: Slapd, tmp_path: Path
) -> None:
    more = ("--set", "delivery.window=10", "--set", "delivery.batch=5")
    with NodeProcess(tmp_path / "data", "--topics", slapd.url, *END, *more) as node:
        away = True
        async with Consumer(lambda number: 500 if away else 202) as consumer:
            await call(node.url, subscribe(consumer.url, "ALL:ALARM:FIRE"))
            for number in range(100):
                assert (await call(node.url, notify("ALL:ALARM:FIRE", f"<n>{number}</n>"))).status == 202
            await consumer.wait(lambda c: bool(c.requests))
            slapd.delete(FIRE)
            await eventually(lambda: refuses(node, "ALL:ALARM:FIRE"))
            assert await number_is(node, 1)
            away = False
            await eventually(lambda: number_is(node, 0))
            texts = list(dict.fromkeys(consumer.payloads()))
            assert texts[:100] == [str(number) for number in range(100)]
            assert len(farewells(consumer)) == 1


async def test_what_waits_on_a_removed_topic_survives_a_restart(slapd: Slapd, tmp_path: Path) -> None:
    away = True
    async with Consumer(lambda number: 500 if away else 202) as consumer:
        with NodeProcess(tmp_path / "data", "--topics", slapd.url, *RETRY) as node:
            await call(node.url, subscribe(consumer.url, "ALL:ALARM:FIRE"))
            for number in range(20):
                await call(node.url, notify("ALL:ALARM:FIRE", f"<n>{number}</n>"))
            slapd.delete(FIRE)
            await eventually(lambda: refuses(node, "ALL:ALARM:FIRE"))
            node.kill()
            node.start()
            away = False
            await consumer.wait(lambda c: "19" in c.payloads())
            assert await number_is(node, 1)


async def test_a_subscription_that_lost_its_topic_while_the_node_was_down_ends_at_its_start(
    slapd: Slapd, tmp_path: Path
) -> None:
    async with Consumer() as consumer:
        with NodeProcess(tmp_path / "data", "--topics", slapd.url, *END) as node:
            await call(node.url, subscribe(consumer.url, "ALL:ALARM:FIRE"))
            node.terminate()
            slapd.delete(FIRE)
            node.start()
            await eventually(lambda: number_is(node, 0))
            assert farewells(consumer)


async def test_no_subscription_ends_since_the_directory_is_away(slapd: Slapd, tmp_path: Path) -> None:
    async with Consumer() as consumer:
        with NodeProcess(tmp_path / "data", "--topics", slapd.url, *END) as node:
            await call(node.url, subscribe(consumer.url, "ALL:ALARM:FIRE"))
            node.terminate()
            slapd.kill()
            (tmp_path / "data" / "topics.json").unlink()
            node.start()
            assert await refuses(node, "ALL:ALARM:FIRE")
            slapd.start()

            async def takes() -> bool:
                return not await refuses(node, "ALL:ALARM:FIRE")

            await eventually(takes)
            await consumer.wait(lambda c: c.payloads() == ["x"])
            assert await number_is(node, 1)


async def test_a_consumer_that_cannot_be_told_does_not_hold_up_the_end(slapd: Slapd, tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", "--topics", slapd.url, *END) as node:
        await call(node.url, subscribe("http://127.0.0.1:1/dead", "ALL:ALARM:FIRE"))
        slapd.delete(FIRE)
        await eventually(lambda: number_is(node, 0))
        assert "the consumer was not notified" in node.log()


async def test_a_pull_point_keeps_what_its_subscription_brought_and_the_subscription_ends(
    slapd: Slapd, tmp_path: Path
) -> None:
    with NodeProcess(tmp_path / "data", "--topics", slapd.url, *END) as node:
        made = await call(node.url, "<w:CreatePullPoint/>")
        address = made.text("w:PullPoint/a:Address")
        await call(node.url, subscribe(address, "ALL:ALARM:FIRE"))
        await call(node.url, notify("ALL:ALARM:FIRE", "<n>kept</n>"))
        slapd.delete(FIRE)
        await eventually(lambda: number_is(node, 0))
        assert b"kept" in (await call(address, "<w:GetMessages/>")).body


async def test_a_topic_that_moves_within_the_subscription_ends_nothing(slapd: Slapd, tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", "--topics", slapd.url, *END) as node:
        async with Consumer() as consumer:
            await call(node.url, subscribe(consumer.url, "*//FIRE", dialect=FULL))
            slapd.rename(FIRE, "cn=FIRE", f"cn=STATE,cn=ALL,{BASE}")
            await eventually(lambda: refuses(node, "ALL:ALARM:FIRE"))
            await call(node.url, notify("ALL:STATE:FIRE", "<n>moved</n>"))
            # What was sent to see whether the old place is gone may have come through before it was.
            await consumer.wait(lambda c: c.payloads()[-1:] == ["moved"])
            assert await number_is(node, 1)


@pytest.mark.parametrize("policy", ["keep", "end"])
async def test_a_topic_file_is_followed_with_the_same_policies(policy: str, tmp_path: Path) -> None:
    file = tmp_path / "topics.toml"
    file.write_text("[topics.A]\n[topics.B]\n")
    setting = ("--set", f"topics.on_remove={policy}")
    with NodeProcess(tmp_path / "data", "--topics", str(file), *setting) as node:
        async with Consumer() as consumer:
            await call(node.url, subscribe(consumer.url, "A"))
            file.write_text("[topics.B]\n[topics.C]\n")
            await eventually(lambda: refuses(node, "A"))
            assert not await refuses(node, "C")
            if policy == "end":
                await eventually(lambda: number_is(node, 0))
                return
            file.write_text("[topics.A]\n")

            async def takes() -> bool:
                return (await call(node.url, notify("A", "<n>back</n>"))).status == 202

            await eventually(takes)
            await consumer.wait(lambda c: "back" in c.payloads())


async def test_an_added_entry_counts_from_the_first_request_after_it(slapd: Slapd, tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", "--topics", slapd.url) as node:
        slapd.add(topic("NEW"))

        async def subscribes() -> bool:
            return (await call(node.url, subscribe("http://127.0.0.1:1/x", "NEW"))).status == 200

        await eventually(subscribes)
        assert await number_is(node, 1)


async def test_what_waits_for_an_activemq_that_is_away_is_delivered_before_the_end(
    slapd: Slapd, own_activemq: ActiveMQ, tmp_path: Path
) -> None:
    with BackedNode(tmp_path / "data", own_activemq.url, "--topics", slapd.url, *END) as node:
        async with Consumer() as consumer:
            await call(node.url, subscribe(consumer.url, "ALL:ALARM:FIRE"))
            for number in range(5):
                assert (await call(node.url, notify("ALL:ALARM:FIRE", f"<n>{number}</n>"))).status == 202
            slapd.delete(FIRE)
            await eventually(lambda: refuses(node, "ALL:ALARM:FIRE"))
            own_activemq.start()
            await eventually(lambda: number_is(node, 0))
            assert consumer.payloads()[:5] == [str(number) for number in range(5)]
            assert len(farewells(consumer)) == 1
