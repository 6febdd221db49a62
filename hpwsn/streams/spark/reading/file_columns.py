"""Reads CSV with a header, JSON lines and Parquet files as Arrow batches of a schema.

Values are converted like those of events. An empty field of a CSV file means null. A field that is missing in
the file or in a line is null. Files are parsed by Arrow; only lines that Arrow does not accept, such as a
line with a structure in a column, are parsed one by one.
"""

from __future__ import annotations

import csv as plain_csv
import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv
from pyarrow import json as arrow_json

from hpwsn.errors import HpwsnError
from hpwsn.streams.spark.reading.typed_columns import convert

SLICE = 5000
"""Maximum rows per batch."""
_TOKEN = re.compile(rb'("(?:[^"\\]|\\.)*")|(-?\d[\d.eE+-]*|true|false|NaN|-?Infinity)')
_BEGIN, _END = b"\x01", b"\x02"
"""Mark a value that is not a text; JSON does not allow these characters."""


def read_batches(file: str, kind: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a file, at most SLICE in a batch; HpwsnError names a line that is not an event."""
    if kind == "parquet":
        return _parquet(file, schema)
    texts = _csv(file, schema.names) if kind == "csv" else _json(file, schema.names)
    return (_typed(batch, schema) for batch in texts)


def count_rows(file: str, kind: str) -> int:
    """The number of rows of a file."""
    if kind == "parquet":
        return int(pq.ParquetFile(file).metadata.num_rows)
    if kind == "csv":
        return sum(batch.num_rows for batch in _csv(file, _header(file)[:1]))
    with Path(file).open("rb") as lines:
        return sum(1 for line in lines if line.strip())


def _typed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [convert(batch.column(field.name), field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _parquet(file: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    source = pq.ParquetFile(file)
    present = [name for name in schema.names if name in source.schema_arrow.names]
    for batch in source.iter_batches(SLICE, columns=present):
        columns = [
            cast_column(batch.column(field.name), field.type)
            if field.name in present
            else pa.nulls(batch.num_rows, field.type)
            for field in schema
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def cast_column(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column of another type by way of its text; null if it is a structure."""
    if column.type == kind:
        return column
    if pa.types.is_timestamp(column.type) and pa.types.is_timestamp(kind):
        return column.cast(kind, safe=False)
    try:
        return convert(column.cast(pa.string()), kind)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return pa.nulls(len(column), kind)


def _csv(file: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    texts = {name: pa.string() for name in names}
    try:
        table = csv.read_csv(
            file,
            parse_options=csv.ParseOptions(newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types=texts,
                include_columns=list(names),
                include_missing_columns=True,
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
    except pa.ArrowInvalid:
        # The file is empty, or lines have more or fewer fields than the header.
        table = _uneven_csv(file, names)
    yield from table.combine_chunks().to_batches(SLICE)


def _header(file: str) -> list[str]:
    with Path(file).open(encoding="utf-8-sig", newline="") as lines:
        return next(plain_csv.reader(lines), [])


def _uneven_csv(file: str, names: Sequence[str]) -> pa.Table:
    """The columns of a file whose lines have different numbers of fields; missing fields are null."""
    with Path(file).open(encoding="utf-8-sig", newline="") as lines:
        header, *rows = [row for row in plain_csv.reader(lines) if row] or [[]]
    columns = list(zip_longest(*rows))
    found = {name: columns[n] for n, name in enumerate(header) if n < len(columns)}
    empty = [None] * len(rows)
    return pa.table(
        {name: pa.array([v or None for v in found.get(name, empty)], pa.string()) for name in names}
    )


def _json(file: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    texts = pa.schema([(name, pa.string()) for name in names])
    with Path(file).open("rb") as source:
        lines = ((number, line) for number, line in enumerate(source, 1) if line.strip())
        while some := list(islice(lines, SLICE)):
            yield from _parsed(file, some, texts)


def _parsed(file: str, lines: list[tuple[int, bytes]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The lines as columns of text; halves of them, if Arrow does not accept them together."""
    try:
        yield _columns([line for _, line in lines], schema)
    except pa.ArrowInvalid:
        if len(lines) == 1:
            yield _columns([_flat(file, *lines[0], schema.names)], schema)
        else:
            middle = len(lines) // 2
            yield from _parsed(file, lines[:middle], schema)
            yield from _parsed(file, lines[middle:], schema)


def _columns(lines: list[bytes], schema: pa.Schema) -> pa.RecordBatch:
    """Parse lines in which every value becomes a text, whatever its type in the other lines."""
    body = b"".join(line if line.endswith(b"\n") else line + b"\n" for line in lines)
    marked = _TOKEN.sub(rb"\1" + _BEGIN + rb"\2" + _END, body).replace(_BEGIN + _END, b"")
    quoted = marked.replace(_BEGIN, b'"').replace(_END, b'"')
    table = arrow_json.read_json(
        pa.BufferReader(quoted),
        read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(quoted) + 1),
        parse_options=arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )
    if table.num_rows != len(lines):
        raise pa.ArrowInvalid("a line has several objects")
    return table.combine_chunks().to_batches()[0].select(schema.names)


def _flat(file: str, number: int, line: bytes, names: Sequence[str]) -> bytes:
    """A line without structures and without repeated names; HpwsnError if it is not an event."""
    try:
        found = json.loads(line)
    except ValueError as error:
        raise HpwsnError(f"{file}:{number} is not JSON: {error}; write one event per line") from error
    if not isinstance(found, dict):
        raise HpwsnError(f"{file}:{number} is not a JSON object; write one event per line")
    flat = {
        name: None if isinstance(value, dict | list) else value
        for name, value in found.items()
        if name in names
    }
    return json.dumps(flat).encode()
