"""Arrow record batches as lines of JSON, made in C: a row is an object, a column is a field.

Null, NaN and infinities become null. Timestamps with a time zone become ISO 8601 in UTC, with no fraction,
six digits or, if needed, nine; timestamps without a zone have no `Z`. Decimals become numbers
with all their digits (in lists and maps doubles, unless they are integers), bytes base64. Only lists and maps
are converted value by value. Columns of other types are refused.
"""

from __future__ import annotations

import base64
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_WIDE = 1e15
"""Whole numbers below this are written with all digits."""
_SPECIAL = r'["\\\x00-\x1f]'
_SHORT = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_CONTROLS = {chr(code): f"\\u{code:04x}" for code in range(0x20) if chr(code) not in _SHORT}
_MOST_DIGITS = {32: 9, 64: 18, 128: 38, 256: 76}
"""The largest precision, and the largest scale that can be written, of a decimal of so many bits."""
_UNITS = ("s", "us", "ns")


class UnsupportedColumn(ValueError):
    """A column that events cannot have; the text names it."""


def is_decimal(kind: pa.DataType) -> bool:
    """Whether this is a decimal type whose values Arrow can write as text."""
    return bool(pa.types.is_decimal(kind) and abs(kind.scale) <= _MOST_DIGITS[kind.bit_width])


def json_lines(batch: pa.RecordBatch) -> bytes:
    """The rows as JSON objects, each on a line of its own that ends with a newline; UTF-8."""
    if not batch.num_rows:
        return b""
    if not batch.num_columns:
        return b"{}\n" * int(batch.num_rows)
    name, times = Counter(batch.schema.names).most_common(1)[0]
    if times > 1:
        raise UnsupportedColumn(f"column {name} occurs {times} times; an event has each field once")
    lines = _objects(zip(batch.schema.names, batch.columns, strict=True), "}\n")
    offsets = memoryview(lines.buffers()[1]).cast("q")
    start, end = offsets[lines.offset], offsets[lines.offset + len(lines)]
    return bytes(memoryview(lines.buffers()[2])[start:end])


def _objects(fields: Iterator[tuple[str, pa.Array]], closing: str) -> pa.Array:
    parts: list[Any] = []
    opening = "{"
    for name, column in fields:
        parts += (f"{opening}{json.dumps(name, ensure_ascii=False)}: ", _tokens(column, name))
        opening = ", "
    return _join(*parts, closing)


def _join(*parts: str | pa.Array) -> pa.Array:
    """The parts of each row together, null where one is; long strings, so that 2 GiB are no limit."""
    kind = pa.large_string()
    like = [pa.scalar(part, kind) if isinstance(part, str) else part.cast(kind) for part in parts]
    return pc.binary_join_element_wise(*like, pa.scalar("", kind))


def _tokens(column: pa.Array, name: str) -> pa.Array:
    """The JSON text of each value."""
    return pc.fill_null(_convert(column, name), "null")


def _convert(column: pa.Array, name: str) -> pa.Array:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _convert(column.dictionary_decode(), name)
    for applies, convert in _KINDS:
        if applies(kind):
            return convert(column)
    if pa.types.is_struct(kind):
        return _structs(column)
    if pa.types.is_nested(kind):
        return pa.array(list(map(_slow, column.to_pylist(maps_as_pydicts="lossy"))), pa.large_string())
    raise UnsupportedColumn(f"column {name} has type {kind}, which has no JSON form; convert or drop it")


def _structs(column: pa.Array) -> pa.Array:
    kind = column.type
    fields = ((kind.field(at).name, column.field(at)) for at in range(kind.num_fields))
    objects = _objects(fields, "}") if kind.num_fields else pa.array(["{}"] * len(column))
    return pc.if_else(column.is_valid(), objects, None)


def _plain(column: pa.Array) -> pa.Array:
    return column.cast(pa.large_string())


def _floats(column: pa.Array) -> pa.Array:
    column = column.cast(pa.float32()) if pa.types.is_float16(column.type) else column
    column = pc.if_else(pc.is_finite(column), column, None)
    whole = pc.and_(pc.equal(pc.round(column), column), pc.less(pc.abs(column), _WIDE))
    if not pc.any(whole).as_py():
        return _plain(column)
    # Arrow writes whole numbers without a decimal point, and large ones with an exponent.
    digits = _plain(pc.if_else(whole, column, 0).cast(pa.int64()))
    zero = pc.equal(column, 0)
    if pc.any(zero).as_py():
        digits = pc.if_else(zero, _plain(column), digits)
    return pc.if_else(whole, _join(digits, ".0"), _plain(column))


def _decimals(column: pa.Array) -> pa.Array:
    # Arrow writes small and large values with an exponent, as JSON allows, even zero.
    text = pc.replace_substring_regex(_plain(column), "^0E-[0-9]+$", "0.0")
    # A node converts numbers faster if they have no zeros at the end.
    return pc.replace_substring_regex(text, r"^(-?[0-9]+\.[0-9]+?)0+$", r"\1")


def _strings(column: pa.Array) -> pa.Array:
    column = _plain(column)
    if pc.any(pc.match_substring_regex(column, _SPECIAL)).as_py():
        for characters in (_SHORT, _CONTROLS):
            for character, written in characters.items():
                column = pc.replace_substring(column, character, written)
            if not pc.any(pc.match_substring_regex(column, r"[\x00-\x1f]")).as_py():
                break
    return _join('"', column, '"')


def _timestamps(column: pa.Array) -> pa.Array:
    zone = column.type.tz
    # The numbers are in UTC, whatever the zone; without a zone they are local.
    column = column.cast(pa.int64()).cast(pa.timestamp(column.type.unit))
    found = pa.nulls(len(column), pa.large_string())
    for unit in _UNITS:
        found = pc.coalesce(found, _in_unit(column, unit))
    text = pc.replace_substring(found, " ", "T", max_replacements=1)
    return _join('"', text, 'Z"' if zone else '"')


def _in_unit(column: pa.Array, unit: str) -> pa.Array:
    """The text of those timestamps that this unit can express, else null."""
    if column.type.unit == unit:
        return _plain(column)
    cut = column.cast(pa.timestamp(unit), safe=False)
    exact = pc.equal(cut.cast(column.type, safe=False), column)
    return _plain(pc.if_else(exact, cut, None))


def _texts(column: pa.Array) -> pa.Array:
    return _join('"', _plain(column), '"')


def _bytes(column: pa.Array) -> pa.Array:
    return pa.array(list(map(_slow, column.to_pylist())), pa.large_string())


def _slow(value: object) -> str | None:
    return None if value is None else json.dumps(_json(value), ensure_ascii=False)


def _json(value: Any) -> Any:
    """A value inside a list or a map, as json.dumps accepts it."""
    if isinstance(value, dict):
        return {str(name): _json(each) for name, each in value.items()}
    if isinstance(value, list):
        return list(map(_json, value))
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        return value.isoformat() if value.tzinfo is None else _in_utc(value)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        # json.dumps cannot write all digits of a fraction.
        exponent = value.as_tuple().exponent
        return int(value) if isinstance(exponent, int) and exponent >= 0 else float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _in_utc(value: datetime) -> str:
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_binary(kind: pa.DataType) -> bool:
    found = (
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_fixed_size_binary,
        pa.types.is_binary_view,
    )
    return any(check(kind) for check in found)


_KINDS: list[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], pa.Array]]] = [
    (_is_text, _strings),
    (pa.types.is_integer, _plain),
    (pa.types.is_floating, _floats),
    (pa.types.is_boolean, _plain),
    (pa.types.is_timestamp, _timestamps),
    (is_decimal, _decimals),
    (pa.types.is_date, _texts),
    (pa.types.is_time, _texts),
    (pa.types.is_null, _plain),
    (_is_binary, _bytes),
]
