"""Virtual sensors over restarts: no result is lost or comes twice, and only what is used runs.

The promise: the last window, and each of the last ten minutes since the last result, has one result in the
log, made of all readings that were accepted in time; also if the node was killed, and for windows that ended
while it was down. This needs the history.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hpwsn.sensors.readings.reading_times import parse_time
from tests.patience import holds, until
from tests.raw_soap import call
from tests.sensor_node import SensorNode, ago, sensor
from tests.virtual_users import PullPoint, ahead, by_stream, define, ready, state, state_is

EVERY = 0.5


@pytest.fixture
def node(tmp_path: Path) -> Iterator[SensorNode]:
    with SensorNode(tmp_path / "data", sensors={"linger": "0.2 s"}) as running:
        running.register(sensor("s1"), sensor("s2"))
        yield running


def by_window(events: list[dict[str, Any]]) -> dict[int, list[float]]:
    """The temperatures of readings by the end of their window."""
    found = defaultdict(list)
    every = round(EVERY * 1000)
    for event in events:
        time = parse_time(event["time"])
        assert time is not None
        found[(time // every + 1) * every].append(event["t"])
    return found


def check_results(node: SensorNode, name: str) -> list[int]:
    """Each closed window has one result of all its readings; the ends of the windows."""
    results = node.events(f"virtual:{name}")
    ends = [parse_time(event["time"]) or 0 for event in results]
    assert ends == sorted(set(ends))
    windows = by_window(node.events("sensors:weather"))
    expected = {end: (math.fsum(values), len(values)) for end, values in windows.items() if end <= ends[-1]}
    found = {
        end: (event["value"], event["count"])
        for end, event in zip(ends, results, strict=True)
        if event["count"]
    }
    # All values are multiples of 0.25, whose sums are exact.
    assert found == expected
    return ends


def send(node: SensorNode, number: int) -> None:
    found = node.post({"sensor": "s1", "time": ago(), "t": number % 50}, {"sensor": "s2", "t": 0.25})
    assert (found.status, found.body["accepted"]) == (202, 2), found


@pytest.mark.parametrize("end", [SensorNode.kill, SensorNode.terminate])
async def test_no_result_is_lost_or_doubled_whenever_the_node_ends(
    end: Callable[[SensorNode], int], node: SensorNode
) -> None:
    define(node, "sums", every=EVERY, lateness=2, combine="sum")
    point = await PullPoint.on(node, "virtual:sums")
    await ready(node, "sums")
    number = 0
    for _ in range(4):
        seen = len(node.events("virtual:sums"))

        def some_more(seen: int = seen) -> bool:
            nonlocal number
            number += 1
            send(node, number)
            return len(node.events("virtual:sums")) >= seen + 3

        await holds(some_more)
        send(node, number)
        end(node)
        node.start()
        assert state(node, "sums") == "running"
    last = max(by_window(node.events("sensors:weather")))
    await holds(lambda: parse_time(node.events("virtual:sums")[-1]["time"]) == last)
    check_results(node, "sums")
    results = node.events("virtual:sums")
    while len(point.got) < len(results):
        await point.fetch()
    assert point.got == results


async def test_windows_that_ended_while_the_node_was_down_have_results(node: SensorNode) -> None:
    """Their readings came before, with times ahead."""
    define(node, "down", every=EVERY, lateness=0, combine="sum")
    await PullPoint.on(node, "virtual:down")
    await ready(node, "down")
    values = [float(number) for number in range(1, 7)]
    readings = ahead(values, every=EVERY, first=2 * EVERY)
    assert node.post(*readings).status == 202
    last = max(by_window(readings))
    node.kill()
    until(lambda: (parse_time(ago()) or 0) > last)
    node.start()
    await holds(lambda: len(node.events("virtual:down")) >= len(values))
    assert [event["value"] for event in node.events("virtual:down")] == values
    check_results(node, "down")


async def test_states_go_on_over_a_restart(node: SensorNode) -> None:
    bands = [{"name": "warm", "low": 24}]
    define(node, "states", bands=bands, hysteresis=2)
    await PullPoint.on(node, "virtual:states")
    await ready(node, "states")
    for value in (25, 23, 21):
        assert node.post(*ahead([value])).status == 202
        await holds(lambda value=value: [e["value"] for e in node.events("virtual:states")][-1:] == [value])  # type: ignore[misc]
        node.kill()
        node.start()
        await ready(node, "states")
    found = [(event["states"], event["changed"]) for event in node.events("virtual:states")]
    assert found == [(["warm"], True), (["warm"], False), ([], True)]


async def test_after_a_restart_without_a_user_nothing_runs_and_nothing_is_made_up(node: SensorNode) -> None:
    define(node, "unused", every=EVERY, silence="null")
    define(node, "used", every=EVERY, silence="null")
    gone = await PullPoint.on(node, "virtual:unused")
    await PullPoint.on(node, "virtual:used")
    await ready(node, "unused")
    await holds(lambda: len(node.events("virtual:unused")) >= 2)
    assert (await call(gone.subscription, "<w:Unsubscribe/>")).status == 200
    await state_is(node, "unused", "idle")
    before = node.events("virtual:unused")
    node.kill()
    node.start()
    assert (state(node, "unused"), state(node, "used")) == ("idle", "running")
    seen = len(node.events("virtual:used"))
    await holds(lambda: len(node.events("virtual:used")) >= seen + 3)
    assert node.events("virtual:unused") == before
    # One that was idle begins with the window of its new user: the time between has no results.
    await PullPoint.on(node, "virtual:unused")
    asked = parse_time(ago()) or 0
    await holds(lambda: len(node.events("virtual:unused")) > len(before))
    first = parse_time(node.events("virtual:unused")[len(before)]["time"]) or 0
    assert first > asked - 2 * 1000 * EVERY - 1000


async def test_a_stream_that_ends_with_the_node_is_no_user_after_its_restart(node: SensorNode) -> None:
    define(node, "streamed")
    async with by_stream(node, "virtual:streamed"):
        await state_is(node, "streamed", "running")
        node.kill()
    node.start()
    assert state(node, "streamed") == "idle"
