"""Which physical sensors are meant: borders belong to an area, and an area may cross the 180th meridian."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hpwsn.sensors.physical.physical_sensor import PhysicalSensor, Place, SensorRefused, parse_sensor
from hpwsn.sensors.physical.selection import Area, Selection, parse_area

LONGITUDES, LATITUDES = st.floats(-180, 180), st.floats(-90, 90)


def sensor(
    name: str, kind: str = "weather", at: tuple[float, float] | None = None, *tags: str
) -> PhysicalSensor:
    place = {} if at is None else {"place": {"longitude": at[0], "latitude": at[1]}}
    quantities = {"t": {"unit": "K"}}
    return parse_sensor({"id": name, "kind": kind, "quantities": quantities, "tags": list(tags), **place})


SENSORS = [
    sensor("a", "weather", (10, 50), "roof"),
    sensor("b", "weather", (20, 50), "roof", "old"),
    sensor("c", "quake", (179, -10)),
    sensor("d", "quake", (-179, -10)),
    sensor("e", "quake"),
]


def chosen(**wanted: Any) -> str:
    if "area" in wanted:
        wanted["area"] = parse_area(wanted["area"])
    return "".join(each.id for each in Selection(**wanted).of(SENSORS))


def test_what_is_not_named_does_not_matter() -> None:
    assert chosen() == "abcde"


def test_kind_tags_and_area_must_all_fit() -> None:
    assert chosen(kind="weather") == "ab"
    assert chosen(tags=("roof",)) == "ab"
    assert chosen(tags=("roof", "old")) == "b"
    assert chosen(area="0,0,15,90") == "a"
    assert chosen(kind="quake", area="0,0,15,90") == ""
    assert chosen(kind="none") == ""


def test_the_borders_belong_to_an_area() -> None:
    assert chosen(area="10,50,20,50") == "ab"
    assert chosen(area="10.0001,50,20,50") == "b"
    assert chosen(area="10,50.0001,20,90") == ""


def test_an_area_may_cross_the_180th_meridian() -> None:
    assert chosen(area="178,-20,-178,0") == "cd"
    assert chosen(area="178,-20,180,0") == "c"
    assert chosen(area="-180,-90,180,90") == "abcd"


@given(LONGITUDES, LATITUDES, LONGITUDES, LATITUDES, st.builds(Place, LONGITUDES, LATITUDES))
def test_a_place_is_in_an_area_or_in_the_rest_of_its_band(
    west: float, south: float, east: float, north: float, place: Place
) -> None:
    assume(west != east)
    area = Area(west, min(south, north), east, max(south, north))
    rest = Area(east, area.south, west, area.north)
    in_band = area.south <= place.latitude <= area.north
    assert in_band == (area.holds(place) or rest.holds(place))
    assert not area.holds(None)
    on_border = place.longitude in (west, east)
    assert not (area.holds(place) and rest.holds(place)) or on_border


@pytest.mark.parametrize("value", ["1,2,3,4", " 1, 2 ,3,4.0", [1, 2, 3, 4], (1, 2.0, 3, 4)])
def test_an_area_is_a_text_or_a_list(value: object) -> None:
    assert parse_area(value) == Area(1, 2, 3, 4)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "1,2,3",
        "1,2,3,4,5",
        "a,2,3,4",
        "nan,2,3,4",
        "1,2,inf,4",
        "181,2,3,4",
        "1,2,-181,4",
        "1,-91,3,4",
        "1,4,3,2",
        None,
        5,
        [1, 2, 3],
        [1, 2, 3, None],
        [1, 2, 3, True],
        "1" * 10_000,
    ],
)
def test_another_area_is_refused(value: object) -> None:
    with pytest.raises(SensorRefused, match="area") as refused:
        parse_area(value)
    assert len(str(refused.value)) < 500
