"""Each combination equals a plain computation over the readings that a real node accepted in time.

Late, repeated and missing readings, other units and silent windows are among them. The seeds are fixed, and
which reading is late leaves seconds of room to the clock, so that a slow machine changes nothing.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hpwsn.sensors.readings.reading_times import parse_time
from tests.patience import holds
from tests.sensor_node import SensorNode, sensor
from tests.virtual_users import by_socket, define, ready, time_text

EVERY, LATENESS = 1, 10
SENSORS = tuple(f"s{number}" for number in range(6))
ROUNDS = 30


class Accepted(NamedTuple):
    """A reading that was accepted in time; the time is in milliseconds, the value in degC."""

    sensor: str
    time: int
    value: float


PLAIN: dict[str, Callable[[Sequence[Accepted]], float]] = {
    "mean": lambda found: statistics.fmean(each.value for each in found),
    "median": lambda found: statistics.median(each.value for each in found),
    "min": lambda found: min(each.value for each in found),
    "max": lambda found: max(each.value for each in found),
    "sum": lambda found: math.fsum(each.value for each in found),
    "count": len,
    "last": lambda found: max(found, key=lambda each: (each.time, each.sensor)).value,
}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[SensorNode]:
    with SensorNode(tmp_path / "data") as running:
        running.register(*map(sensor, SENSORS))
        yield running


def some_readings(chance: random.Random, now: float) -> list[tuple[dict[str, Any], Accepted | None]]:
    """Raw readings, each with what is to be in the result; None for what is late."""
    found: list[tuple[dict[str, Any], Accepted | None]] = []
    for name in SENSORS:
        if chance.random() < 0.3:
            continue  # it is missing
        late = chance.random() < 0.15
        at = round(1000 * (now - chance.uniform(0, 2.5) - (120 if late else 0)))
        value = chance.randrange(-160, 240) / 4
        raw: dict[str, Any] = {"sensor": name, "time": time_text(at / 1000), "t": value}
        if chance.random() < 0.3:
            raw["t"] = {"value": value + 273.15, "unit": "K"}
        found.append((raw, None if late else Accepted(name, at, value)))
        if chance.random() < 0.2:
            found.append((raw, None))  # it comes again
    return found


async def test_each_combination_is_the_plain_computation(node: SensorNode) -> None:
    for how in PLAIN:
        define(node, how, combine=how, every=EVERY, lateness=LATENESS)
    define(node, "quorum", combine="mean", every=EVERY, lateness=LATENESS, quorum=4, silence="null")
    chance = random.Random(20)
    accepted: dict[int, list[Accepted]] = defaultdict(list)
    seen: set[tuple[str, str]] = set()
    late = 0
    async with AsyncExitStack() as users:
        got = {
            name: await users.enter_async_context(by_socket(node, f"virtual:{name}"))
            for name in (*PLAIN, "quorum")
        }
        for name in got:
            await ready(node, name)
        begin = time.time()
        for number in range(ROUNDS):
            await holds(lambda due=begin + number / 10: time.time() >= due)  # type: ignore[misc]
            readings = some_readings(chance, time.time())
            chance.shuffle(readings)
            answer = node.post(*[raw for raw, _ in readings])
            duplicates = set()
            for index, (raw, _) in enumerate(readings):
                key = (raw["sensor"], raw["time"])
                if key in seen:
                    duplicates.add(index)
                seen.add(key)
            assert {(each["index"], each["reason"]) for each in answer.body["errors"]} == {
                (index, "duplicate") for index in duplicates
            }
            for index, (raw, _) in enumerate(readings):
                if index not in duplicates:
                    # Of two copies the first is taken, wherever the shuffle has put it.
                    wanted = next((each for again, each in readings if again is raw and each), None)
                    if wanted is None:
                        late += 1
                    else:
                        accepted[(wanted.time // 1000 // EVERY + 1) * EVERY].append(wanted)
        last = max(accepted)
        for name in PLAIN:
            await holds(lambda name=name: len(got[name]()) >= len(accepted))  # type: ignore[misc]
        await holds(lambda: ends(got["quorum"]())[-1] >= last)
        counted = {node.get(f"/virtual/{name}")["late"] for name in PLAIN}
    assert time.time() - begin > LATENESS
    assert counted == {late}
    assert late > 5
    for how, plain in PLAIN.items():
        events = got[how]()
        assert ends(events) == sorted(accepted), how
        for event, end in zip(events, sorted(accepted), strict=True):
            assert event["value"] == pytest.approx(plain(accepted[end]), abs=1e-9), (how, event)
            assert (event["count"], event["sensors"]) == (
                len(accepted[end]),
                len({each.sensor for each in accepted[end]}),
            )
    for event, end in zip(got["quorum"](), ends(got["quorum"]()), strict=True):
        enough = len({each.sensor for each in accepted.get(end, ())}) >= 4
        expected = PLAIN["mean"](accepted[end]) if enough else None
        assert event["value"] == (pytest.approx(expected, abs=1e-9) if enough else None)


def ends(events: Sequence[dict[str, Any]]) -> list[int]:
    """The ends of the windows in seconds."""
    return [(parse_time(event["time"]) or 0) // 1000 for event in events]
