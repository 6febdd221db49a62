"""Rows of the history as Arrow tables, and back.

A table of readings has `offset`, `sensor`, `time`, `longitude`, `latitude` and a column of doubles for each
quantity; their kind is in the metadata, as in the name of the folder. A table of results has the fields of
their events. Times are in milliseconds in UTC. A table has at most MOST_QUANTITIES columns of quantities, so
that sensors of one kind with thousands of different quantities do not make tables that are nearly empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from hpwsn.sensors.history.committed_results import whole, without_nulls
from hpwsn.sensors.history.history_query import Row
from hpwsn.sensors.physical.physical_sensor import MOST_QUANTITIES as MOST_OF_SENSOR
from hpwsn.sensors.readings.reading import Reading
from hpwsn.sensors.readings.reading_times import time_text

MOST_QUANTITIES = 2 * MOST_OF_SENSOR
"""Columns of quantities in one table."""
TIME = pa.timestamp("ms", "UTC")
FIXED = pa.schema(
    [
        ("offset", pa.int64()),
        ("sensor", pa.string()),
        ("time", TIME),
        ("longitude", pa.float64()),
        ("latitude", pa.float64()),
    ]
)
RESULT_SCHEMA = pa.schema(
    [
        ("offset", pa.int64()),
        ("sensor", pa.string()),
        ("time", TIME),
        ("quantity", pa.string()),
        ("unit", pa.string()),
        ("value", pa.float64()),
        ("count", pa.int64()),
        ("sensors", pa.int64()),
        ("states", pa.list_(pa.string())),
        ("changed", pa.bool_()),
        ("text", pa.string()),
    ]
)
KIND = b"kind"
"""The key of the kind in the metadata of a table of readings."""


def reading_tables(kind: str, rows: Sequence[Row]) -> Iterator[pa.Table]:
    """Readings of one kind as tables, nearly always as one."""
    names: set[str] = set()
    begin = 0
    ordered = rows
    if len(set().union(*[_reading(row).values for row in rows])) > MOST_QUANTITIES:
        ordered = sorted(rows, key=lambda row: _reading(row).sensor)
    for place, row in enumerate(ordered):
        values = _reading(row).values
        if len(names) + len(values) > MOST_QUANTITIES and len(names | values.keys()) > MOST_QUANTITIES:
            yield _reading_table(kind, ordered[begin:place], sorted(names))
            names, begin = set(), place
        names |= values.keys()
    yield _reading_table(kind, ordered[begin:], sorted(names))


def _reading_table(kind: str, rows: Sequence[Row], quantities: Sequence[str]) -> pa.Table:
    readings = [_reading(row) for row in rows]
    columns: list[Any] = [
        pa.array([row.offset for row in rows], pa.int64()),
        pa.array([reading.sensor for reading in readings], pa.string()),
        pa.array([row.time for row in rows], pa.int64()).cast(TIME),
        pa.array([reading.longitude for reading in readings], pa.float64()),
        pa.array([reading.latitude for reading in readings], pa.float64()),
    ]
    columns += [
        pa.array([reading.values.get(name) for reading in readings], pa.float64()) for name in quantities
    ]
    return pa.Table.from_arrays(columns, schema=reading_schema(kind, quantities))


def reading_schema(kind: str, quantities: Iterable[str]) -> pa.Schema:
    """The schema of readings of a kind with these quantities."""
    fields = [*FIXED, *(pa.field(name, pa.float64()) for name in quantities)]
    return pa.schema(fields, {KIND: kind.encode()})


def quantities_of(schema: pa.Schema) -> list[str]:
    """The quantities of a table of readings, in the order of its columns."""
    return [name for name in schema.names if name not in FIXED.names]


def result_table(rows: Sequence[Row]) -> pa.Table:
    """Results as a table; what one does not have is null."""
    columns = [
        pa.array([row.offset for row in rows], pa.int64()),
        *(
            pa.array([row.time for row in rows], pa.int64()).cast(TIME)
            if field.name == "time"
            else pa.array([_result(row).get(field.name) for row in rows], field.type)
            for field in list(RESULT_SCHEMA)[1:]
        ),
    ]
    return pa.Table.from_arrays(columns, schema=RESULT_SCHEMA)


def rows_of(table: pa.Table) -> list[Row]:
    """The rows of a table of either schema, in its order."""
    if table.schema.names == RESULT_SCHEMA.names:
        return _result_rows(table)
    kind = (table.schema.metadata or {})[KIND].decode()
    offsets, sensors, times, longitudes, latitudes = (_values(table, name) for name in FIXED.names)
    quantities = quantities_of(table.schema)
    measured = zip(*[_values(table, name) for name in quantities], strict=True)
    found = []
    for offset, sensor, time, longitude, latitude, numbers in zip(
        offsets, sensors, times, longitudes, latitudes, measured, strict=True
    ):
        values = {
            name: number for name, number in zip(quantities, numbers, strict=True) if number is not None
        }
        found.append(Row(time, offset, Reading(sensor, kind, time, values, longitude, latitude)))
    return found


def _result_rows(table: pa.Table) -> list[Row]:
    names = RESULT_SCHEMA.names
    found = []
    for values in zip(*[_values(table, name) for name in names], strict=True):
        fields = dict(zip(names, values, strict=True))
        offset, time = fields.pop("offset"), fields["time"]
        fields |= {"time": time_text(time), "value": whole(fields["value"])}
        found.append(Row(time, offset, without_nulls(fields)))
    return found


def _values(table: pa.Table, name: str) -> list[Any]:
    column = table.column(name)
    if name == "time":
        column = column.cast(pa.int64())
    values: list[Any] = column.to_pylist()
    return values


def _reading(row: Row) -> Reading:
    assert isinstance(row.item, Reading)
    return row.item


def _result(row: Row) -> Mapping[str, Any]:
    assert not isinstance(row.item, Reading)
    return row.item
