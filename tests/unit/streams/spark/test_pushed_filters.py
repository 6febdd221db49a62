"""Filters that the node evaluates never leave out an event that Spark would select."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from operator import eq, ge, gt, le, lt
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as some
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from hpwsn.matching.content.content_filters import compile_condition
from hpwsn.streams.spark.reading.pushed_filters import condition_of
from hpwsn.streams.spark.reading.row_batches import RAW
from hpwsn.streams.spark.reading.typed_columns import convert
from hpwsn_client.wsn.formats.json_events import encode_event
from hpwsn_client.wsn.operations.filters import ContentFilter
from hpwsn_client.wsn.soap.names import DIALECT_PREDICATES

SCHEMA = pa.schema(
    {"n": pa.int64(), "x": pa.float64(), "s": pa.string(), "ok": pa.bool_(), "t": pa.timestamp("us", "UTC")}
)
MOMENTS = [datetime(2024, 3, 4, 6, minute, tzinfo=UTC) for minute in range(3)]
TESTS = {EqualTo: eq, GreaterThan: gt, GreaterThanOrEqual: ge, LessThan: lt, LessThanOrEqual: le}
VALUES = some.sampled_from(
    [
        *(
            0,
            1,
            2,
            1.0,
            1.5,
            -1,
            2**53 + 1,
            2**70,
            "1",
            "1.5",
            "x",
            "xy",
            "x%y",
            "",
            "true",
            True,
            False,
            None,
        ),
        *({"n": 1}, [1, 2], ["x"], "2024-03-04T06:01:00Z", "2024-03-04T14:01:00+08:00", 1709532060, '{"a"'),
    ]
)
OPERANDS: dict[str, list[Any]] = {
    "n": [0, 1, 2, 2**53 + 1],
    "x": [0.0, 1.0, 1.5],
    "s": ["1", "x", "x%", "", "true", "{", "t"],
    "ok": [True, False],
    "t": MOMENTS,
}


@some.composite
def filters(draw: some.DrawFn) -> Filter:
    name = draw(some.sampled_from(SCHEMA.names))
    operands = some.sampled_from(OPERANDS[name])
    kind = draw(some.sampled_from([*TESTS, In, IsNotNull, *([StringStartsWith] if name == "s" else [])]))
    if kind is IsNotNull:
        return IsNotNull((name,))
    return kind((name,), tuple(draw(some.lists(operands, min_size=1))) if kind is In else draw(operands))


def selects(given: Filter, row: dict[str, Any]) -> bool:
    value = row[given.attribute[0]]
    if value is None:
        return False
    if isinstance(given, StringStartsWith):
        return value.startswith(given.value)
    if isinstance(given, In):
        return value in given.value
    return isinstance(given, IsNotNull) or TESTS[type(given)](value, given.value)


def row_of(event: dict[str, Any]) -> dict[str, Any]:
    """What Spark's columns have of an event."""
    return {
        field.name: convert(pa.array([text(event.get(field.name))], pa.string()), field.type)[0].as_py()
        for field in SCHEMA
    }


def text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


@given(
    some.lists(filters(), max_size=4), some.dictionaries(some.sampled_from(SCHEMA.names), VALUES, min_size=1)
)
def test_an_event_that_spark_selects_satisfies_the_condition(given_filters, event) -> None:
    condition = condition_of(given_filters, SCHEMA)
    if not condition or not all(selects(one, row_of(event)) for one in given_filters):
        return
    holds = compile_condition(ContentFilter(DIALECT_PREDICATES, condition, ()))
    assert holds(encode_event(event)), condition


@pytest.mark.parametrize(
    ("one", "condition"),
    [
        (EqualTo(("n",), 1), '(n = 1 or n like "%")'),
        (GreaterThan(("x",), 1.5), '(x > 1.5 or x like "%")'),
        (In(("s",), ("a", "b")), '(s = "a" or s = "b")'),
        (StringStartsWith(("s",), "50%"), ""),
        (StringStartsWith(("s",), "a_"), r'(s like "a\\_%")'),
        (IsNotNull(("n",)), "(exists(n))"),
        (IsNotNull(("s",)), ""),
        (EqualTo(("s",), "21"), ""),
        (GreaterThan(("s",), "a"), ""),
        (EqualTo(("n",), 2**60), ""),
        (EqualTo(("n", "deep"), 1), ""),
        (EqualTo(("other",), 1), ""),
        (IsNull(("n",)), ""),
        (Not(EqualTo(("n",), 1)), ""),
        (EqualTo(("ok",), True), '(ok = true or ok like "%")'),
        (LessThan(("t",), MOMENTS[0].replace(tzinfo=None)), ""),
    ],
)
def test_a_filter_is_a_condition_only_where_it_selects_enough(one: Filter, condition: str) -> None:
    assert condition_of([one], SCHEMA) == condition


def test_rows_without_a_schema_have_no_fields_to_compare() -> None:
    assert condition_of([EqualTo(("topic",), "a")], RAW) == ""
