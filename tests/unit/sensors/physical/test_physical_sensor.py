"""Physical sensors: there and back in JSON, and every limit at its edge."""

from __future__ import annotations

from typing import Any

import pytest

from hpwsn.sensors.physical.physical_sensor import (
    LONGEST_NAME,
    MOST_QUANTITIES,
    MOST_TAGS,
    RESERVED,
    Place,
    Quantity,
    SensorRefused,
    parse_sensor,
)

LEAST: dict[str, Any] = {"id": "s1", "kind": "weather", "quantities": {"t": {"unit": "degC"}}}
FULL: dict[str, Any] = {
    "id": "roof-1.b_é",
    "kind": "weather",
    "quantities": {"t": {"unit": "degC", "min": -40.0, "max": 60.0}, "n": {"unit": ""}},
    "place": {"longitude": -180.0, "latitude": 90.0},
    "tags": ["roof", "北京"],
    "interval": 0.5,
    "owner": "met office",
    "gateway": "g1",
    "on_demand": True,
}


def test_a_whole_description_comes_back() -> None:
    sensor = parse_sensor(FULL)
    assert sensor.document() == FULL
    assert parse_sensor(sensor.document()) == sensor
    assert str(sensor.topic) == "sensors:weather:roof-1.b_é"
    assert sensor.quantities == {"t": Quantity("degC", -40.0, 60.0), "n": Quantity("")}
    assert sensor.place == Place(-180.0, 90.0)


def test_the_least_description_has_tags_only() -> None:
    assert parse_sensor(LEAST).document() == {**LEAST, "tags": []}
    nothing = dict.fromkeys(("place", "interval"))
    assert parse_sensor({**LEAST, **nothing}) == parse_sensor(LEAST)


def test_a_tag_counts_once() -> None:
    assert parse_sensor({**LEAST, "tags": ["a", "b", "a"]}).tags == ("a", "b")


@pytest.mark.parametrize(
    "fields",
    [
        {"id": "x" * LONGEST_NAME, "kind": "x" * LONGEST_NAME},
        {"quantities": {f"q{n}": {"unit": "K"} for n in range(MOST_QUANTITIES)}},
        {"quantities": {"x" * LONGEST_NAME: {"unit": "K", "min": 1, "max": 1}}},
        {"tags": [f"{n}" for n in range(MOST_TAGS)]},
        {"tags": ["x" * LONGEST_NAME], "owner": "x" * LONGEST_NAME, "gateway": "x" * LONGEST_NAME},
        {"place": {"longitude": 180, "latitude": -90}},
        {"interval": 5e-324},
    ],
)
def test_what_is_at_a_limit_is_taken(fields: dict[str, Any]) -> None:
    sensor = parse_sensor({**LEAST, **fields})
    assert parse_sensor(sensor.document()) == sensor


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"id": "x" * (LONGEST_NAME + 1)}, "id is"),
        ({"id": ""}, "id is ''"),
        ({"id": "1a"}, "id is '1a'"),
        ({"id": "a:b"}, "id is 'a:b'"),
        ({"id": "a/b"}, "id is"),
        ({"id": 5}, "id is 5"),
        ({"kind": "two words"}, "kind is 'two words'"),
        ({"quantities": {}}, "quantities"),
        ({"quantities": []}, "quantities"),
        ({"quantities": {f"q{n}": {"unit": "K"} for n in range(MOST_QUANTITIES + 1)}}, "quantities"),
        ({"quantities": {"t": "K"}}, "'t'"),
        ({"quantities": {"t": {}}}, "'t'"),
        ({"quantities": {"t": {"unit": "K", "low": 1}}}, "'t'"),
        ({"quantities": {"t": {"unit": 5}}}, "unit of t"),
        ({"quantities": {"t": {"unit": "K", "min": "1"}}}, "min of t"),
        ({"quantities": {"t": {"unit": "K", "max": True}}}, "max of t"),
        ({"quantities": {"t": {"unit": "K", "max": float("nan")}}}, "max of t"),
        ({"quantities": {"t": {"unit": "K", "max": float("inf")}}}, "max of t"),
        ({"quantities": {"t": {"unit": "K", "min": 2, "max": 1}}}, "min 2 above max 1"),
        ({"place": [1, 2]}, "place is"),
        ({"place": {"longitude": 1}}, "place is"),
        ({"place": {"longitude": 180.1, "latitude": 0}}, "longitude is 180.1"),
        ({"place": {"longitude": 0, "latitude": -90.1}}, "latitude is -90.1"),
        ({"tags": "roof"}, "tags is 'roof'"),
        ({"tags": [5]}, "tag is 5"),
        ({"tags": ["x" * (LONGEST_NAME + 1)]}, "tag"),
        ({"tags": ["a\nb"]}, "tag"),
        ({"tags": [f"{n}" for n in range(MOST_TAGS + 1)]}, "tags"),
        ({"interval": 0}, "interval is 0"),
        ({"interval": "1 s"}, "interval is '1 s'"),
        ({"owner": 5}, "owner is 5"),
        ({"gateway": "x" * (LONGEST_NAME + 1)}, "gateway is"),
        ({"on_demand": "yes"}, "on_demand is 'yes'"),
        ({"colour": "red"}, "the field 'colour' is unknown"),
    ],
)
def test_what_is_wrong_is_told_with_its_field(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(SensorRefused) as refused:
        parse_sensor({**LEAST, **fields})
    assert told in str(refused.value)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_a_quantity_has_the_name_of_no_other_field(name: str) -> None:
    with pytest.raises(SensorRefused, match=f"the quantity '{name}'"):
        parse_sensor({**LEAST, "quantities": {name: {"unit": "K"}}})


@pytest.mark.parametrize("missing", ["id", "kind", "quantities"])
def test_what_is_needed_must_be_there(missing: str) -> None:
    with pytest.raises(SensorRefused, match=f"the field {missing} is missing"):
        parse_sensor({name: value for name, value in LEAST.items() if name != missing})


@pytest.mark.parametrize("value", [None, 5, "s1", [], [LEAST]])
def test_a_sensor_is_an_object(value: object) -> None:
    with pytest.raises(SensorRefused, match="a sensor is a JSON object"):
        parse_sensor(value)


@pytest.mark.parametrize(
    "field", ["id", "kind", "quantities", "place", "tags", "interval", "owner", "x" * 10**6]
)
def test_a_long_value_is_cut_in_the_error(field: str) -> None:
    with pytest.raises(SensorRefused) as refused:
        parse_sensor({**LEAST, field: {"x" * 10**6: "x" * 10**6}})
    assert len(str(refused.value)) < 500
