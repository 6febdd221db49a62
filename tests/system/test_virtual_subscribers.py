"""General subscribers get changes, special ones all events; bands, ranges and discrete values hold for both.

Both engines decide alike: the default one, and CMA for the topics of sensors and virtual sensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.patience import holds
from tests.sensor_node import SensorNode, sensor
from tests.virtual_users import USERS, ahead, by_soap, by_stream, by_webhook, define, has, ready

VALUES = [20, 21, 29, 31, 29.5, 27, 5, -3, -3.5, 40, 22, 22]
BANDS = [
    {"name": "normal", "low": 10, "high": 30},
    {"name": "unusual", "high": 10},
    {"name": "unusual", "low": 30},
    {"name": "frost", "high": 0},
    {"name": "exactly 22", "low": 22, "high": 22},
]
RANGES: dict[str, Callable[[dict[str, Any]], bool]] = {
    "": lambda event: True,
    "changed = true": lambda event: bool(event["changed"]),
    "value >= 10 and value <= 30": lambda event: bool(10 <= event["value"] <= 30),
    "value < 10 or value > 30": lambda event: bool(event["value"] < 10 or event["value"] > 30),
    "value >= 20 and value <= 25 or value >= 28 and value <= 32 or value < -3": lambda event: bool(
        20 <= event["value"] <= 25 or 28 <= event["value"] <= 32 or event["value"] < -3
    ),
    "value >= 10 and value <= 25 or value >= 20 and value <= 30": lambda event: bool(
        10 <= event["value"] <= 30
    ),
    "value = 22 or value = 40": lambda event: event["value"] in (22, 40),
    "states = 'frost'": lambda event: "frost" in event["states"],
    "changed = true and value > 30": lambda event: bool(event["changed"] and event["value"] > 30),
}
READINGS = {
    "t >= 10 and t <= 30": lambda value: 10 <= value <= 30,
    "t < 10 or t > 30": lambda value: value < 10 or value > 30,
    "t = 22 or t = 40": lambda value: value in (22, 40),
}
ENGINES = {
    "default": (),
    "cma": ("--set", "matching.topics=virtual=cma,sensors=cma"),
}


@pytest.fixture(scope="module", params=ENGINES)
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SensorNode]:
    """A node with an engine for the topics of sensors and virtual sensors."""
    folder = tmp_path_factory.mktemp(f"subscribers-{request.param}")
    with SensorNode(folder / "data", *ENGINES[request.param]) as running:
        running.register(sensor("s1"))
        topics = dict.fromkeys(("virtual", "sensors"), "cma") if ENGINES[request.param] else {}
        assert running.get("/status")["matching"]["topics"] == topics
        yield running


@pytest.mark.parametrize("kind", USERS)
async def test_each_subscriber_gets_the_results_that_its_filter_means(kind: str, node: SensorNode) -> None:
    name = f"filtered-{kind.replace(' ', '-')}"
    define(node, name, bands=BANDS, hysteresis=2)
    async with AsyncExitStack() as users:
        got = {
            wanted: await users.enter_async_context(USERS[kind](node, f"virtual:{name}", wanted))
            for wanted in RANGES
        }
        await ready(node, name)
        assert node.post(*ahead(VALUES)).status == 202
        events = await has(got[""], len(VALUES))
        for wanted, means in RANGES.items():
            expected = [event for event in events if means(event)]
            await holds(lambda wanted=wanted, expected=expected: got[wanted]() == expected)  # type: ignore[misc]
    assert [event["value"] for event in events] == VALUES
    assert [event["states"] for event in events] == [
        ["normal"],
        ["normal"],
        ["normal"],
        ["normal", "unusual"],
        ["normal", "unusual"],
        ["normal"],
        ["unusual"],
        ["unusual", "frost"],
        ["unusual", "frost"],
        ["unusual"],
        ["normal", "exactly 22"],
        ["normal", "exactly 22"],
    ]
    assert [event["value"] for event in got["changed = true"]()] == [20, 31, 27, 5, -3, 40, 22]


async def test_special_subscribers_get_the_readings_that_their_filter_means(node: SensorNode) -> None:
    async with AsyncExitStack() as users:
        got = {
            (kind, wanted): await users.enter_async_context(by(node, "sensors:weather", wanted))
            for kind, by in (("soap", by_soap), ("webhook", by_webhook), ("stream", by_stream))
            for wanted in READINGS
        }
        assert node.post(*ahead(VALUES, first=-600)).status == 202
        for (kind, wanted), events in got.items():
            expected = [value for value in VALUES if READINGS[wanted](value)]
            await has(events, len(expected))
            assert [event["t"] for event in events()] == expected, (kind, wanted)


async def test_a_silent_window_can_be_told_by_filter(node: SensorNode) -> None:
    define(node, "gaps", silence="null", bands=BANDS)
    async with (
        by_stream(node, "virtual:gaps") as all_,
        by_stream(node, "virtual:gaps", "count = 0") as silent,
    ):
        await ready(node, "gaps")
        assert node.post(*ahead([20])).status == 202
        await holds(lambda: any(event["value"] == 20 for event in all_()))
        await holds(lambda: all_()[-1]["value"] is None and len(silent()) >= 3)
    found = all_()
    at = [event["value"] for event in found].index(20)
    assert [event["changed"] for event in found[at - 1 : at + 2]] == [at == 1, True, True]
    assert (found[at]["states"], found[at + 1]["states"]) == (["normal"], [])
    assert found[at + 1]["text"] == "gaps: no value degC ()"
    assert {event["value"] for event in silent()} == {None}


async def test_hold_repeats_the_value_and_its_states_through_silence(node: SensorNode) -> None:
    define(node, "held", silence="hold", bands=BANDS)
    async with by_stream(node, "virtual:held") as got:
        await ready(node, "held")
        assert node.post(*ahead([35])).status == 202
        found = (await has(got, 3))[:3]
    assert [(event["value"], event["count"], event["states"], event["changed"]) for event in found] == [
        (35, 1, ["unusual"], True),
        (35, 0, ["unusual"], False),
        (35, 0, ["unusual"], False),
    ]
