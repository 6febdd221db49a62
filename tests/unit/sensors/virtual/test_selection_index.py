"""The index finds the same virtual sensors as a look at all of them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hpwsn.sensors.physical.physical_sensor import parse_sensor
from hpwsn.sensors.physical.selection import Area, Selection
from hpwsn.sensors.virtual.selection_index import SelectionIndex

KINDS, TAGS = ["weather", "quake"], ["roof", "north", "old"]
selections = st.builds(
    Selection,
    st.none() | st.sampled_from(KINDS),
    st.lists(st.sampled_from(TAGS), max_size=3).map(tuple),
    st.none() | st.just(Area(0, 0, 10, 10)),
)
names = st.sampled_from("abcdef")
sensors = st.fixed_dictionaries(
    {
        "id": st.just("s1"),
        "kind": st.sampled_from(KINDS),
        "quantities": st.just({"t": {"unit": "degC"}}),
        "tags": st.lists(st.sampled_from(TAGS), max_size=3),
        "place": st.none() | st.sampled_from([5, 20]).map(lambda x: {"longitude": x, "latitude": 5}),
    }
)


@given(st.lists(st.tuples(names, st.none() | selections), max_size=15), sensors)
def test_the_index_finds_what_a_look_at_all_finds(
    changes: list[tuple[str, Selection | None]], document: dict[str, Any]
) -> None:
    index, plain = SelectionIndex(), {}
    for name, selection in changes:
        if selection is None:
            index.discard(name)
            plain.pop(name, None)
        else:
            index.add(name, selection)
            plain[name] = selection
    sensor = parse_sensor(document)
    found = list(index.selecting(sensor))
    assert len(found) == len(set(found))
    assert set(found) == {name for name, selection in plain.items() if selection.selects(sensor)}


def test_an_index_from_which_all_was_taken_is_empty() -> None:
    index = SelectionIndex()
    for number in range(10):
        index.add(str(number), Selection(kind="weather"))
    for number in range(10):
        index.discard(str(number))
    sensor = parse_sensor({"id": "s1", "kind": "weather", "quantities": {"t": {"unit": "K"}}})
    assert list(index.selecting(sensor)) == []
    assert not index._shelves
    assert not index._shelf_of
