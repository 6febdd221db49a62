"""Running virtual sensors: their members, what the past gives them, replacement, release and restarts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

import pytest

from hpwsn.sensors.physical.physical_sensor import parse_sensor
from hpwsn.sensors.readings.reading import Reading
from hpwsn.sensors.templates.reading_windows import MADE_UP, ClosedWindow
from hpwsn.sensors.templates.result import Result, result_of
from hpwsn.sensors.virtual.running_sensors import TOLD_AFTER
from tests.unit.sensors.virtual.virtual_field import START, Field, at, sensor, template
from tests.virtual_time import run


def past(time: int, value: float, name: str = "s1") -> Reading:
    return Reading(name, "weather", START + time, {"t": value})


def earlier(field: Field, end: int, value: float, name: str = "hall", **fields: Any) -> Result:
    """A result that was published before."""
    window = ClosedWindow(START + end, {("s1", START): value})
    found = result_of(template(name, **fields), "degC", window, None)
    assert found is not None
    field.last.note(found)
    return found


def register(field: Field, document: dict[str, Any]) -> None:
    """Register a sensor while virtual sensors run; the journal is not under test."""
    field.registry._keep(parse_sensor(document))
    field.registry.changed(document["id"], field.registry.get(document["id"]))


def unregister(field: Field, name: str) -> None:
    field.registry._drop(name)
    del field.registry._sensors[name]
    field.registry.changed(name, None)


def test_a_window_is_published_lateness_after_its_end_on_the_topic() -> None:
    async def test() -> None:
        field = Field(sensor("s1"), sensor("s2"))
        field.start(lateness=0.25)
        await field.take(at(100, t=20), at(100, "s2", t=22))
        await field.until(5000)
        assert (field.values, [when - START for when in field.published.at]) == ({1000: 21}, [1250])

    run(test())


def test_what_nobody_started_publishes_nothing() -> None:
    async def test() -> None:
        field = Field(sensor())
        await field.take(at(100, t=20))
        await field.until(5000)
        assert (field.values, set(field.running.names)) == ({}, set())

    run(test())


def test_what_was_released_publishes_nothing_more() -> None:
    async def test() -> None:
        field = Field(sensor())
        field.start()
        await field.take(at(100, t=20))
        await field.until(1500)
        await field.take(at(1500, t=30))
        field.running.stop("hall")
        field.running.stop("hall")
        await field.until(9000)
        assert (field.values, set(field.running.names)) == ({1000: 20}, set())

    run(test())


def test_one_that_begins_within_a_window_gets_what_the_past_has_for_it() -> None:
    async def test() -> None:
        field = Field(sensor("s1"), sensor("s2", tags=["other"]), ahead=60)
        await field.until(30_500)
        field.past = [past(30_010, 10), past(29_999, 99), past(30_020, 30), past(30_010, 99, "s2")]
        field.start(every=10, area=None, kind="weather")
        await field.take(at(30_500, t=50))
        await field.until(45_000)
        assert field.asked == [({"s1", "s2"}, 30_000, 90_501)]
        assert field.values == {40_000: (10 + 30 + 99 + 50) / 4}

    run(test())


def test_a_reading_of_the_past_that_comes_again_counts_once() -> None:
    async def test() -> None:
        field = Field(sensor())
        field.past = [past(0, 10), past(500, 40)]
        field.start()
        await field.take(at(0, t=10))
        await field.until(3000)
        assert [(each.value, each.count) for each in field.published.results] == [(25, 2)]

    run(test())


def test_no_window_is_closed_before_the_past_has_come() -> None:
    async def test() -> None:
        field = Field(sensor())
        come = asyncio.Event()

        async def slow(*_: object) -> Iterable[Reading]:
            await come.wait()
            return [past(500, 40)]

        field.running.past.ask = slow
        field.start()
        await field.take(at(0, t=10))
        await field.until(2600)
        assert field.values == {}
        come.set()
        await field.until(2700)
        assert field.values == {1000: 25}

    run(test())


def test_a_past_that_fails_is_told_and_windows_go_on(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        field = Field(sensor())

        async def failing(*_: object) -> Iterable[Reading]:
            raise OSError("the disk is gone")

        field.running.past.ask = failing
        field.start()
        await field.take(at(0, t=10))
        await field.until(2000)
        assert field.values == {1000: 10}

    with caplog.at_level(logging.ERROR):
        run(test())
    assert "virtual sensor hall begins without readings of the past" in caplog.text


@pytest.mark.parametrize(("make_up", "values"), [(True, {-2000: 1, -1000: 2, 1000: 3}), (False, {1000: 3})])
def test_windows_since_the_last_result_are_made_up_only_after_a_restart(
    make_up: bool, values: dict[int, float]
) -> None:
    async def test() -> None:
        field = Field(sensor())
        earlier(field, -3000, 7)
        field.past = [past(-3500, 9), past(-2500, 1), past(-1500, 2), past(500, 3)]
        field.start(make_up=make_up)
        await field.until(5000)
        assert field.values == values

    run(test())


def test_without_a_result_windows_are_made_up_since_the_definition() -> None:
    async def test() -> None:
        field = Field(sensor())
        field.past = [past(-3500, 9), past(-2500, 1)]
        field.start(make_up=True, created=START - 2600)
        await field.until(5000)
        assert field.values == {-2000: 1}

    run(test())


def test_windows_of_the_last_ten_minutes_are_made_up() -> None:
    async def test() -> None:
        field = Field(sensor())
        earlier(field, -2 * MADE_UP, 7, every=60)
        field.past = [past(-2 * MADE_UP + 60_000 * n, n) for n in range(21)]
        field.start(make_up=True, every=60, lateness=0)
        await field.until(1000)
        assert min(field.values) == 60_000 - MADE_UP
        assert len(field.values) == 10

    run(test())


def test_a_window_with_a_result_gets_no_second_one_from_a_new_definition() -> None:
    async def test() -> None:
        field = Field(sensor())
        field.start(lateness=0)
        await field.take(at(0, t=10))
        await field.until(1500)
        assert field.values == {1000: 10}
        field.past = [past(0, 10)]
        field.start(lateness=5, combine="max")
        await field.take(at(1200, t=20))
        await field.until(20_000)
        assert [(each.time - START, each.value) for each in field.published.results] == [
            (1000, 10),
            (2000, 20),
        ]

    run(test())


def test_a_replaced_one_goes_on_with_the_states_and_the_readings_of_its_window() -> None:
    async def test() -> None:
        field = Field(sensor())
        warm = [{"name": "warm", "low": 24}]
        field.start(bands=warm)
        await field.take(at(0, t=25))
        await field.until(1200)
        await field.take(at(1150, t=26))
        field.past = [past(0, 25), past(1150, 26)]
        field.start(bands=warm, combine="max")
        await field.until(2500)
        assert [(each.value, each.changed) for each in field.published.results] == [(25, True), (26, False)]

    run(test())


def test_what_is_due_when_a_definition_is_replaced_is_published_as_it_was_defined() -> None:
    async def test() -> None:
        field = Field(sensor())
        field.start(combine="min", lateness=0)
        await field.take(at(0, t=10), at(1, t=30))
        await asyncio.sleep(0.01)
        field.running._times.stop()
        await field.until(1000)
        field.start(combine="max", lateness=0)
        assert field.values == {1000: 10}

    run(test())


def test_a_release_while_the_past_is_looked_for_leaves_nothing_behind() -> None:
    async def test() -> None:
        field = Field(sensor())
        field.past = [past(500, 10)]
        field.start()
        field.running.stop("hall")
        field.start()
        field.running.stop("hall")
        await field.until(5000)
        assert (field.values, set(field.running.members("hall"))) == ({}, set())

    run(test())


def test_members_are_those_that_the_template_selects_and_that_measure_the_quantity() -> None:
    async def test() -> None:
        quake = {"id": "q1", "kind": "quake", "quantities": {"t": {"unit": "degC"}}, "tags": ["roof"]}
        wet = {"id": "w1", "kind": "weather", "quantities": {"h": {"unit": "%"}}, "tags": ["roof"]}
        place = {"longitude": 5, "latitude": 5}
        field = Field(sensor("s1", tags=["roof"]), sensor("s2", place=place), sensor("s3"), quake, wet)
        field.start("all")
        field.start("kind", kind="weather")
        field.start("tag", tags=["roof"])
        field.start("both", kind="weather", tags=["roof"])
        field.start("area", area=[0, 0, 10, 10])
        field.start("none", kind="nothing")
        await asyncio.sleep(2 * TOLD_AFTER)
        assert {name: sorted(field.running.members(name)) for name in field.running.names} == {
            "all": ["q1", "s1", "s2", "s3"],
            "kind": ["s1", "s2", "s3"],
            "tag": ["q1", "s1"],
            "both": ["s1"],
            "area": ["s2"],
            "none": [],
        }
        assert dict(field.told) == {name: sorted(field.running.members(name)) for name in field.running.names}

    run(test())


def test_members_come_and_go_with_the_registration_of_sensors() -> None:
    async def test() -> None:
        field = Field(sensor("s1", tags=["roof"]))
        field.start(tags=["roof"], combine="sum")
        await asyncio.sleep(2 * TOLD_AFTER)
        register(field, sensor("s2", tags=["roof"]))
        register(field, sensor("s3"))
        await asyncio.sleep(2 * TOLD_AFTER)
        await field.take(at(0, t=1), at(0, "s2", t=2), at(0, "s3", t=4))
        await field.until(1000)
        register(field, sensor("s1"))
        unregister(field, "s2")
        register(field, sensor("s3", tags=["roof"]))
        await field.take(at(1000, t=1), at(1000, "s3", t=4))
        await field.until(2200)
        assert field.told == [("hall", ["s1"]), ("hall", ["s1", "s2"]), ("hall", ["s3"])]
        register(field, {"id": "s3", "kind": "weather", "quantities": {"h": {"unit": "%"}}, "tags": ["roof"]})
        field.running.stop("hall")
        await field.until(4000)
        assert (field.values, field.told[-1]) == ({1000: 3, 2000: 4}, ("hall", []))

    run(test())


def test_readings_in_other_units_are_converted_to_the_commonest() -> None:
    async def test() -> None:
        field = Field(sensor("s1", "degC"), sensor("s2", "K"), sensor("s3", "degC"), sensor("s4", "m"))
        field.start(every=3600, combine="max")
        # A thread loads the units, which virtual time does not wait for.
        await asyncio.wait(list(field.running._tasks))
        await field.take(at(0, t=10), at(0, "s2", t=300), at(0, "s4", t=99))
        register(field, sensor("s5", "K"))
        await field.take(at(0, "s5", t=310))
        await field.until(3_700_000)
        (result,) = field.published.results
        assert (result.value, result.unit, result.count) == (pytest.approx(36.85), "degC", 3)

    run(test())


def test_the_unit_of_one_without_members_is_that_of_the_first() -> None:
    async def test() -> None:
        field = Field()
        field.start(silence="null")
        await field.until(1000)
        register(field, sensor("s1", "K"))
        await field.take(at(1000, t=300))
        await field.until(2500)
        assert [(each.value, each.unit) for each in field.published.results] == [
            (None, ""),
            (None, "K"),
            (300, "K"),
        ]

    run(test())


def test_readings_beyond_the_room_are_counted_and_the_others_make_the_result(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test() -> None:
        field = Field(sensor(), room=3)
        field.start(combine="count")
        await field.take(*[at(number, t=1) for number in range(5)])
        windows = field.running.windows("hall")
        assert (len(windows), windows.refused, windows.late) == (3, 2, 0)
        await field.until(1500)
        await field.take(at(0, t=1), at(-1, t=1), at(1500, t=1))
        await field.until(3000)
        assert (field.values, windows.late) == ({1000: 3, 2000: 1}, 1)

    with caplog.at_level(logging.WARNING):
        run(test())
    assert caplog.text.count("virtual sensor hall holds only 3 readings") == 1


def test_close_ends_everything_and_later_readings_change_nothing() -> None:
    async def test() -> None:
        field = Field(sensor())
        field.start()
        field.start("roof")
        await field.take(at(0, t=10))
        await field.running.close()
        await field.until(5000)
        assert field.values == {}

    run(test())
