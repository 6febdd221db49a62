"""The wall clock jumps, back and forth, in a running node and between two starts: lifetimes follow it, while
deliveries, retries and message ids do not mind, and nothing is lost."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path

import aiohttp
import pytest

from tests.cluster import AdminProcess, Member
from tests.faults.load import ROOT_TOPIC, Inbox, Key, Publisher, PullReader, judge, notify_keys, stored
from tests.faults.wall_clock import DAY, HOUR, MINUTE, WallClock
from tests.harness import NodeProcess
from tests.patience import eventually
from tests.raw_soap import call, send, subscribe

SETTINGS = ("--set", "delivery.retry_first=0.005", "--set", "delivery.retry_max=0.02")
NO_GRACE = (*SETTINGS, "--set", "subscriptions.grace=0")


@pytest.fixture
def clock(tmp_path: Path) -> Iterator[WallClock]:
    """A clock of the test's own."""
    with closing(WallClock(tmp_path)) as own:
        yield own


async def publish(node: NodeProcess, *numbers: int, message_id: str | None = None) -> list[Key]:
    """Publish these in one Notify."""
    keys = [Key(0, 0, number) for number in numbers]
    assert (await send(node.url, notify_keys(keys, message_id))).status == 202
    return keys


async def status(node: NodeProcess) -> dict[str, object]:
    """What /status says."""
    answer: dict[str, object] = json.loads((await send(f"{node.base}/status", b"", method="GET")).body)
    return answer


async def subscribe_for(node: NodeProcess, inbox: Inbox, lifetime: str) -> str:
    """Subscribe with a lifetime; the subscription's address."""
    wanted = f"<w:InitialTerminationTime>{lifetime}</w:InitialTerminationTime>"
    reply = await call(node.url, subscribe(inbox.url, ROOT_TOPIC, more=wanted))
    return reply.text("w:SubscriptionReference/a:Address")


async def gone(reference: str) -> bool:
    """Whether a subscription has ended."""
    return (await call(reference, "<w:PauseSubscription/>")).status != 200


async def test_the_clock_of_the_node_is_the_one_that_the_tests_set(tmp_path: Path, clock: WallClock) -> None:
    with clock.node(tmp_path / "data") as node:
        started = datetime.fromisoformat(str((await status(node))["started"]))
        clock.set(30 * DAY)
        uptime = (await status(node))["uptime"]
        assert isinstance(uptime, float)
        assert 30 * DAY <= uptime < 31 * DAY
        assert started.tzinfo is not None


@pytest.mark.parametrize("jump", [2 * DAY, -2 * DAY], ids=["forwards", "backwards"])
async def test_retries_go_on_after_a_jump_and_nothing_is_given_up(
    tmp_path: Path, clock: WallClock, jump: int
) -> None:
    """The time for which a delivery is retried is time that has passed, not what a clock was set to."""
    with clock.node(tmp_path / "data", *SETTINGS) as node:
        async with Inbox(lambda number: 503) as inbox, Inbox() as healthy:
            await inbox.subscribe(node.url)
            await healthy.subscribe(node.url)
            keys = await publish(node, 1, 2, 3)
            await inbox.wait(lambda i: len(i.requests) >= 2)
            clock.set(jump)
            tries = len(inbox.requests)
            await inbox.wait(lambda i: len(i.requests) >= tries + 3)
            keys += await publish(node, 4, 5)
            inbox.answer = lambda number: 202
            await inbox.wait_for(keys)
            await healthy.wait_for(keys)
            assert judge("inbox", keys, inbox.keys()).good
            assert healthy.keys() == keys
            delivery = (await status(node))["delivery"]
            assert isinstance(delivery, dict)
            assert delivery["buried"] == 0


async def test_a_lifetime_ends_soon_after_the_clock_was_set_past_it(tmp_path: Path, clock: WallClock) -> None:
    with clock.node(tmp_path / "data", *NO_GRACE) as node:
        async with Inbox() as short, Inbox() as endless:
            reference = await subscribe_for(node, short, "PT1H")
            await endless.subscribe(node.url)
            keys = await publish(node, 1)
            await short.wait_for(keys)
            clock.set(HOUR + MINUTE)

            async def ended() -> bool:
                listed = json.loads((await send(f"{node.base}/subscriptions", b"", method="GET")).body)
                return len(listed["items"]) == 1

            await eventually(ended)
            assert await gone(reference)
            keys += await publish(node, 2)
            await endless.wait_for(keys)
            assert len(short.keys()) == 1


async def test_a_lifetime_lasts_until_the_clock_says_so_after_it_was_set_back(
    tmp_path: Path, clock: WallClock
) -> None:
    node = clock.node(tmp_path / "data", *NO_GRACE).start()
    async with Inbox() as inbox:
        with closing(node):
            reference = await subscribe_for(node, inbox, "PT10M")
            clock.set(-HOUR)
            await inbox.wait_for(await publish(node, 1))
            await asyncio.to_thread(node.terminate)
            clock.set(-HOUR + 20 * MINUTE)
            await asyncio.to_thread(node.start)
            await inbox.wait_for(await publish(node, 2))
            await asyncio.to_thread(node.terminate)
            clock.set(11 * MINUTE)
            await asyncio.to_thread(node.start)

            async def ended() -> bool:
                return await gone(reference)

            await eventually(ended)
            await publish(node, 3)
            assert inbox.keys() == [Key(0, 0, 1), Key(0, 0, 2)]


async def test_a_message_id_is_known_whichever_way_the_clock_was_set(
    tmp_path: Path, clock: WallClock
) -> None:
    node = clock.node(tmp_path / "data").start()
    with closing(node):
        for jump in (0, -HOUR, -2 * HOUR, -HOUR, 5 * MINUTE):
            clock.set(jump)
            await publish(node, 1, message_id="once")
        for jump in (-HOUR, 0, 5 * MINUTE):
            await asyncio.to_thread(node.kill)
            clock.set(jump)
            await asyncio.to_thread(node.start)
            await publish(node, 1, message_id="once")
        await publish(node, 2, message_id="another")
        await asyncio.to_thread(node.terminate)
    assert stored(node.data) == {Key(0, 0, 1): 1, Key(0, 0, 2): 1}


async def test_a_message_id_that_came_while_the_clock_was_ahead_is_known_when_it_is_right_again(
    tmp_path: Path, clock: WallClock
) -> None:
    node = clock.node(tmp_path / "data").start()
    with closing(node):
        clock.set(HOUR)
        await publish(node, 1, message_id="early")
        clock.set(0)
        await publish(node, 2, message_id="right")
        await publish(node, 1, message_id="early")
        await asyncio.to_thread(node.kill)
        await asyncio.to_thread(node.start)
        await publish(node, 1, message_id="early")
        await publish(node, 2, message_id="right")
        await asyncio.to_thread(node.terminate)
    assert stored(node.data) == {Key(0, 0, 1): 1, Key(0, 0, 2): 1}


@pytest.mark.parametrize("jumps", [(3 * DAY, 0), (-3 * DAY, 0)], ids=["forwards", "backwards"])
async def test_the_order_is_that_of_acceptance_when_the_clock_jumped_between_two_starts(
    tmp_path: Path, clock: WallClock, jumps: tuple[int, ...]
) -> None:
    node = clock.node(tmp_path / "data", *SETTINGS).start()
    async with Inbox(lambda number: 503) as inbox:
        with closing(node):
            await inbox.subscribe(node.url)
            keys = await publish(node, 1, 2)
            for jump in jumps:
                await asyncio.to_thread(node.kill)
                clock.set(jump)
                await asyncio.to_thread(node.start)
                keys += await publish(node, len(keys) + 1, len(keys) + 2)
            inbox.answer = lambda number: 202
            await inbox.wait_for(keys)
            assert judge("inbox", keys, inbox.keys()).good


async def test_a_load_under_a_clock_that_jumps_about_loses_nothing(tmp_path: Path, clock: WallClock) -> None:
    chance = random.Random(7)
    with clock.node(tmp_path / "data", *SETTINGS) as node:
        publishers = [Publisher(number, node.url) for number in range(3)]
        pull = PullReader()
        await pull.create(node.url)
        async with Inbox() as inbox, Inbox(lambda number: 503 if number % 3 else 202) as moody:
            await inbox.subscribe(node.url)
            await moody.subscribe(node.url)
            async with aiohttp.ClientSession() as session:
                for _ in range(30):
                    clock.set(chance.choice((0, 1, -1, MINUTE, -MINUTE, HOUR, -HOUR, 2 * DAY, -2 * DAY)))
                    for publisher in publishers:
                        assert await publisher.publish(session) == 202
            accepted = [key for publisher in publishers for key in publisher.accepted]
            await inbox.wait_for(accepted)
            await moody.wait_for(accepted)

            async def emptied() -> bool:
                return not await pull.fetch() and set(accepted) <= set(pull.keys)

            await eventually(emptied)
            verdicts = [
                judge("push", accepted, inbox.keys()),
                judge("moody", accepted, moody.keys()),
                judge("pull", accepted, pull.keys),
            ]
            assert all(verdict.good for verdict in verdicts), verdicts
        assert "Traceback" not in node.log()


async def test_what_expired_while_the_node_was_away_is_not_sent_and_what_came_by_a_clock_ahead_is(
    tmp_path: Path, clock: WallClock
) -> None:
    policy = '<hp:Delivery xmlns:hp="urn:hpwsn:1" expires="PT1H"/>'
    wanted = f"<w:SubscriptionPolicy>{policy}</w:SubscriptionPolicy>"
    node = clock.node(tmp_path / "data", *SETTINGS).start()
    async with Inbox() as inbox:
        with closing(node):
            asked = subscribe(inbox.url, ROOT_TOPIC, more=wanted)
            reference = (await call(node.url, asked)).text("w:SubscriptionReference/a:Address")
            assert (await call(reference, "<w:PauseSubscription/>")).status == 200
            await publish(node, 1, 2)
            clock.set(30 * MINUTE)
            kept = await publish(node, 3)
            clock.set(DAY)
            kept += await publish(node, 4)
            await asyncio.to_thread(node.kill)
            clock.set(HOUR + MINUTE)
            await asyncio.to_thread(node.start)
            assert (await call(reference, "<w:ResumeSubscription/>")).status == 200
            await inbox.wait_for(kept)
            assert inbox.keys() == kept
            delivery = (await status(node))["delivery"]
            assert isinstance(delivery, dict)
            assert (delivery["expired"], delivery["buried"]) == (2, 0)


def test_a_node_whose_clock_is_behind_joins_an_admin_node_that_has_just_started(
    tmp_path: Path, clock: WallClock
) -> None:
    clock.set(-4 * MINUTE)
    with AdminProcess(tmp_path / "admin") as admin:
        node = Member(tmp_path / "node", "slow", "one", admin.base)
        node.prefix = clock.node(tmp_path).prefix
        with node:
            assert admin.states() == {"slow": "alive"}
            assert "s behind that of the admin node" in node.log()
            assert node.status()["cluster"]["registered"] == 1
