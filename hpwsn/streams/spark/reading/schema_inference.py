"""Infers a schema from a sample of events: the fields in the order of their appearance, each with a type.

The option `inferSchema` requests it. A field has the type of its values: BOOLEAN, BIGINT, DOUBLE, TIMESTAMP
for texts that are all ISO 8601 with date and time, else STRING. A field with values of several types, a
structure or only nulls is a STRING. Spark ignores the case of names, so a name that differs only in case is
left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql.types import (
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from hpwsn.errors import HpwsnError
from hpwsn.streams.definition.schema import BIGINT, TIMESTAMP, ValueRefused, value_of
from hpwsn.streams.spark.reading.broker_link import BrokerLink
from hpwsn.streams.spark.reading.read_options import ReadOptions

SAMPLE = 1000
"""Maximum events in the sample."""
_has_time = re.compile(r"\d{4}-?\d\d-?\d\d[T ]\d\d:?\d\d.*").fullmatch


def infer_schema(link: BrokerLink, options: ReadOptions) -> StructType:
    """The schema of the oldest events of the topics; HpwsnError if there is no event."""
    events = link.sample(options.topics, SAMPLE)
    if not any(events):
        raise HpwsnError(
            f"there is no event on {options.subject} to infer a schema from; publish one, or give a schema"
        )
    return schema_of_events(events)


def schema_of_events(events: Iterable[Mapping[str, Any]]) -> StructType:
    """The schema in which all events can be read."""
    kinds: dict[str, set[str]] = {}
    for event in events:
        for name, value in event.items():
            kinds.setdefault(name, set()).add(_kind(value))
    names: dict[str, str] = {}
    for name in kinds:
        names.setdefault(name.lower(), name)
    return StructType([StructField(name, _type(kinds[name] - {"null"})) for name in names.values()])


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer" if _fits(value, BIGINT) else "number"
    if isinstance(value, float):
        return "number"
    return "time" if isinstance(value, str) and _has_time(value) and _fits(value, TIMESTAMP) else "text"


def _fits(value: object, kind: Any) -> bool:
    try:
        return value_of(value, kind) is not None
    except ValueRefused:
        return False


def _type(kinds: set[str]) -> DataType:
    if kinds == {"boolean"}:
        return BooleanType()
    if kinds == {"integer"}:
        return LongType()
    if kinds == {"time"}:
        return TimestampType()
    return DoubleType() if kinds and kinds <= {"integer", "number"} else StringType()
