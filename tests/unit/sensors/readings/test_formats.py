"""The forms of readings: the same raw readings from each, and one wrong item costs no other."""

import csv
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.sensors.readings.formats import (
    CSV,
    LINES,
    OBJECTS,
    SHOWN,
    RawReading,
    ReadingsTooMany,
    ReadingsUnreadable,
    Unparsed,
    parse_readings,
)

NAMES = st.from_regex(r"[A-Za-z_é][A-Za-z0-9_.é-]{0,8}", fullmatch=True)
QUANTITIES = NAMES.filter(lambda name: name not in ("sensor", "kind", "time"))
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
UNITS = st.sampled_from(["degC", "m/s", "°F", "kg m^2"])
Table = tuple[dict[str, str | None], list[dict[str, Any]]]
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), min_size=1).map(str.strip)


def parsed(data: bytes | str, form: str | None = None, limit: int = 100) -> list[RawReading]:
    return parse_readings(data.encode() if isinstance(data, str) else data, form, limit)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Columns with their units, and rows of some of them."""
    columns: dict[str, str | None] = {"sensor": None}
    columns |= dict.fromkeys(draw(st.lists(st.sampled_from(["kind", "time"]), unique=True)))
    columns |= draw(st.dictionaries(QUANTITIES, st.none() | UNITS, max_size=4))
    rows = []
    for _ in range(draw(st.integers(1, 4))):
        row: dict[str, Any] = {}
        for name, unit in columns.items():
            if name in ("sensor", "kind", "time"):
                row[name] = draw(TEXTS.filter(bool))
            elif draw(st.booleans()):
                value = draw(NUMBERS)
                row[name] = value if unit is None else {"value": value, "unit": unit}
        rows.append(row)
    return columns, rows


def as_csv(columns: dict[str, str | None], rows: list[dict[str, Any]]) -> str:
    written = io.StringIO()
    writer = csv.writer(written)
    writer.writerow(name if unit is None else f"{name} [{unit}]" for name, unit in columns.items())
    for row in rows:
        cells = [row.get(name, "") for name in columns]
        writer.writerow(cell["value"] if isinstance(cell, dict) else cell for cell in cells)
    return written.getvalue()


@given(tables())
def test_every_form_gives_the_same_readings(
    table: tuple[dict[str, str | None], list[dict[str, Any]]],
) -> None:
    columns, rows = table
    assert parsed(as_csv(columns, rows), CSV) == parsed(as_csv(columns, rows)) == rows
    array = json.dumps(rows, ensure_ascii=False)
    lines = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    assert parsed(array, OBJECTS) == parsed(array) == rows
    assert parsed(lines, LINES) == parsed(lines) == rows
    assert parsed(json.dumps(rows[0]), OBJECTS) == parsed(json.dumps(rows[0])) == rows[:1]


def test_the_data_tells_its_form() -> None:
    reading = {"sensor": "s1", "t": 1.5}
    assert parsed(' \n {"sensor": "s1",\n "t": 1.5} ') == [reading]
    assert parsed('{"sensor": "s1", "t": 1.5}\n{"t": 2}\n') == [reading, {"t": 2}]
    assert parsed('\ufeff[{"sensor": "s1", "t": 1.5}]') == [reading]
    assert parsed("sensor,t\ns1,1.5\n") == [reading]


def test_a_column_may_name_the_unit_of_its_values() -> None:
    text = "sensor, temperature [degF] ,time,wind\r\ns1, 50 ,2026-01-31T12:00:00Z,\r\n\r\n s2 ,-4e1,, .5 \r\n"
    assert parsed(text, CSV) == [
        {
            "sensor": "s1",
            "temperature": {"value": 50.0, "unit": "degF"},
            "time": "2026-01-31T12:00:00Z",
        },
        {"sensor": "s2", "temperature": {"value": -40.0, "unit": "degF"}, "wind": 0.5},
    ]


@pytest.mark.parametrize("cell", ["1,5", "x", "nan", "inf", "0x10", "1_000", "1 2", "--1", "1e", "٣"])
def test_a_cell_that_is_not_a_number_stays_a_text_for_the_checks(cell: str) -> None:
    assert parsed(f'sensor,t\ns1,"{cell}"\n', CSV) == [{"sensor": "s1", "t": cell}]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("s1,1,2", "the row has 3 cells, and the header 2"),
        ("s1", "the row has 1 cells, and the header 2"),
        ('s1,"1', "is not CSV"),
        ('s1,"1"2', "is not CSV"),
    ],
)
def test_a_wrong_row_is_one_reading_that_cannot_be_parsed(row: str, problem: str) -> None:
    found = parsed(f"sensor,t\ns0,0\n{row}\n", CSV)
    assert found[0] == {"sensor": "s0", "t": 0.0}
    assert isinstance(found[1], Unparsed)
    assert (found[1].text, len(found)) == (row, 2)
    assert problem in found[1].problem


@pytest.mark.parametrize("line", ['{"t": 1', '{"t": 1} {"t": 2}', "x", "[" * 100_000, "1" * 5000])
def test_a_wrong_line_is_one_reading_that_cannot_be_parsed(line: str) -> None:
    first, second, third = parsed(f'{{"t": 1}}\n{line}\n{{"t": 3}}\n', LINES)
    assert (first, third) == ({"t": 1}, {"t": 3})
    assert isinstance(second, Unparsed)
    assert (second.text, len(second.problem) < 2 * SHOWN) == (line, True)


def test_a_line_ends_only_with_a_line_feed() -> None:
    assert parsed('{"sensor": "a\u2028b"}\r\n \t\n{"t": 1}', LINES) == [{"sensor": "a\u2028b"}, {"t": 1}]


@pytest.mark.parametrize("form", [OBJECTS, LINES, None])
def test_an_object_with_a_field_twice_loses_no_value_in_silence(form: str | None) -> None:
    twice = '{"t": 1, "t": 2}'
    data = f'{{"t": 0}}\n{twice}' if form == LINES else f'[{{"t": 0}}, {twice}]'
    good, bad = parsed(data, form)
    assert good == {"t": 0}
    assert (bad.text, bad.problem) == (twice, "the field 't' is given twice; give each field once")


@pytest.mark.parametrize("item", [1, "x", None, True, [], [[]]])
def test_an_item_that_is_no_object_is_left_to_the_checks(item: Any) -> None:
    assert parsed(json.dumps([item, {"t": 1}]), OBJECTS) == [item, {"t": 1}]


@pytest.mark.parametrize(
    ("data", "form", "problem"),
    [
        (b"\xff", None, "byte 0 is not UTF-8"),
        (b'{"t": \xe9}', OBJECTS, "byte 6 is not UTF-8"),
        (b"", None, "not JSON"),
        (b"", OBJECTS, "not JSON"),
        (b" \n ", None, "not JSON"),
        (b"\n \n", LINES, "there is no reading"),
        (b"[]", None, "there is no reading"),
        (b"", CSV, "there is no header"),
        (b"sensor,t\n", CSV, "there is no reading"),
        (b"sensor,,t\n1,2,3\n", CSV, "the header has ''"),
        (b"sensor,t [x\n1,2\n", CSV, "the header has 't [x'"),
        (b"t,t\n1,2\n", CSV, "the header has 't' twice"),
        (b"t,t [K]\n1,2\n", CSV, "the header has 't' twice"),
        (b'"t\n', CSV, "is not CSV"),
        (b'[{"t": 1}', None, "line 1, column"),
        (b'[{"t": 1},\n{"t": 2}', OBJECTS, "line 2, column"),
        (b"[" * 100_000, None, "cannot be read"),
        (b"[" + b"1" * 5000 + b"]", OBJECTS, "cannot be read"),
    ],
)
def test_data_without_items_is_not_readable(data: bytes, form: str | None, problem: str) -> None:
    with pytest.raises(ReadingsUnreadable, match=problem.replace("[", r"\[")) as refused:
        parsed(data, form)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    ("data", "form"),
    [
        ('[{"t": 1}, {"t": 2}, {"t": 3}]', OBJECTS),
        ('{"t": 1}\n{"t": 2}\n\n{"t": 3}', LINES),
        ("t\n1\n2\n\n3\n", CSV),
    ],
)
def test_as_many_readings_as_allowed_and_not_one_more(data: str, form: str) -> None:
    assert len(parsed(data, form, 3)) == 3
    with pytest.raises(ReadingsTooMany, match=r"more than the 2 readings .*sensors\.readings_limit"):
        parsed(data, form, 2)


@given(st.binary(), st.sampled_from([None, OBJECTS, LINES, CSV]))
def test_any_bytes_are_readings_or_refused(data: bytes, form: str | None) -> None:
    try:
        assert parsed(data, form)
    except (ReadingsUnreadable, ReadingsTooMany) as error:
        assert str(error)


@given(st.text(alphabet='{}[]":,t1\n\r" ;e-.'), st.sampled_from([None, OBJECTS, LINES, CSV]))
def test_text_that_is_nearly_readings_is_readings_or_refused(text: str, form: str | None) -> None:
    try:
        assert parsed(text, form)
    except (ReadingsUnreadable, ReadingsTooMany) as error:
        assert str(error)
