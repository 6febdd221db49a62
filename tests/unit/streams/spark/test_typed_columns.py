"""Columns of text become what each of their values becomes by itself, and what does not fit is null."""

import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from pyspark.sql.pandas.types import to_arrow_type

from hpwsn.streams.definition.schema import Type, ValueRefused, value_of
from hpwsn.streams.spark.columns import spark_type
from hpwsn.streams.spark.reading.typed_columns import convert, is_supported

INTEGERS = [Type("TINYINT"), Type("SMALLINT"), Type("INT"), Type("BIGINT")]
ZONES = some.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
NUMBERS = some.integers() | some.floats(allow_nan=False, allow_infinity=False)
WORDS = some.sampled_from(
    [
        *(
            "",
            " ",
            "x",
            "0x10",
            "1e",
            "--5",
            "+-5",
            "5-",
            "nan",
            "Infinity",
            "-inf",
            "true",
            "True",
            "{}",
            "[1]",
        ),
        *("2024-02-30", "2024-13-01", "2024-01-01T24:30:00", "2024-01-01T00:00:60", "0000-01-01", "2024-1-1"),
        *("2024-01-01T00:00:00+25:00", "2024-01-01T0", "2024-01-01T00:00:00."),
    ]
)
VALUES = NUMBERS | some.booleans() | WORDS | some.none() | some.integers().map(str)


def arrow(kind: Type) -> pa.DataType:
    return to_arrow_type(spark_type(kind), timezone="UTC")


def text_of(value: Any) -> str | None:
    """A value as a column of text has it."""
    return value if value is None or isinstance(value, str) else json.dumps(value)


def expected(value: Any, kind: Type) -> Any:
    try:
        return value_of(value, kind)
    except ValueRefused:
        return None


def check(values: list[Any], kind: Type) -> None:
    found = convert(pa.array(list(map(text_of, values)), pa.string()), arrow(kind))
    assert found.type == arrow(kind)
    wanted = pa.array([expected(value, kind) for value in values], arrow(kind))
    assert found.to_pylist() == wanted.to_pylist()


@pytest.mark.parametrize("kind", [*INTEGERS, Type("DOUBLE"), Type("BOOLEAN"), Type("DATE")], ids=str)
@given(values=some.lists(VALUES, max_size=8))
def test_any_value_is_converted_as_by_itself(kind: Type, values: list[Any]) -> None:
    check(values, kind)


@given(values=some.lists(some.floats(-1e9, 4e9) | some.integers(-(10**11), 10**12) | WORDS | some.none()))
def test_a_number_is_a_timestamp_in_seconds(values: list[Any]) -> None:
    check(values, Type("TIMESTAMP"))


@given(
    values=some.lists(some.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=some.none() | ZONES)),
    separator=some.sampled_from("T _"),
)
def test_a_timestamp_may_have_any_zone_and_any_precision(values: list[datetime], separator: str) -> None:
    for precision in ("auto", "hours", "minutes", "seconds", "milliseconds", "microseconds"):
        check([one.isoformat(separator, precision) for one in values], Type("TIMESTAMP"))
    check([f"{one:%Y%m%dT%H%M%S}Z" for one in values if one.year > 999], Type("TIMESTAMP"))
    check([f"{one.isoformat('T', 'seconds')[:19]}.123456789Z" for one in values], Type("TIMESTAMP"))


@given(values=some.lists(some.dates()))
def test_a_date_may_be_written_without_hyphens(values: list[date]) -> None:
    check([one.isoformat() for one in values], Type("DATE"))
    check([one.isoformat().replace("-", "") for one in values], Type("DATE"))
    check([f"{one.isoformat()}T00:00:00Z" for one in values], Type("DATE"))


@given(
    values=some.lists(some.decimals(-(10**9), 10**9, places=5) | some.integers(-(10**12), 10**12) | WORDS),
    scale=some.integers(0, 6),
)
@settings(max_examples=200)
def test_a_decimal_is_rounded_half_even_and_null_outside_of_its_digits(values: list[Any], scale: int) -> None:
    # A text keeps all digits; a JSON number would become a float first.
    check([str(one) if isinstance(one, Decimal) else one for one in values], Type("DECIMAL", 10, scale))


def test_a_decimal_takes_exponents_and_many_digits() -> None:
    check([1e3, 1.5e-3, 1e30, 1e-30, "." + "3" * 60, "0" * 50 + "7", "9" * 60], Type("DECIMAL", 10, 2))


def test_a_float_beyond_its_range_is_null() -> None:
    found = convert(pa.array(["1e300", "1e400", "-1.5", "1e-400"]), pa.float32())
    assert found.to_pylist() == [None, None, -1.5, 0.0]


def test_a_string_keeps_the_text_and_a_timestamp_its_instant() -> None:
    text = pa.array([" a ", "", None, "1.50", '{"a": 1}'])
    assert convert(text, pa.string()) is text
    found = convert(pa.array(["2024-03-04 06:00:00.5+08:00"]), pa.timestamp("us", "UTC"))
    assert found.to_pylist() == [datetime(2024, 3, 3, 22, 0, 0, 500_000, UTC)]


def test_an_empty_column_has_its_type_and_structures_are_not_supported() -> None:
    for kind in (*INTEGERS, Type("DECIMAL", 5, 2), Type("TIMESTAMP"), Type("DATE"), Type("FLOAT")):
        assert is_supported(arrow(kind))
        assert convert(pa.array([], pa.string()), arrow(kind)).type == arrow(kind)
        assert convert(pa.array([None], pa.string()), arrow(kind)).null_count == 1
    assert not is_supported(pa.list_(pa.int64()))
