"""`listen` makes subscriptions with a lifetime and renews them: a killed one leaves nothing for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from hpwsn_client import EndpointReference
from hpwsn_client.wsn.operations.messages import (
    CreatePullPoint,
    CreatePullPointResponse,
    DestroyPullPoint,
    DestroyPullPointResponse,
    GetMessages,
    GetMessagesResponse,
    Renew,
    RenewResponse,
    Subscribe,
    SubscribeResponse,
    Unsubscribe,
    UnsubscribeResponse,
)
from hpwsn_client.wsn.soap.faults import ResourceUnknownFault, UnacceptableInitialTerminationTimeFault
from tests.harness import NodeProcess
from tests.patience import PATIENCE, eventually
from tests.system.scripted_broker import ScriptedBroker
from tests.system.test_client_cli import listening, run, start


def ahead(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


@pytest.fixture
async def broker() -> AsyncIterator[ScriptedBroker]:
    async with ScriptedBroker() as scripted:
        subscription = EndpointReference(f"{scripted.base}/s/1")
        scripted.script = {
            Subscribe: lambda asked: SubscribeResponse(
                subscription, datetime.now(UTC), asked.termination and ahead(asked.termination.seconds)
            ),
            Renew: lambda asked: RenewResponse(ahead(asked.termination.seconds)),
            Unsubscribe: UnsubscribeResponse(),
            CreatePullPoint: CreatePullPointResponse(EndpointReference(f"{scripted.base}/p/1")),
            GetMessages: GetMessagesResponse(()),
            DestroyPullPoint: DestroyPullPointResponse(),
        }
        yield scripted


def asked(broker: ScriptedBroker, kind: type) -> list[Any]:
    return [each.message for each in broker.asked if isinstance(each.message, kind)]


async def renewed(broker: ScriptedBroker, times: int) -> None:
    async def often_enough() -> bool:
        return len(asked(broker, Renew)) >= times

    await eventually(often_enough)


@pytest.mark.parametrize("way", [[], ["--pull"]])
async def test_the_subscription_has_a_lifetime_and_is_renewed(broker: ScriptedBroker, way: list[str]) -> None:
    process = await listening("A", "--lease", "0.6", *way, url=broker.url)
    await renewed(broker, 3)
    process.terminate()
    assert await process.communicate() == (b"", b"")
    assert process.returncode == 0
    (subscribe,) = asked(broker, Subscribe)
    assert subscribe.termination.seconds == 0.6
    assert {renew.termination.seconds for renew in asked(broker, Renew)} == {0.6}
    assert len(asked(broker, Unsubscribe)) == 1
    assert [point.lifetime.seconds for point in asked(broker, CreatePullPoint)] == ([0.6] if way else [])


async def test_a_lifetime_of_five_minutes_is_the_default(broker: ScriptedBroker) -> None:
    process = await listening("A", url=broker.url)
    process.terminate()
    await process.communicate()
    (subscribe,) = asked(broker, Subscribe)
    assert subscribe.termination.seconds == 300


async def test_a_broker_that_grants_less_is_asked_more_often(broker: ScriptedBroker) -> None:
    granted = EndpointReference(f"{broker.base}/s/1")
    broker.script[Subscribe] = lambda asked: SubscribeResponse(granted, datetime.now(UTC), ahead(0.5))
    broker.script[Renew] = lambda asked: RenewResponse(ahead(0.5))
    process = await listening("A", url=broker.url)
    await renewed(broker, 3)
    process.terminate()
    await process.communicate()
    assert {renew.termination.seconds for renew in asked(broker, Renew)} == {300}


async def test_a_broker_that_grants_no_end_is_not_asked_again(broker: ScriptedBroker) -> None:
    granted = EndpointReference(f"{broker.base}/s/1")
    broker.script[Subscribe] = SubscribeResponse(granted, datetime.now(UTC), None)
    process = await listening("A", "--lease", "0.05", "--pull", url=broker.url)

    async def polled() -> bool:
        return len(asked(broker, GetMessages)) > 6

    await eventually(polled)
    process.terminate()
    await process.communicate()
    assert asked(broker, Renew) == []


async def test_a_broker_that_refuses_lifetimes_gets_a_subscription_without_one(
    broker: ScriptedBroker,
) -> None:
    make = broker.script[Subscribe]
    refusal = UnacceptableInitialTerminationTimeFault("no lifetimes here")
    broker.script[Subscribe] = lambda asked: refusal if asked.termination else make(asked)
    process = await start("listen", "A", url=broker.url)
    warning = await process.stderr.readline()
    assert warning.startswith(b"hpwsn: warning: no lifetimes here; the subscription has no end")
    assert (await process.stderr.readline()).startswith(b"listening")
    process.terminate()
    await process.communicate()
    assert [bool(each.termination) for each in asked(broker, Subscribe)] == [True, False]


async def test_a_subscription_that_has_ended_at_the_broker_is_made_again(broker: ScriptedBroker) -> None:
    renewals = iter([ResourceUnknownFault("it has ended")])
    answer = broker.script[Renew]
    broker.script[Renew] = lambda asked: next(renewals, None) or answer(asked)
    process = await listening("A", "--lease", "0.3", url=broker.url)
    warning = await asyncio.wait_for(process.stderr.readline(), PATIENCE)
    assert warning == b"hpwsn: warning: the subscription had ended at the broker, and was made again\n"
    await renewed(broker, 2)
    process.terminate()
    await process.communicate()
    first, second = asked(broker, Subscribe)
    assert first.consumer == second.consumer


async def get(node: NodeProcess, path: str) -> Any:
    async with aiohttp.ClientSession() as session, session.get(f"{node.base}{path}") as response:
        return await response.json()


@pytest.mark.parametrize("way", [[], ["--pull"]])
async def test_a_killed_listener_leaves_nothing_at_the_node(tmp_path: Path, way: list[str]) -> None:
    with NodeProcess(tmp_path / "data", "--set", "subscriptions.grace=0") as node:
        process = await listening("A", "--lease", "1", *way, url=node.url)
        status = await get(node, "/status")
        assert (status["subscriptions"], status["pull_points"]) == (1, len(way))
        process.kill()
        await process.wait()

        async def nothing() -> bool:
            status = await get(node, "/status")
            return (status["subscriptions"], status["pull_points"]) == (0, 0)

        await eventually(nothing)


async def test_a_node_that_caps_lifetimes_gets_shorter_ones(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", "--set", "subscriptions.max_lifetime=60") as node:
        process = await listening("A", "--count", "1", url=node.url)
        assert await run("publish", "A", '{"speed": 61.5}', url=node.url) == (0, "", "")
        out, err = await process.communicate()
        assert (out, err, process.returncode) == (b'A\t{"speed": 61.5}\n', b"", 0)
        (event,) = await get(node, "/topics/A/events")
        assert event["data"] == {"speed": 61.5}
