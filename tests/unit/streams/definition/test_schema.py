"""Schemas in Spark's DDL, and values of JSON as values of their types."""

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.streams.definition.schema import (
    SIMPLE,
    Schema,
    SchemaError,
    Type,
    ValueRefused,
    event_of,
    json_of,
    parse_schema,
    value_of,
)

NAMES = st.text(
    st.characters(exclude_categories=("C", "Z"), exclude_characters="._`"), min_size=1, max_size=8
).map(str.lower)
TYPES = st.one_of(
    st.sampled_from(SIMPLE).map(Type),
    st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: Type("DECIMAL", p, s))),
)


@given(st.lists(st.tuples(NAMES, TYPES), min_size=1, max_size=6, unique_by=lambda one: one[0]))
def test_a_schema_is_read_as_it_was_written(attributes: list[tuple[str, Type]]) -> None:
    schema = Schema(tuple(attributes))
    assert parse_schema(str(schema)) == schema


@given(st.text(max_size=60))
def test_any_text_is_a_schema_or_is_refused(text: str) -> None:
    try:
        assert parse_schema(text).names
    except SchemaError as error:
        assert str(error)


def test_names_of_types_are_those_of_spark_with_their_other_spellings() -> None:
    schema = parse_schema("a long, `b c` Integer NOT NULL, d: string COMMENT 'x, y', e decimal(5,2), f real")
    assert str(schema) == "a BIGINT, `b c` INT, d STRING, e DECIMAL(5,2), f FLOAT"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("a", "write `name TYPE, …`"),
        ("a INT,, b INT", "cannot be read at"),
        ("a MAP<STRING,INT>", "cannot be read"),
        ("a ARRAY", "a: unknown type ARRAY"),
        ("a INT, A STRING", "a: is named twice"),
        ("`a.b` INT", "a.b: a name must not begin with an underscore or contain a dot"),
        ("_at INT", "_at: a name must not begin with an underscore"),
        ("a DECIMAL(39,0)", "use 1 to 38 digits"),
    ],
)
def test_a_schema_that_cannot_be_says_why(text: str, words: str) -> None:
    with pytest.raises(SchemaError) as caught:
        parse_schema(text)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("value", "kind", "meant"),
    [
        (3, "DOUBLE", 3.0),
        (3.0, "INT", 3),
        ("3", "BIGINT", 3),
        (127, "TINYINT", 127),
        (1.5, "DECIMAL(4,2)", Decimal("1.50")),
        (True, "BOOLEAN", True),
        (7, "STRING", "7"),
        ("2024-02-29", "DATE", date(2024, 2, 29)),
        ("2024-01-01T08:00:00+08:00", "TIMESTAMP", datetime(2024, 1, 1, tzinfo=UTC)),
        ("2024-01-01 00:00:00", "TIMESTAMP", datetime(2024, 1, 1, tzinfo=UTC)),
        (0, "TIMESTAMP", datetime(1970, 1, 1, tzinfo=UTC)),
        (None, "INT", None),
    ],
)
def test_a_value_becomes_one_of_its_type(value: object, kind: str, meant: object) -> None:
    assert value_of(value, parse_schema(f"a {kind}")["a"]) == meant


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (128, "TINYINT"),
        (1.5, "INT"),
        (True, "INT"),
        ("yes", "BOOLEAN"),
        (1, "BOOLEAN"),
        (1000, "DECIMAL(4,2)"),
        ([1], "STRING"),
        ("2024-02-30", "DATE"),
        ("soon", "TIMESTAMP"),
        (float("inf"), "BIGINT"),
        (1e30, "TIMESTAMP"),
        ("nan", "DOUBLE"),
        ("1e999", "FLOAT"),
    ],
)
def test_a_value_of_another_type_is_refused_with_its_attribute(value: object, kind: str) -> None:
    with pytest.raises(ValueRefused, match="speed: "):
        value_of(value, parse_schema(f"a {kind}")["a"], "speed")


@given(st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)), st.integers(-12, 12))
def test_an_instant_survives_json_whatever_its_zone(naive: datetime, hours: int) -> None:
    moment = naive.replace(tzinfo=UTC) + timedelta(hours=hours)
    assert value_of(json_of(moment), Type("TIMESTAMP")) == moment


def test_what_an_event_lacks_is_null_and_what_it_has_beside_is_left_out() -> None:
    assert event_of({"a": 1, "c": 2}, parse_schema("a INT, b STRING")) == {"a": 1, "b": None}


def test_a_number_that_json_lacks_is_published_as_none() -> None:
    assert [json_of(one) for one in (math.inf, -math.inf, math.nan, 1.5)] == [None, None, None, 1.5]
