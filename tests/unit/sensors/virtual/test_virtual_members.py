"""Members: whose readings go to which windows, and in which unit."""

from __future__ import annotations

import sys

from hpwsn.sensors.physical.physical_sensor import PhysicalSensor, parse_sensor
from hpwsn.sensors.readings.reading import Reading
from hpwsn.sensors.templates.reading_windows import ReadingWindows
from hpwsn.sensors.virtual.virtual_members import Members, commonest_unit


def sensor(name: str, unit: str = "degC", **quantities: str) -> PhysicalSensor:
    units = {"t": unit, **quantities}
    found = {"id": name, "kind": "weather", "quantities": {each: {"unit": units[each]} for each in units}}
    return parse_sensor(found)


def windows() -> ReadingWindows:
    return ReadingWindows(1000, 0, 10_000, 100)


def reading(name: str, time: int = 10_000, **values: float) -> tuple[int, Reading]:
    return 1, Reading(name, "weather", time, values)


def held(found: ReadingWindows) -> dict[tuple[str, int], float]:
    (closed,) = found.close(11_000)
    return dict(closed.readings)


def test_a_reading_goes_to_every_virtual_sensor_that_its_sensor_is_a_member_of() -> None:
    members, one, other = Members(), windows(), windows()
    members.join("hall", sensor("s1"), one, "t", "degC")
    members.join("roof", sensor("s1", h="%"), other, "h", "%")
    members.join("roof", sensor("s2", h="%"), other, "h", "%")
    members.take(3, [reading("s1", t=20, h=50), reading("s2", t=21, h=51), reading("s3", t=22)])
    assert held(one) == {("s1", 10_000): 20}
    assert held(other) == {("s1", 10_000): 50, ("s2", 10_000): 51}


def test_a_reading_without_the_quantity_is_passed_over() -> None:
    members, found = Members(), windows()
    members.join("hall", sensor("s1", h="%"), found, "t", "degC")
    members.take(2, [reading("s1", h=50)])
    assert held(found) == {}


def test_values_are_converted_to_the_unit_of_the_virtual_sensor() -> None:
    members, found = Members(), windows()
    assert members.join("hall", sensor("s1", "K"), found, "t", "degC")
    members.take(2, [reading("s1", t=300)])
    assert {key: round(value, 6) for key, value in held(found).items()} == {("s1", 10_000): 26.85}


def test_a_value_that_no_number_can_hold_in_the_unit_is_passed_over() -> None:
    members, found = Members(), windows()
    members.join("hall", sensor("s1", "km"), found, "t", "m")
    members.take(2, [reading("s1", t=sys.float_info.max)])
    assert held(found) == {}


def test_a_sensor_whose_unit_does_not_convert_is_no_member() -> None:
    members, found = Members(), windows()
    assert members.join("hall", sensor("s1", "degC"), found, "t", "degC")
    assert not members.join("hall", sensor("s1", "m"), found, "t", "degC")
    assert (list(members.of("hall")), set(members.having("s1"))) == ([], set())


def test_who_has_left_gives_nothing_any_more() -> None:
    members, one, other = Members(), windows(), windows()
    for found, name in ((one, "hall"), (other, "roof")):
        members.join(name, sensor("s1"), found, "t", "degC")
        members.join(name, sensor("s2"), found, "t", "degC")
    members.leave("hall", "s1")
    members.leave("hall", "nobody")
    members.drop("roof")
    members.drop("nothing")
    members.take(3, [reading("s1", t=1), reading("s2", t=2)])
    assert (held(one), held(other)) == ({("s2", 10_000): 2}, {})
    assert (set(members.of("hall")), set(members.having("s1"))) == ({"s2"}, set())
    members.leave("hall", "s2")
    assert not members._feeds
    assert not members._of


def test_the_past_goes_to_the_one_that_asked() -> None:
    members, one, other = Members(), windows(), windows()
    members.join("hall", sensor("s1"), one, "t", "degC")
    members.join("roof", sensor("s1"), other, "t", "degC")
    members.take_past("hall", reading("s1", t=1)[1])
    members.take_past("hall", reading("s2", t=1)[1])
    assert (held(one), held(other)) == ({("s1", 10_000): 1}, {})


def test_the_unit_is_the_commonest_one_and_of_several_the_first() -> None:
    sensors = [sensor("s1", "K"), sensor("s2", "degC"), sensor("s3", "degC")]
    assert commonest_unit(sensors, "t") == "degC"
    assert commonest_unit(sensors[:2], "t") == "K"
    assert commonest_unit([], "t") is None
