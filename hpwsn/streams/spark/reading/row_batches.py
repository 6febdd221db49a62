"""Turns pages of rows into Arrow batches of a schema, and keeps the rows of one partition of a key.

A page (docs/events.md, rows) has the values of the requested fields as lines of text, and for each run of
rows its topic, offsets, time and message id. Arrow's CSV reader converts the lines directly to the types of
the schema. A column in which a value does not fit is read as text from then on, and converted by
`typed_columns`.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Mapping, Sequence
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from hpwsn.errors import HpwsnError
from hpwsn.streams.spark.reading.broker_link import RowsPage
from hpwsn.streams.spark.reading.typed_columns import UTC_TIMESTAMP, convert, finite, is_supported

DATA = "@data"
"""The column of a page that is the whole event as JSON."""
RAW = pa.schema(
    {
        "topic": pa.string(),
        "offset": pa.int64(),
        "time": UTC_TIMESTAMP,
        "id": pa.string(),
        "data": pa.string(),
    }
)
"""The columns of a reader without a schema."""
ABOUT: Mapping[str, pa.DataType] = {f"_{name}": RAW.field(name).type for name in RAW.names[:-1]}
"""The columns of a schema that describe the notification instead of its content."""
_DDL = {pa.string(): "STRING", pa.int64(): "BIGINT", UTC_TIMESTAMP: "TIMESTAMP"}
_DELIMITER, _NULL = "\x1f", "\x1a"
_BREAKS = {"\x1d": "\n", "\x1c": "\r"}
"""How a page writes the line breaks in a value."""
_PARSE = csv.ParseOptions(delimiter=_DELIMITER, quote_char=False, escape_char=False, ignore_empty_lines=False)


class SchemaRefused(HpwsnError):
    """The data source cannot read events with this schema."""


class RowBatches:
    """Converts the pages of one reader to batches of `schema`.

    With `key`, only the rows whose key belongs to the partition `part` of `parts` are kept. A key is compared
    as text, and a missing key belongs to the first partition.
    """

    def __init__(self, schema: pa.Schema, key: str = "", part: int = 0, parts: int = 1) -> None:
        self._schema = schema
        self._key, self._part, self._parts = key, part, parts
        self._names = [name for name in map(_requested, self._sources()) if name]
        if key:
            self._names.append(key)
        self._loose: set[int] = set()

    @property
    def columns(self) -> Sequence[str]:
        """The columns to request."""
        return self._names

    def _sources(self) -> Sequence[str]:
        """For each column of the schema its source: a field, DATA, or `about` a notification."""
        if self._schema.names == RAW.names and self._schema.types == RAW.types:
            return [*ABOUT, DATA]
        return list(self._schema.names)

    def batch(self, page: RowsPage) -> pa.RecordBatch:
        """The rows of a page."""
        values = iter(self._values(page))
        about = _about(page)
        columns = [
            _declared(about[source](), field.type) if source in ABOUT else next(values)
            for source, field in zip(self._sources(), self._schema, strict=True)
        ]
        # `num_rows` of a batch without columns would be unknown; Spark always requests a column.
        found = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        return found.filter(self._kept(next(values))) if self._key else found

    def _kept(self, keys: pa.Array) -> pa.Array:
        """Which rows belong to the partition, by a hash of each distinct key."""
        coded = keys.dictionary_encode()
        parts = [crc32(memoryview(key.as_buffer())) % self._parts for key in coded.dictionary]
        # The last element is for a missing key, whose index is -1.
        parts_of = np.array([*parts, 0])
        return pa.array(parts_of[coded.indices.fill_null(-1).to_numpy()] == self._part)

    def _values(self, page: RowsPage) -> list[pa.Array]:
        """The requested columns in their types, with the key as text behind them."""
        if not self._names:
            return []
        types = [
            field.type
            for source, field in zip(self._sources(), self._schema, strict=True)
            if source not in ABOUT
        ]
        types += [pa.string()] if self._key else []
        if any(map(pa.types.is_integer, types)) and _has_hexadecimal(page.lines):
            return self._converted(page, types, range(len(types)))
        try:
            return self._converted(page, types, self._loose)
        except pa.ArrowInvalid:
            self._loose |= self._unreadable(page, types)
            return self._converted(page, types, self._loose)

    def _converted(
        self, page: RowsPage, types: Sequence[pa.DataType], loose: Sequence[int] | set[int]
    ) -> list[pa.Array]:
        read = [pa.string() if n in loose else kind for n, kind in enumerate(types)]
        found = _read(page.lines, read)
        broken = [mark for mark in _BREAKS if mark.encode() in page.lines.obj]  # type: ignore[operator]
        return [_finished(column, kind, broken) for column, kind in zip(found, types, strict=True)]

    def _unreadable(self, page: RowsPage, types: Sequence[pa.DataType]) -> set[int]:
        """The columns with a value that the CSV reader cannot convert."""
        texts = _read(page.lines, [pa.string()] * len(types))
        found = set()
        for n, (text, kind) in enumerate(zip(texts, types, strict=True)):
            try:
                text.cast(kind)
            except pa.ArrowInvalid:
                found.add(n)
        # Where the CSV reader is stricter than the cast, all columns are suspect.
        return found or set(range(len(types)))


def check_schema(schema: pa.Schema) -> None:
    """Raise SchemaRefused if a column has a type that events do not have."""
    for field in schema:
        natural = ABOUT.get(field.name)
        if natural is not None and field.type not in (natural, pa.string()):
            raise SchemaRefused(
                f"the column {field.name} cannot be {field.type}; declare it as {_DDL[natural]} or STRING"
            )
        if not is_supported(field.type):
            raise SchemaRefused(
                f"the column {field.name} cannot be {field.type}; declare it as STRING, which gives"
                " a structure as JSON, and parse it with from_json"
            )


def _requested(source: str) -> str:
    return "" if source in ABOUT else source


def _has_hexadecimal(lines: memoryview) -> bool:
    """Whether there may be a value such as 0x10, which is a number for the CSV reader only."""
    return b"0x" in lines.obj or b"0X" in lines.obj  # type: ignore[operator]


def _read(lines: memoryview, types: Sequence[pa.DataType]) -> list[pa.Array]:
    names = [str(n) for n in range(len(types))]
    if not lines:
        return [pa.array([], kind) for kind in types]
    # The reader drops a byte order mark at the start, where it is part of a value; so the start is skipped.
    skipped = b"-\n" if bytes(lines[:3]) == BOM_UTF8 else b""
    text = skipped + lines if skipped else lines
    found = csv.read_csv(
        pa.BufferReader(pa.py_buffer(text)),
        # One block gives one chunk per column; the pages are too small for threads.
        read_options=csv.ReadOptions(
            column_names=names, use_threads=False, block_size=len(text) + 1, skip_rows=1 if skipped else 0
        ),
        parse_options=_PARSE,
        convert_options=csv.ConvertOptions(
            column_types=dict(zip(names, types, strict=True)),
            null_values=[_NULL],
            strings_can_be_null=True,
            true_values=["true"],
            false_values=["false"],
        ),
    )
    return [column.combine_chunks() for column in found.columns]


def _finished(column: pa.Array, kind: pa.DataType, broken: Sequence[str]) -> pa.Array:
    if pa.types.is_string(column.type):
        for mark in broken:
            column = pc.replace_substring(column, mark, _BREAKS[mark])
        return convert(column, kind)
    return finite(column) if pa.types.is_floating(kind) else column


def _about(page: RowsPage) -> Mapping[str, Callable[[], pa.Array]]:
    """The columns on notifications, each computed only on demand."""
    firsts, counts, topics, times, ids = zip(*page.runs, strict=True) if page.runs else ((),) * 5
    sizes = np.array(counts, np.int64)
    number = np.repeat(np.arange(len(sizes)), sizes)

    def offsets() -> pa.Array:
        begins = np.array(firsts, np.int64) - (np.cumsum(sizes) - sizes)
        return pa.array(np.arange(page.rows) + begins[number])

    def each(values: Sequence[object], kind: pa.DataType) -> Callable[[], pa.Array]:
        return lambda: pa.array(values, kind).take(pa.array(number))

    moments = each(times, pa.int64())
    return {
        "_topic": each(topics, pa.string()),
        "_offset": offsets,
        "_time": lambda: moments().cast(UTC_TIMESTAMP),
        "_id": each(ids, pa.string()),
    }


def _declared(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return column if column.type == kind else column.cast(kind)
