"""Runs user-defined functions in Spark workers, with rows as Arrow batches or as dicts.

The module of a function is pickled by value and sent to the workers, unless it is an installed package. All
modules that it imports must be installed on the workers.
"""

import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle

from hpwsn.errors import HpwsnError
from hpwsn.streams.definition.schema import Event, Schema, Type
from hpwsn.streams.operators.function import BatchFunction, Function, function_name


class FunctionError(HpwsnError):
    """A user-defined function returned something that its schema does not allow."""


_Batches = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
_TYPES = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
}


def register_module(call: Callable[..., Any]) -> None:
    """Pickle the module of the function by value, unless it is installed."""
    module = sys.modules.get(call.__module__)
    file = getattr(module, "__file__", None) or ""
    if module is not None and not module.__name__.startswith("hpwsn.") and "site-packages" not in file:
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


def each_event(step: Function) -> _Batches:
    """A function for mapInArrow that calls the user's function for each event."""

    def call(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            events = map(_event, batch.to_pylist())
            yield _batch([one for event in events for one in step.results(event)], step.output.schema)

    return call


def each_window(step: Function) -> _Batches:
    """A function for mapInArrow that calls the user's function for each window, a row with its events."""

    def call(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            windows = [[_event(one) for one in row["_events"]] for row in batch.to_pylist()]
            yield _batch([one for window in windows for one in step.of_window(window)], step.output.schema)

    return call


def each_batch(step: BatchFunction) -> _Batches:
    """A function for mapInArrow that calls the user's function for each batch, and checks what it returns."""
    fields, name = _fields(step.output.schema), function_name(step.call)

    def call(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for found in step.results(batch):
                if not isinstance(found, pa.RecordBatch | pa.Table):
                    raise FunctionError(
                        f"{name} must return RecordBatches or Tables, not {type(found).__name__}"
                    )
                yield from _converted(found, fields, name)

    return call


def _converted(found: pa.RecordBatch | pa.Table, fields: pa.Schema, name: str) -> list[pa.RecordBatch]:
    """What a function returned, with the columns of the schema, in its types."""
    given = pa.Table.from_batches([found]) if isinstance(found, pa.RecordBatch) else found
    columns = []
    for field in fields:
        number = given.schema.names.count(field.name)
        if number != 1:
            raise FunctionError(f"{name} returned {number} columns {field.name}; the schema has one")
        column = given.column(field.name)
        try:
            columns.append(column.cast(field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            reason = f"{name}: the column {field.name} is {column.type} and cannot become {field.type}"
            raise FunctionError(f"{reason}: {str(error).splitlines()[0]}") from None
    return pa.Table.from_arrays(columns, schema=fields).to_batches()  # type: ignore[no-any-return]


def _event(row: dict[str, Any]) -> Event:
    return {
        name: value.astimezone(UTC) if isinstance(value, datetime) else value for name, value in row.items()
    }


def _batch(events: list[Event], schema: Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(events, schema=_fields(schema))


def _fields(schema: Schema) -> pa.Schema:
    return pa.schema([(name, _arrow_type(kind)) for name, kind in schema])


def _arrow_type(kind: Type) -> pa.DataType:
    return pa.decimal128(kind.precision, kind.scale) if kind.name == "DECIMAL" else _TYPES[kind.name]
