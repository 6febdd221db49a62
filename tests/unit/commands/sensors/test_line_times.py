"""Lines without a time get that at which they were read, and lines of a sensor get different ones."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.commands.sensors.line_times import REMEMBERED, ObjectTimes, RowTimes
from hpwsn.sensors.readings.formats import CSV, LINES, parse_readings

NOON = 1_769_860_800.0
"""2026-01-31T12:00:00Z."""
MANY = 1000


def test_an_object_gets_the_time_at_which_it_was_read() -> None:
    changed = ObjectTimes(lambda: NOON)(b' {"sensor": "a", "t": 1}')
    assert json.loads(changed) == {"sensor": "a", "t": 1, "time": "2026-01-31T12:00:00.000Z"}


def test_lines_of_a_sensor_get_different_times_and_those_of_others_do_not_matter() -> None:
    change = ObjectTimes(lambda: NOON)
    lines = [f'{{"sensor": "{name}", "t": 1}}'.encode() for name in ("a", "a", "b", "a")]
    times = [json.loads(change(line))["time"][-5:] for line in lines]
    assert times == [".000Z", ".001Z", ".000Z", ".002Z"]


def test_lines_without_a_sensor_are_of_the_one_that_the_command_names() -> None:
    change = ObjectTimes(lambda: NOON)
    assert change(b'{"t": 1}') != change(b'{"t": 1}')


@pytest.mark.parametrize(
    "line", [b'{"time": "x", "t": 1}', b"{}", b"[1]", b"7", b'{"t": 1', b"\xff", b"[" * 5000]
)
def test_what_has_a_time_or_is_no_reading_stays_as_it_is(line: bytes) -> None:
    assert ObjectTimes(lambda: NOON)(line) == line


def test_a_table_gets_a_column() -> None:
    change = RowTimes(lambda: NOON)
    header = b'sensor,"temperature [degF]"'
    lines = [change(line) for line in (header, b"a,70", b"a,71", header, b"b,72", b"")]
    found = parse_readings(b"\n".join([*lines[:3], lines[4]]), CSV, 10)
    assert [each["time"] for each in found] == [f"2026-01-31T12:00:00.00{n}Z" for n in (0, 1, 0)]
    assert lines[3] == lines[0]


def test_a_table_with_times_stays_as_it_is() -> None:
    change = RowTimes(lambda: NOON)
    assert [change(line) for line in (b"time , t", b"x,1")] == [b"time , t", b"x,1"]


def test_a_table_without_sensors_is_of_the_one_that_the_command_names() -> None:
    change = RowTimes(lambda: NOON)
    assert [change(line)[-5:] for line in (b"t", b"1", b"2")] == [b",time", b".000Z", b".001Z"]


def test_the_last_times_of_many_sensors_are_forgotten() -> None:
    change = ObjectTimes(lambda: NOON)
    for number in range(REMEMBERED):
        change(b'{"sensor": "s%d", "t": 1}' % number)
    assert len(change._times._last) == REMEMBERED
    change(b'{"sensor": "a", "t": 1}')
    assert len(change._times._last) == 1


values = st.dictionaries(
    st.sampled_from(("sensor", "t", "u")),
    st.one_of(st.floats(allow_nan=False), st.text(max_size=5)),
    min_size=1,
)


@given(st.lists(values, min_size=1, max_size=20))
def test_nothing_but_the_time_is_added(objects: list[dict[str, object]]) -> None:
    change = ObjectTimes(lambda: NOON)
    changed = b"\n".join(change(json.dumps(each).encode()) for each in objects)
    found = parse_readings(changed, LINES, MANY)
    assert [{name: value for name, value in each.items() if name != "time"} for each in found] == objects
    named = [
        (each.get("sensor") if isinstance(each.get("sensor"), str) else None, each["time"]) for each in found
    ]
    assert len(set(named)) == len(named)


@given(st.binary(max_size=50).filter(lambda line: line.strip() == line != b"" and b"\n" not in line))
def test_a_line_that_is_no_object_is_left_to_the_node(line: bytes) -> None:
    try:
        found = json.loads(line.decode())
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        assert ObjectTimes(lambda: NOON)(line) == line
    change = RowTimes(lambda: NOON)
    assert change(line).startswith(line)
    assert change(line).startswith(line)
