"""Translates the filters of a Spark query to a condition in predicates, which the node evaluates.

The node compares values as JSON has them, Spark compares columns that were converted from them: the text
"61" is more than 60 for a column of type DOUBLE, but not for the node. So the condition selects at least the
events that the filters select, and Spark evaluates the filters again. A filter without such a condition is
left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)

from hpwsn.matching.language.predicates import attribute_text, operand_text
from hpwsn.matching.language.values import Instant
from hpwsn.streams.spark.reading.row_batches import ABOUT, RAW

MAX_CONDITIONS = 5
"""The node expands alternatives, two for each condition, to a disjunction of conjunctions."""
MAX_ALTERNATIVES = 20
_EXACT = 2**53
"""Integers up to this size are exact as a double, which is how the node compares numbers."""
_OPERATORS: Mapping[type[Filter], str] = {
    EqualTo: "=", GreaterThan: ">", GreaterThanOrEqual: ">=", LessThan: "<", LessThanOrEqual: "<=",
}  # fmt: skip
_is_json = re.compile(r"\s*[-+.\d{\[].*|\s*|true|false|null", re.DOTALL).fullmatch
"""Whether a text may be that of a JSON value other than a text, which a column of type STRING also holds."""


def condition_of(filters: Sequence[Filter], schema: pa.Schema) -> str:
    """A condition that holds for every event whose row satisfies all filters; empty if there is none."""
    if schema.names == RAW.names:
        return ""
    types = {field.name: field.type for field in schema if field.name not in ABOUT}
    found = [_alternatives(one, types) for one in filters]
    conditions = list(dict.fromkeys(one for one in found if one))
    return " and ".join(f"({one})" for one in conditions[:MAX_CONDITIONS])


def _alternatives(given: Filter, types: Mapping[str, pa.DataType]) -> str:
    attribute: tuple[str, ...] = getattr(given, "attribute", ())
    kind = types.get(attribute[0]) if len(attribute) == 1 else None
    if kind is None or "`" in attribute[0]:
        return ""
    name = attribute_text(attribute[0])
    test, operand, others = _comparison(kind, name)
    if isinstance(given, IsNotNull):
        return f"exists({name})" if others else ""
    if isinstance(given, StringStartsWith):
        return _prefix(name, given.value) if pa.types.is_string(kind) else ""
    values = given.value if isinstance(given, In) else [getattr(given, "value", None)]
    sign = "=" if isinstance(given, In) else _OPERATORS.get(type(given), "")
    if not sign or not 0 < len(values) <= MAX_ALTERNATIVES or not all(test(one) for one in values):
        return ""
    if sign != "=" and not _is_ordered(kind):
        return ""
    return " or ".join([*(f"{name} {sign} {operand_text(operand(one))}" for one in values), *others])


def _is_ordered(kind: pa.DataType) -> bool:
    """Whether the node orders the values as Spark does; a text may also be a number for the node."""
    return not pa.types.is_string(kind) and not pa.types.is_boolean(kind)


def _comparison(
    kind: pa.DataType, name: str
) -> tuple[Callable[[Any], bool], Callable[[Any], Any], Sequence[str]]:
    """Which values can be compared, the operand of a value, and conditions for values of other JSON types."""
    text, number = f'{name} like "%"', f"{name} <= 0 or {name} > 0"
    if pa.types.is_integer(kind):
        return lambda v: type(v) is int and abs(v) < _EXACT, float, [text]
    if pa.types.is_float64(kind):
        return lambda v: type(v) in (int, float) and abs(v) < _EXACT, float, [text]
    if pa.types.is_boolean(kind):
        return lambda v: type(v) is bool, bool, [text]
    if pa.types.is_timestamp(kind):
        return _is_instant, lambda v: Instant(v.timestamp()), [number]
    if pa.types.is_string(kind):
        return lambda v: isinstance(v, str) and not _is_json(v), str, []
    # A DECIMAL or a FLOAT is rounded, and a DATE may be written as a number.
    return lambda v: False, str, []


def _is_instant(value: object) -> bool:
    return isinstance(value, datetime) and value.tzinfo is not None


def _prefix(name: str, prefix: str) -> str:
    if _is_json(prefix) or any(word.startswith(prefix) for word in ("true", "false")):
        return ""
    pattern = re.sub(r"([\\%_])", r"\\\1", prefix)
    return f"{name} like {operand_text(pattern + '%')}"
