"""Sizes of Arrow messages and batches, known before they are decompressed or converted.

A small request can hold a very large batch: by compression, by a dictionary of long values, by views that
share a buffer, or by long names. pyarrow has no limit for this. So the lengths of decompressed buffers are
read with the help of a message's FlatBuffers header (Message.fbs of the Arrow format), and the size of a
batch as JSON is estimated from the lengths of its values.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hpwsn.streams.arrow_json import UnsupportedColumn, is_decimal

SHORT = 32
"""Bytes of a number, a time or a boolean as JSON, with what separates it, at most; more for decimals."""

_DICTIONARY, _RECORDS = 2, 3
_HEADER_TYPE, _HEADER = 1, 2
_DICTIONARY_DATA = 1
_BUFFERS, _COMPRESSION = 2, 3


def decompressed_size(message: pa.Message) -> int:
    """The bytes of a message's body when it is decompressed; ArrowInvalid if its header is damaged."""
    try:
        return _decompressed(memoryview(message.metadata), message.body)
    except (struct.error, IndexError) as error:
        raise pa.ArrowInvalid("the header of a message is damaged") from error


def _decompressed(metadata: memoryview, body: pa.Buffer | None) -> int:
    table = _Table(metadata, _unsigned(metadata, 0))
    kind, place = table.place(_HEADER_TYPE), table.place(_HEADER)
    size = 0 if body is None else body.size
    if kind is None or place is None or metadata[kind] not in (_DICTIONARY, _RECORDS) or body is None:
        return size
    batch = table.table(place)
    if metadata[kind] == _DICTIONARY:
        place = batch.place(_DICTIONARY_DATA)
        if place is None:
            return size
        batch = batch.table(place)
    if batch.place(_COMPRESSION) is None:
        return size
    return sum([_length(memoryview(body), *each) for each in batch.buffers()])


def _length(body: memoryview, start: int, size: int) -> int:
    """The length that a compressed buffer has in its first eight bytes; -1 means not compressed."""
    if size < 0:
        raise IndexError("a buffer has a negative length")
    if size == 0:
        return 0
    (length,) = struct.unpack_from("<q", body, start)
    return size if length < 0 else int(length)


class _Table:
    """A table of a FlatBuffer."""

    def __init__(self, data: memoryview, at: int) -> None:
        self._data = data
        self._at = at
        self._fields = at - struct.unpack_from("<i", data, at)[0]
        if self._fields < 0:
            raise IndexError("a table has no list of fields")

    def place(self, field: int) -> int | None:
        """Where a field is; None if it is absent."""
        if 4 + 2 * field >= struct.unpack_from("<H", self._data, self._fields)[0]:
            return None
        offset = struct.unpack_from("<H", self._data, self._fields + 4 + 2 * field)[0]
        return self._at + offset if offset else None

    def table(self, place: int) -> _Table:
        """The table to which a field refers."""
        return _Table(self._data, place + _unsigned(self._data, place))

    def buffers(self) -> list[tuple[int, int]]:
        """The start and the length of each buffer of a record batch."""
        place = self.place(_BUFFERS)
        if place is None:
            return []
        start = place + _unsigned(self._data, place)
        count = _unsigned(self._data, start)
        found = struct.unpack_from(f"<{2 * count}q", self._data, start + 4)
        return list(zip(found[::2], found[1::2], strict=True))


def _unsigned(data: memoryview, at: int) -> int:
    return int(struct.unpack_from("<I", data, at)[0])


def json_size(batch: pa.RecordBatch) -> int:
    """About how many bytes the rows have as JSON; the batch must be valid.

    UnsupportedColumn for types whose values may share their bytes, other than dictionaries of plain values.
    """
    names = batch.schema.names
    return _names_size(batch.num_rows, names) + sum(map(_size, names, batch.columns))


def _names_size(rows: int, names: Sequence[str]) -> int:
    return rows * sum([len(name.encode()) + 6 for name in names])


def _size(name: str, column: pa.Array) -> int:
    """About how many bytes the values have; `name` is that of the column of the batch."""
    kind = column.type
    _check(name, kind)
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        size = SHORT * len(column) + _names_size(len(column), names)
        return size + sum([_size(name, column.field(at)) for at in range(kind.num_fields)])
    if pa.types.is_nested(kind):
        return SHORT * len(column) + _size(name, column.values)
    values = column.dictionary if pa.types.is_dictionary(kind) else column
    digits = values.type.precision if pa.types.is_decimal(values.type) else 0
    lengths = _lengths(values)
    if lengths is not None and values is not column:
        lengths = lengths.take(column.indices)
    return (SHORT + digits) * len(column) + (0 if lengths is None else _total(lengths))


def _check(name: str, kind: pa.DataType) -> None:
    if any(check(kind) for check in _SHARING) or isinstance(kind, pa.BaseExtensionType):
        raise UnsupportedColumn(
            f"column {name} has values of type {kind}; send plain values, lists or structs"
        )
    if pa.types.is_decimal(kind) and not is_decimal(kind):
        raise UnsupportedColumn(f"column {name} has values of type {kind}; send a smaller scale")
    if pa.types.is_dictionary(kind):
        values = kind.value_type
        if pa.types.is_nested(values) or pa.types.is_dictionary(values):
            raise UnsupportedColumn(
                f"column {name} has a dictionary of {values}; send it without a dictionary"
            )
        _check(name, values)


_SHARING: list[Any] = [
    pa.types.is_run_end_encoded,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
    pa.types.is_union,
]


def _lengths(column: pa.Array) -> pa.Array | None:
    """The lengths of texts or bytes; None for values that are short."""
    kind = column.type
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        # A view has 16 bytes, of which the first four are the length.
        views = np.frombuffer(column.buffers()[1], np.int32)[::4][column.offset : column.offset + len(column)]
        return pc.if_else(column.is_valid(), pa.array(views), 0)
    if any(check(kind) for check in _LONG):
        return pc.binary_length(column)
    return None


_LONG: list[Any] = [
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
]


def _total(lengths: pa.Array) -> int:
    return int(pc.sum(lengths.cast(pa.int64())).as_py() or 0)
