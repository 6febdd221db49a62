"""Sensors as entries of LDAP: there and back, and a mirror that tells what an admin has changed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.sensors.physical.physical_sensor import PhysicalSensor, parse_sensor
from hpwsn.sensors.registry.sensor_entries import (
    SensorChange,
    SensorEntry,
    SensorMirror,
    attributes_of,
    dn_of,
    parse_entry,
)

NAMES = st.from_regex(r"[A-Za-z_é][A-Za-z0-9_.é-]{0,8}", fullmatch=True)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text('abc é€:,+=#\\"', min_size=1).map(str.strip)
RESERVED = ("sensor", "kind", "time", "longitude", "latitude", "offset", "day")


@st.composite
def sensors(draw: st.DrawFn) -> PhysicalSensor:
    quantities = {}
    for name in draw(st.lists(NAMES.filter(lambda n: n not in RESERVED), min_size=1, max_size=3)):
        ends = sorted(draw(st.tuples(NUMBERS, NUMBERS)))
        shown = draw(st.sampled_from([(), ("min",), ("max",), ("min", "max")]))
        limits = {end: ends[end == "max"] for end in shown}
        quantities[name] = {"unit": draw(st.sampled_from(["degC", "", "m / s", "%"])), **limits}
    found: dict[str, Any] = {"id": draw(NAMES), "kind": draw(NAMES), "quantities": quantities}
    found["tags"] = sorted(draw(st.sets(TEXTS.filter(bool), max_size=3)))
    if draw(st.booleans()):
        found["place"] = {"longitude": draw(st.floats(-180, 180)), "latitude": draw(st.floats(-90, 90))}
    if draw(st.booleans()):
        found["interval"] = draw(st.floats(0.001, 1e9))
    for name in ("owner", "gateway"):
        found[name] = draw(st.just("") | TEXTS)
    found["on_demand"] = draw(st.booleans())
    return parse_sensor(found)


def encoded(sensor: PhysicalSensor) -> dict[str, list[bytes]]:
    return {name: [text.encode() for text in texts] for name, texts in attributes_of(sensor).items() if texts}


@given(sensors())
def test_a_sensor_comes_back_from_its_entry(sensor: PhysicalSensor) -> None:
    found = parse_entry("u1", dn_of(sensor.id, "ou=sensors"), encoded(sensor))
    assert found == SensorEntry("u1", f"hpwsnSensorId={sensor.id},ou=sensors", sensor.id, sensor)


def test_attributes_are_named_in_any_case() -> None:
    sensor = parse_sensor({"id": "s1", "kind": "k", "quantities": {"t": {"unit": "K"}}})
    assert (
        parse_entry("u1", "x", {name.upper(): each for name, each in encoded(sensor).items()}).sensor
        == sensor
    )


def attributes(**changed: str) -> dict[str, list[bytes]]:
    found = {"hpwsnSensorId": "s1", "hpwsnSensorKind": "weather", "hpwsnSensorQuantity": "t; K"} | changed
    return {name: [text.encode()] for name, text in found.items() if text}


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"hpwsnSensorKind": ""}, "the field kind is missing"),
        ({"hpwsnSensorKind": "two words"}, "kind is 'two words'"),
        ({"hpwsnSensorQuantity": ""}, "quantities is"),
        ({"hpwsnSensorQuantity": "t"}, "hpwsnSensorQuantity is 't'; write name; unit"),
        ({"hpwsnSensorQuantity": "t; K; 1; 2; 3"}, "write name; unit"),
        ({"hpwsnSensorQuantity": "t; K; warm"}, "min of t is 'warm'"),
        ({"hpwsnSensorQuantity": "t; K; 2; 1"}, "min 2 above max 1"),
        ({"hpwsnSensorQuantity": "time; K"}, "the quantity 'time'"),
        ({"hpwsnSensorLongitude": "1"}, "hpwsnSensorLatitude is None"),
        ({"hpwsnSensorLongitude": "x", "hpwsnSensorLatitude": "1"}, "hpwsnSensorLongitude is 'x'"),
        ({"hpwsnSensorLongitude": "nan", "hpwsnSensorLatitude": "1"}, "longitude is"),
        ({"hpwsnSensorInterval": "0"}, "interval is 0"),
        ({"hpwsnSensorOnDemand": "yes"}, "on_demand is 'yes'"),
    ],
)
def test_an_entry_that_is_not_valid_has_a_fault_and_its_name(changed: dict[str, str], fault: str) -> None:
    found = parse_entry("u1", "x", attributes(**changed))
    assert (found.name, found.sensor) == ("s1", None)
    assert fault in (found.fault or "")


def test_an_entry_without_an_id_or_in_no_text_has_a_fault() -> None:
    assert parse_entry("u1", "x", attributes(hpwsnSensorId="")).fault is not None
    assert parse_entry("u1", "x", {**attributes(), "hpwsnSensorKind": [b"\xff"]}).fault is not None


def entry(id_: str, name: str, kind: str | None = "weather") -> SensorEntry:
    """The entry of a sensor; without a kind one that is not valid."""
    if kind is None:
        return SensorEntry(id_, f"dn of {id_}", name, fault="wrong")
    return SensorEntry(id_, f"dn of {id_}", name, sensor(name, kind))


def sensor(name: str, kind: str = "weather") -> PhysicalSensor:
    return parse_sensor({"id": name, "kind": kind, "quantities": {"t": {"unit": "K"}}})


def test_the_mirror_tells_changes_once() -> None:
    mirror = SensorMirror()
    mirror.put(entry("u1", "s1"))
    mirror.put(entry("u2", "s2"))
    assert mirror.changes() == SensorChange((sensor("s1"), sensor("s2")))
    assert not mirror.changes()
    mirror.put(entry("u1", "s1"))
    assert not mirror.changes()
    mirror.put(entry("u1", "s3"))
    mirror.discard(["u2", "unknown"])
    assert mirror.changes() == SensorChange((sensor("s3"),), ("s1", "s2"))
    mirror.put(entry("u3", "s4"))
    mirror.keep(["u1"])
    assert not mirror.changes()
    assert mirror.names() == {"s3"}


def test_a_sensor_whose_entry_becomes_invalid_stays() -> None:
    mirror = SensorMirror()
    mirror.put(entry("u1", "s1"))
    mirror.changes()
    mirror.put(entry("u1", "s1", None))
    assert not mirror.changes()
    assert (mirror.skipped(), mirror.names()) == (("dn of u1: wrong",), {"s1"})
    mirror.put(entry("u1", "s1", "quake"))
    assert mirror.changes() == SensorChange((sensor("s1", "quake"),))


def test_the_first_of_two_entries_counts_until_it_goes() -> None:
    mirror = SensorMirror()
    mirror.put(entry("u1", "s1"))
    mirror.put(entry("u2", "s1", "quake"))
    assert mirror.changes() == SensorChange((sensor("s1"),))
    assert mirror.skipped() == ("dn of u2: s1 already is dn of u1; remove one of them",)
    assert mirror.dn_of("s1") == "dn of u1"
    mirror.discard(["u1"])
    assert mirror.changes() == SensorChange((sensor("s1", "quake"),))
    assert (mirror.skipped(), mirror.dn_of("s1"), mirror.dn_of("s2")) == ((), "dn of u2", None)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["u1", "u2", "u3"]),
        st.sampled_from(["s1", "s2"]),
        st.sampled_from(["weather", "quake", None, "gone", "told"]),
    )
)


@given(STEPS)
def test_what_was_told_is_what_a_new_mirror_tells(steps: list[tuple[str, str, str | None]]) -> None:
    mirror, entries = SensorMirror(), {}
    known: dict[str, PhysicalSensor] = {}

    def follow() -> None:
        change = mirror.changes()
        for name in change.removed:
            del known[name]
        known.update({each.id: each for each in change.changed})

    for id_, name, kind in steps:
        if kind == "told":
            follow()
        elif kind == "gone":
            mirror.discard([id_])
            entries.pop(id_, None)
        else:
            mirror.put(entry(id_, name, kind))
            entries[id_] = entry(id_, name, kind)
    follow()
    assert mirror.names() == {each.name for each in entries.values()}
    assert known.keys() <= mirror.names()
    for name in mirror.names():
        several = [each.sensor for each in entries.values() if each.name == name]
        if len(several) == 1 and several[0] is not None:
            assert known[name] == several[0]
