"""The intake: every reading is published once or rejected for a reason, and a failed store takes none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hpwsn.broker.admission.admission import Source
from hpwsn.errors import JournalUnavailable
from hpwsn.notification import ROW_MEMBERS
from hpwsn.sensors.intake import request_checks
from hpwsn.sensors.intake.intake import SENSORS, Taken
from hpwsn.sensors.physical.physical_sensor import parse_sensor
from hpwsn.sensors.readings.checks import REASONS
from hpwsn.sensors.readings.formats import ReadingsTooMany, Unparsed
from hpwsn.sensors.readings.reading import Reading
from hpwsn.sensors.readings.reading_times import time_text
from hpwsn.sensors.registry.sensor_registry import RegistryFull
from hpwsn_client.wsn.soap.faults import Busy, TopicNotSupportedFault
from tests.patience import holds
from tests.unit.sensors.intake.intake_examples import AT_ONCE, NOW, TestedIntake, sensor

MS = round(NOW * 1000)


def reading(time: int, name: str = "s1", value: float = 1) -> dict[str, Any]:
    """A raw reading some milliseconds after a day's begin."""
    return {"sensor": name, "time": time_text(MS + time), "t": value}


@pytest.fixture
async def intake(tmp_path: Path) -> TestedIntake:
    made = TestedIntake(tmp_path)
    await made.sensors.put([sensor("s1"), sensor("s2")])
    return made


@pytest.fixture
async def open_intake(tmp_path: Path) -> TestedIntake:
    """One that registers unknown sensors."""
    return TestedIntake(tmp_path, auto_register=True)


async def test_accepted_readings_are_published_on_the_topics_of_their_sensors(intake: TestedIntake) -> None:
    taken = await intake.take([reading(1), reading(2, "s2"), reading(3)], "http")
    assert taken == Taken(3, [])
    assert [(str(run.topic), run.size) for run in intake.runs] == [
        ("sensors:weather:s1", 2),
        ("sensors:weather:s2", 1),
    ]
    assert intake.published == [
        Reading("s1", "weather", MS + 1, {"t": 1.0}),
        Reading("s1", "weather", MS + 3, {"t": 1.0}),
        Reading("s2", "weather", MS + 2, {"t": 1.0}),
    ]
    assert (intake.accepted, intake.sensors.last, intake.sources) == (3, {"s1": NOW, "s2": NOW}, [SENSORS])


async def test_a_gateway_may_show_its_registration(intake: TestedIntake) -> None:
    gateway = Source(registration="r1", door="sensors")
    await intake.take([reading(1)], "http", publisher=gateway)
    assert intake.sources == [gateway]


async def test_the_rejected_ones_of_a_request_do_not_concern_the_others(intake: TestedIntake) -> None:
    raw = [
        Unparsed("x", "the line is not JSON"),
        {"sensor": "nobody", "t": 1},
        {"sensor": "s1", "x": 1},
        {"sensor": "s1", "t": {"value": 1, "unit": "m"}},
        {"sensor": "s1", "t": 61},
        {"sensor": "s1", "t": 1, "time": "2020-01-01T00:00:00Z"},
        reading(1),
        reading(1),
    ]
    taken = await intake.take(raw, "http")
    assert (taken.accepted, taken.rejected) == (1, 7)
    assert taken.errors == [
        (0, "malformed"),
        (1, "unknown-sensor"),
        (2, "unknown-quantity"),
        (3, "unit"),
        (4, "range"),
        (5, "time"),
        (7, "duplicate"),
    ]
    assert intake.reasons == dict.fromkeys(REASONS, 1)
    kept = await intake.kept()
    assert kept == [
        (None, "malformed"),
        ("nobody", "unknown-sensor"),
        *[("s1", reason) for _, reason in taken.errors[2:]],
    ]


async def test_as_many_readings_as_allowed_at_once_and_not_one_more(intake: TestedIntake) -> None:
    assert (await intake.take([reading(n) for n in range(AT_ONCE)], "http")).accepted == AT_ONCE
    with pytest.raises(ReadingsTooMany):
        await intake.take([reading(-1 - n) for n in range(AT_ONCE + 1)], "http")
    assert (intake.accepted, len(intake.published)) == (AT_ONCE, AT_ONCE)


async def test_no_run_is_longer_than_a_row_of_the_log(intake: TestedIntake) -> None:
    await intake.take([reading(n) for n in range(2 * ROW_MEMBERS + 1)], "http")
    assert [run.size for run in intake.runs] == [ROW_MEMBERS, ROW_MEMBERS, 1]


# Duplicates


async def test_a_duplicate_is_told_within_a_request_and_over_requests(intake: TestedIntake) -> None:
    assert await intake.take([reading(1), reading(1, value=2), reading(1, "s2")], "http") == Taken(
        2, [(1, "duplicate")]
    )
    assert await intake.take([reading(1), reading(2)], "mqtt") == Taken(1, [(0, "duplicate")])
    # The same instant in another zone.
    shifted = {**reading(1), "time": "2026-11-18T12:06:40.001+01:00"}
    assert await intake.take([shifted], "http") == Taken(0, [(0, "duplicate")])
    assert len(intake.published) == 3


async def test_readings_without_a_time_are_never_duplicates(intake: TestedIntake) -> None:
    raw = [reading(2), {"sensor": "s1", "t": 1}, {"sensor": "s1", "t": 1}, {"sensor": "s1", "t": 1}]
    assert (await intake.take(raw, "http")).accepted == 4
    assert (await intake.take(raw[1:], "http")).accepted == 3
    assert sorted(each.time - MS for each in intake.published) == [0, 1, 2, 3, 4, 5, 6]


async def test_many_readings_without_a_time_cost_no_more_each_than_a_few(intake: TestedIntake) -> None:
    asked = 0
    has = intake._times.has

    def counting(sensor: str, time: int) -> bool | None:
        nonlocal asked
        asked += 1
        return has(sensor, time)

    intake._times.has = counting  # type: ignore[method-assign]
    assert (await intake.take([{"sensor": "s1", "t": 1}] * AT_ONCE, "http")).accepted == AT_ONCE
    assert sorted(each.time - MS for each in intake.published) == list(range(AT_ONCE))
    assert asked < 4 * AT_ONCE


async def test_of_two_at_the_same_time_the_second_waits_and_is_a_duplicate(intake: TestedIntake) -> None:
    intake.room.clear()
    first = asyncio.ensure_future(intake.take([reading(1), reading(2)], "http"))
    await holds(lambda: intake.waiting == 1)
    second = asyncio.ensure_future(intake.take([reading(2), reading(3)], "mqtt"))
    other = asyncio.ensure_future(intake.take([reading(9)], "http"))
    await holds(lambda: intake.waiting == 2)
    intake.room.set()
    assert await first == Taken(2, [])
    assert await second == Taken(1, [(0, "duplicate")])
    assert await other == Taken(1, [])


async def test_of_two_at_the_same_time_the_second_is_taken_if_the_first_fails(intake: TestedIntake) -> None:
    intake.room.clear()
    first = asyncio.ensure_future(intake.take([reading(1)], "http"))
    await holds(lambda: intake.waiting == 1)
    second = asyncio.ensure_future(intake.take([reading(1)], "http"))

    def fail_once() -> None:
        intake.store = lambda: None
        raise Busy("the journal is full")

    intake.store = fail_once
    intake.room.set()
    with pytest.raises(Busy):
        await first
    assert await second == Taken(1, [])
    assert len(intake.published) == 1


async def test_many_at_the_same_time_take_each_reading_once(intake: TestedIntake) -> None:
    several = [intake.take([reading(n) for n in range(at, at + 10)], "http") for at in range(30)]
    taken = await asyncio.gather(*several)
    assert sum(each.accepted for each in taken) == 39
    assert sorted(each.time - MS for each in intake.published) == list(range(39))
    assert intake.reasons["duplicate"] == 300 - 39


async def test_older_readings_are_looked_for_in_the_history(intake: TestedIntake) -> None:
    asked: list[tuple[str, int]] = []

    async def look_up(keys: Any) -> set[tuple[str, int]]:
        asked.extend(keys)
        return {("s1", MS + 1)} & set(keys)

    intake.look_up = look_up
    intake._times.complete_from = MS + 10
    taken = await intake.take([reading(1), reading(2), reading(10)], "http")
    assert taken == Taken(2, [(0, "duplicate")])
    assert asked == [("s1", MS + 1), ("s1", MS + 2)]
    assert await intake.take([reading(2)], "http") == Taken(0, [(0, "duplicate")])


async def test_readings_that_came_another_way_are_known(intake: TestedIntake) -> None:
    intake.committed(3, [(1, Reading("s1", "weather", MS + 1, {"t": 1.0}))])
    intake.committed(4, [(3, Reading("stranger", "weather", MS + 1, {"t": 1.0}))])
    assert await intake.take([reading(1)], "http") == Taken(0, [(0, "duplicate")])
    assert len(intake._times) == 1


async def test_a_sensor_that_is_removed_and_registered_again_is_left_to_the_history(
    intake: TestedIntake,
) -> None:
    await intake.take([reading(1)], "http")
    intake.sensors.remove("s1")
    assert await intake.take([reading(2)], "http") == Taken(0, [(0, "unknown-sensor")])
    await intake.sensors.put([sensor("s1")])
    asked: list[tuple[str, int]] = []

    async def look_up(keys: Any) -> set[tuple[str, int]]:
        asked.extend(keys)
        return set(keys)

    intake.look_up = look_up
    assert await intake.take([reading(1), reading(2)], "http") == Taken(1, [(0, "duplicate")])
    assert asked == [("s1", MS + 1)]


# Failures


@pytest.mark.parametrize("error", [Busy("full"), TopicNotSupportedFault("no such topic")])
async def test_what_cannot_be_stored_is_not_taken_and_may_be_repeated(
    intake: TestedIntake, error: Exception
) -> None:
    def fail() -> None:
        raise error

    intake.store = fail
    with pytest.raises(type(error)):
        await intake.take([reading(1), {"sensor": "nobody", "t": 1}], "http")
    assert (intake.accepted, sum(intake.reasons.values()), len(intake.rejected)) == (0, 0, 0)
    assert intake.sensors.last == {}
    intake.store = lambda: None
    assert (await intake.take([reading(1)], "http")).accepted == 1


async def test_a_client_that_goes_away_stops_nothing(intake: TestedIntake) -> None:
    intake.room.clear()
    gone = asyncio.ensure_future(intake.take([reading(1), {"sensor": "nobody", "t": 1}], "http"))
    await holds(lambda: intake.waiting == 1)
    gone.cancel()
    intake.room.set()
    assert await intake.take([reading(1)], "http") == Taken(0, [(0, "duplicate")])
    assert (intake.accepted, intake.reasons["unknown-sensor"]) == (1, 1)


async def test_data_without_readings_counts_as_one_malformed_reading(intake: TestedIntake) -> None:
    assert await intake.reject_whole("[", "this is not JSON", "http", "s1") == Taken(0, [(0, "malformed")])
    items, _ = await intake.rejected.page(10)
    assert [(each["sensor"], each["reading"], each["detail"]) for each in items] == [
        ("s1", "[", "this is not JSON")
    ]
    assert intake.reasons["malformed"] == 1


# Units


async def test_units_are_converted(intake: TestedIntake) -> None:
    raw = [{**reading(n), "t": {"value": value, "unit": "degF"}} for n, value in enumerate((50, 140, 141))]
    assert await intake.take(raw, "http") == Taken(2, [(2, "range")])
    assert [each.values["t"] for each in intake.published] == [10.0, 60.0]


@pytest.fixture
def two_conversions() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(request_checks, "MOST_CONVERSIONS", 2)
        yield


@pytest.mark.usefixtures("two_conversions")
async def test_no_more_conversions_are_remembered_than_allowed(intake: TestedIntake) -> None:
    units = ["degF", "K", "m", "degR", "s"]
    raw = [{**reading(n), "t": {"value": 0, "unit": unit}} for n, unit in enumerate(units)]
    taken = []
    for each in raw:
        taken.append((await intake.take([each], "http")).accepted)
        assert len(intake._checks.conversions) <= 2
    assert taken == [1, 1, 0, 1, 0]
    # More of them in one request are all answered.
    again = [{**each, "time": time_text(MS + 100 + n)} for n, each in enumerate(raw)]
    assert await intake.take(again, "http") == Taken(3, [(2, "unit"), (4, "unit")])


# New sensors


async def test_an_unknown_sensor_is_registered_with_its_first_reading(open_intake: TestedIntake) -> None:
    raw: list[dict[str, Any]] = [
        {"sensor": "new", "kind": "quake", "m": {"value": 5, "unit": "m/s"}, "time": time_text(MS + n)}
        for n in range(3)
    ]
    raw.append({"sensor": "new", "m": {"value": 1, "unit": "km/s"}})
    raw.append({"sensor": "new", "x": 1})
    raw.append({"sensor": "other", "m": 1})
    taken = await open_intake.take(raw, "mqtt")
    assert taken == Taken(4, [(4, "unknown-quantity"), (5, "unknown-sensor")])
    assert open_intake.sensors.puts == [["new"]]
    assert open_intake.sensors.registered["new"] == parse_sensor(
        {"id": "new", "kind": "quake", "quantities": {"m": {"unit": "m/s"}}}
    )
    assert [each.values["m"] for each in open_intake.published] == [5.0, 5.0, 5.0, 1000.0]


async def test_a_new_sensor_with_an_unknown_unit_is_not_registered(open_intake: TestedIntake) -> None:
    raw = [
        {"sensor": "new", "kind": "quake", "m": {"value": 5, "unit": "parsnip"}},
        {"sensor": "fine", "kind": "quake", "m": 5},
    ]
    assert await open_intake.take(raw, "http") == Taken(1, [(0, "unit")])
    assert set(open_intake.sensors.registered) == {"fine"}


async def test_new_sensors_beyond_the_limit_are_rejected(open_intake: TestedIntake) -> None:
    open_intake.sensors.refusal = RegistryFull(1)
    raw = [{"sensor": "new", "kind": "quake", "m": 5}]
    assert await open_intake.take(raw, "http") == Taken(0, [(0, "unknown-sensor")])
    items, _ = await open_intake.rejected.page(1)
    assert "sensors.limit" in items[0]["detail"]


async def test_new_sensors_that_cannot_be_stored_may_be_repeated(open_intake: TestedIntake) -> None:
    open_intake.sensors.refusal = JournalUnavailable("the disk is full")
    raw = [{"sensor": "new", "kind": "quake", "m": 5}]
    with pytest.raises(JournalUnavailable):
        await open_intake.take(raw, "http")
    assert len(open_intake.rejected) == 0
    open_intake.sensors.refusal = None
    assert (await open_intake.take(raw, "http")).accepted == 1


async def test_without_the_setting_nothing_is_registered(intake: TestedIntake) -> None:
    raw = [{"sensor": "new", "kind": "quake", "m": 5}]
    assert await intake.take(raw, "http") == Taken(0, [(0, "unknown-sensor")])
    assert set(intake.sensors.registered) == {"s1", "s2"}
