"""Record batches as JSON lines: every type, beside json.dumps of the same values."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.streams.arrow_json import UnsupportedColumn, json_lines

NOON = datetime(2016, 8, 1, 12, 0, 0, tzinfo=UTC)
ROWS = st.lists(
    st.tuples(
        st.none() | st.text(st.characters(codec="utf-8")),
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.none() | st.floats(),
        st.none() | st.booleans(),
        st.none()
        | st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)).map(lambda t: t.replace(tzinfo=UTC)),
    ),
    max_size=20,
)
NAMES = ["text", "number", "float", "yes or no", "moment"]
TYPES = [pa.string(), pa.int64(), pa.float64(), pa.bool_(), pa.timestamp("us", "UTC")]


def lines(**columns: pa.Array) -> list[Any]:
    made = json_lines(pa.record_batch(columns))
    assert made.endswith(b"\n")
    return [json.loads(line) for line in made[:-1].split(b"\n")]


def tokens(column: pa.Array) -> list[str]:
    return [line[6:-1] for line in json_lines(pa.record_batch({"x": column})).decode().splitlines()]


def expected(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else value


@given(ROWS, st.integers(0, 5))
def test_rows_are_what_json_would_write(rows: list[tuple[Any, ...]], skipped: int) -> None:
    columns = [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(TYPES)]
    made = json_lines(pa.record_batch(columns, NAMES).slice(skipped))
    found = [json.loads(line) for line in made.split(b"\n")[:-1]]
    wanted = [dict(zip(NAMES, map(expected, row), strict=True)) for row in rows[skipped:]]
    assert found == wanted
    assert [repr(row["float"]) for row in found] == [repr(row["float"]) for row in wanted]


def test_numbers_keep_their_kind() -> None:
    assert tokens(pa.array([1.0, 0.1, None, math.nan, -math.inf, -0.0])) == [
        "1.0",
        "0.1",
        "null",
        "null",
        "null",
        "-0.0",
    ]
    assert tokens(pa.array([0.1, 2], pa.float32())) == ["0.1", "2.0"]
    assert tokens(pa.array([1, 2], pa.float16())) == ["1.0", "2.0"]
    assert tokens(pa.array([2**64 - 1], pa.uint64())) == ["18446744073709551615"]


def test_decimals_keep_their_digits() -> None:
    long = Decimal("-12345678901234567890.12")
    assert tokens(pa.array([long, None, Decimal("0.5")], pa.decimal128(22, 2))) == [str(long), "null", "0.5"]
    assert tokens(pa.array([Decimal("1.50"), Decimal(0)], pa.decimal128(20, 9))) == ["1.5", "0.0"]
    assert tokens(pa.array([Decimal("-100.00"), Decimal("0.00")], pa.decimal64(5, 2))) == ["-100.0", "0.0"]
    assert tokens(pa.array([Decimal(0), Decimal(10**19)], pa.decimal128(20, 0))) == ["0", str(10**19)]
    assert tokens(pa.array([[Decimal(10**19)], [Decimal(0)]], pa.list_(pa.decimal128(20, 0)))) == [
        f"[{10**19}]",
        "[0]",
    ]


@pytest.mark.parametrize(
    ("kind", "most"), [(pa.decimal32, 9), (pa.decimal64, 18), (pa.decimal128, 38), (pa.decimal256, 76)]
)
def test_every_decimal_is_a_json_number(kind: Callable[[int, int], pa.DataType], most: int) -> None:
    integers = [0, 1, -7, 10 ** (most - 1) + 1]
    column = pa.array(map(Decimal, integers), kind(most, 0))
    for scale in range(-most, most + 1):
        found = tokens(column.view(kind(most, scale)))
        values = [Decimal(f"{integer}E{-scale}") for integer in integers]
        assert [json.loads(token, parse_float=Decimal, parse_int=Decimal) for token in found] == values
    for scale in (-most - 1, most + 1):
        with pytest.raises(UnsupportedColumn, match="x has type decimal"):
            tokens(pa.nulls(1, kind(most, scale)))


def test_times_are_iso_8601_in_utc_with_as_many_digits_as_they_need() -> None:
    moments = [NOON, NOON.replace(microsecond=500000)]
    for kind in (
        pa.timestamp("us", "UTC"),
        pa.timestamp("us", "Asia/Shanghai"),
        pa.timestamp("ns", "+02:00"),
    ):
        found = tokens(pa.array(moments, kind))
        assert found == ['"2016-08-01T12:00:00Z"', '"2016-08-01T12:00:00.500000Z"']
    assert tokens(pa.array([1, 1000, 10**9], pa.timestamp("ns"))) == [
        '"1970-01-01T00:00:00.000000001"',
        '"1970-01-01T00:00:00.000001"',
        '"1970-01-01T00:00:01"',
    ]
    assert tokens(pa.array([date(2016, 8, 1)])) == ['"2016-08-01"']
    assert tokens(pa.array([time(6, 1, 2)], pa.time32("s"))) == ['"06:01:02"']


def test_dictionaries_structs_lists_maps_and_bytes() -> None:
    columns = {
        "dictionary": pa.array(["x", None, "x"]).dictionary_encode(),
        "struct": pa.array([{"a": 1, "b": 'q"'}, None, {"a": None, "b": "é"}]),
        "list": pa.array([[1, 2], None, []]),
        "map": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
        "moments": pa.array([[NOON], None, [None]], pa.list_(pa.timestamp("us", "UTC"))),
        "bytes": pa.array([b"ab", None, b""]),
        "view": pa.array(["v", None, ""], pa.string_view()),
        "nothing": pa.nulls(3),
    }
    assert lines(**columns) == [
        {
            "dictionary": "x",
            "struct": {"a": 1, "b": 'q"'},
            "list": [1, 2],
            "map": {"k": 1},
            "moments": ["2016-08-01T12:00:00Z"],
            "bytes": "YWI=",
            "view": "v",
            "nothing": None,
        },
        dict.fromkeys(columns),
        {
            "dictionary": "x",
            "struct": {"a": None, "b": "é"},
            "list": [],
            "map": {},
            "moments": [None],
            "bytes": "",
            "view": "",
            "nothing": None,
        },
    ]


def test_batches_without_rows_or_columns() -> None:
    assert json_lines(pa.record_batch({"a": pa.array([], pa.int64())})) == b""
    assert json_lines(pa.RecordBatch.from_struct_array(pa.array([{}, {}], pa.struct([])))) == b"{}\n{}\n"


@pytest.mark.parametrize(
    ("batch", "named"),
    [
        (pa.record_batch([pa.array([1], pa.duration("s"))], ["span"]), "span has type duration"),
        (pa.record_batch([pa.array([1]), pa.array([2])], ["a", "a"]), "a occurs 2 times"),
    ],
)
def test_a_column_that_an_event_cannot_have_is_named(batch: pa.RecordBatch, named: str) -> None:
    with pytest.raises(UnsupportedColumn, match=named):
        json_lines(batch)
