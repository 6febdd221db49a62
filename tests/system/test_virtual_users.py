"""Virtual sensors run while somebody uses their topic by any door, and no longer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.consumer import Consumer
from tests.patience import holds
from tests.raw_soap import CONCRETE, FULL, SIMPLE, call
from tests.sensor_node import SensorNode, sensor
from tests.virtual_users import (
    USERS,
    ahead,
    by_soap,
    by_stream,
    by_webhook,
    define,
    has,
    ready,
    state,
    state_is,
    subscribed,
)

LINGER = 0.3


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SensorNode]:
    """A node whose virtual sensors are released soon."""
    with SensorNode(tmp_path_factory.mktemp("users") / "data", sensors={"linger": f"{LINGER} s"}) as running:
        running.register(sensor("s1"), sensor("s2"), sensor("q1", "quake"))
        yield running


@pytest.mark.parametrize("kind", USERS)
async def test_a_user_by_any_door_has_it_run_and_gets_its_results(kind: str, node: SensorNode) -> None:
    name = kind.replace(" ", "-")
    assert define(node, name, kind="weather")["state"] == "idle"
    async with USERS[kind](node, f"virtual:{name}") as got:
        await state_is(node, name, "running")
        await ready(node, name)
        readings = ahead([20, 21.5, 19])
        assert node.post(*readings).status == 202
        events = await has(got, 3)
        assert state(node, name) == "running"
    await state_is(node, name, "idle")
    assert [(event["value"], event["count"], event["sensors"]) for event in events] == [
        (20, 1, 1),
        (21.5, 1, 1),
        (19, 1, 1),
    ]
    assert events == node.events(f"virtual:{name}")
    assert events[0] | {"time": ""} == {
        "sensor": name,
        "time": "",
        "quantity": "t",
        "unit": "degC",
        "value": 20,
        "count": 1,
        "sensors": 1,
        "states": [],
        "changed": True,
        "text": f"{name}: 20 degC",
    }


async def test_nothing_is_published_while_nobody_uses_it(node: SensorNode) -> None:
    define(node, "unused")
    define(node, "used")
    async with by_stream(node, "virtual:used") as got:
        await ready(node, "used")
        assert node.post(*ahead([1, 2, 3])).status == 202
        await has(got, 3)
    assert node.events("virtual:unused") == []
    assert state(node, "unused") == "idle"


async def test_two_users_share_one_and_the_last_releases_it_after_the_linger(node: SensorNode) -> None:
    define(node, "shared")
    async with by_webhook(node, "virtual:shared") as first:
        await ready(node, "shared")
        async with by_stream(node, "virtual:shared") as second:
            assert node.post(*ahead([1, 2])).status == 202
            await has(first, 2)
            await has(second, 2)
            assert node.figures["running"] == 1
        left = time.monotonic()
        await holds(lambda: time.monotonic() > left + 2 * LINGER)
        assert state(node, "shared") == "running"
        assert node.post(*ahead([3])).status == 202
        await has(first, 3)
    left = time.monotonic()
    assert state(node, "shared") == "running"
    await state_is(node, "shared", "idle")
    assert time.monotonic() - left >= LINGER / 2
    values = [1, 2, 3]
    assert [event["value"] for event in first()] == values
    assert [event["value"] for event in second()] == values[:2]
    assert [event["value"] for event in node.events("virtual:shared")] == values


@pytest.mark.parametrize(
    ("expression", "dialect", "runs"),
    [
        ("virtual", SIMPLE, True),
        ("virtual:tower", CONCRETE, True),
        ("virtual/*", FULL, True),
        ("virtual//.", FULL, True),
        ("sensors//.|virtual/tower", FULL, True),
        ("*/tower", FULL, True),
        ("virtual/tow", FULL, False),
        ("sensors", SIMPLE, False),
        ("sensors//.", FULL, False),
        ("*/*/*", FULL, False),
    ],
)
async def test_an_expression_uses_what_it_selects(
    expression: str, dialect: str, runs: bool, node: SensorNode
) -> None:
    define(node, "tower")
    define(node, "control")
    async with by_soap(node, "virtual:control"):
        await state_is(node, "control", "running")
        async with by_soap(node, expression, dialect=dialect):
            assert (state(node, "tower") == "running") is runs
        await state_is(node, "tower", "idle")


async def test_a_subscription_without_a_topic_filter_uses_none(node: SensorNode) -> None:
    define(node, "quiet")
    async with Consumer() as consumer:
        address = await subscribed(node, consumer.url, None)
        assert state(node, "quiet") == "idle"
        assert (await call(address, "<w:Unsubscribe/>")).status == 200


async def test_a_paused_or_expired_subscription_uses_none(node: SensorNode) -> None:
    define(node, "paused")
    async with Consumer() as consumer:
        address = await subscribed(node, consumer.url, "virtual:paused")
        await state_is(node, "paused", "running")
        assert (await call(address, "<w:PauseSubscription/>")).status == 200
        await state_is(node, "paused", "idle")
        assert (await call(address, "<w:ResumeSubscription/>")).status == 200
        await state_is(node, "paused", "running")
        soon = "<w:Renew><w:TerminationTime>PT1S</w:TerminationTime></w:Renew>"
        assert (await call(address, soon)).status == 200
        await state_is(node, "paused", "idle")


async def test_a_subscription_made_before_the_definition_uses_it_from_the_first_moment(
    node: SensorNode,
) -> None:
    async with by_soap(node, "virtual:later") as got:
        assert define(node, "later")["state"] == "running"
        await ready(node, "later")
        assert node.post(*ahead([5])).status == 202
        assert (await has(got, 1))[0]["value"] == 5


async def test_the_list_and_the_status_tell_what_runs(node: SensorNode) -> None:
    define(node, "one")
    define(node, "two")
    async with by_stream(node, "virtual:two"):
        await state_is(node, "two", "running")
        await holds(lambda: node.figures["running"] == 1)
        found = node.get("/virtual", state="running")
        assert [each["name"] for each in found["items"]] == ["two"]
        listed = {each["name"]: each["state"] for each in node.get("/virtual", limit=1000)["items"]}
        assert (listed["one"], listed["two"]) == ("idle", "running")
        assert node.figures["virtual"] == len(listed)


async def test_a_user_in_the_middle_of_a_window_gets_a_result_of_all_its_readings(
    tmp_path: Path, node: SensorNode
) -> None:
    define(node, "whole", every=3, combine="sum", tags=["whole"])
    node.register(sensor("w1", tags=["whole"]))
    begin = (time.time() // 3 + 1) * 3
    await holds(lambda: time.time() > begin + 0.2)
    assert node.post({"t": 1}, {"t": 2}, sensor="w1").status == 202
    async with by_stream(node, "virtual:whole") as got:
        await ready(node, "whole")
        assert node.post({"t": 4}, sensor="w1").status == 202
        (event,) = (await has(got, 1))[:1]
    assert (event["value"], event["count"]) == (7, 3)
