"""Converts columns of text to the types of a schema, with Arrow's kernels and without an object per value.

A value that does not fit its type becomes null, as in Spark's permissive readers. The result is that of
`hpwsn.streams.definition.schema.value_of`, except where text cannot tell a JSON number from a JSON string:
`"5.0"` is an integer like `5.0`, and digits alone are seconds since 1970 for a TIMESTAMP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

UTC_TIMESTAMP = pa.timestamp("us", tz="UTC")
NAIVE_TIMESTAMP = pa.timestamp("us")
_SECOND = 1_000_000
_YEAR_1, _YEAR_10000 = -62_135_596_800 * _SECOND, 253_402_300_800 * _SECOND
"""The range of Python's datetime in microseconds; the end is exclusive."""
_WIDE = pa.decimal256(76, 37)
"""Holds all digits of the numbers that `_PLAIN_DECIMAL` matches."""

_WHOLE = r"^[+-]?0*[0-9]{1,38}$"
_NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_PLAIN_DECIMAL = r"^[+-]?0*[0-9]{1,38}(?:\.[0-9]*)?$|^[+-]?\.[0-9]+$"
_DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_SHORT_DAY = r"^([0-9]{4})([0-9]{2})([0-9]{2})$"
_MOMENT = (
    r"^(?P<year>[0-9]{4})-?(?P<month>[0-9]{2})-?(?P<day>[0-9]{2})"
    r"(?:[^0-9](?P<hour>[0-9]{2})(?::?(?P<minute>[0-9]{2})(?::?(?P<second>[0-9]{2})(?:[.,](?P<part>[0-9]+))?)?)?"
    r"(?:Z|(?P<sign>[+-])(?P<zh>[0-9]{2}):?(?P<zm>[0-9]{2})?:?(?P<zs>[0-9]{2})?)?)?$"
)


def convert(text: pa.Array, kind: pa.DataType) -> pa.Array:
    """The texts as values of the type; null where a text does not fit."""
    if pa.types.is_string(kind):
        return text
    if pa.types.is_boolean(kind):
        return _booleans(text)
    usual = _usual(text, kind)
    if usual is not None:
        return usual
    if pa.types.is_integer(kind):
        return _integers(pc.utf8_trim_whitespace(text), kind)
    if pa.types.is_floating(kind):
        return finite(pc.cast(_matching(pc.utf8_trim_whitespace(text), _NUMBER), kind))
    if pa.types.is_decimal(kind):
        return _decimals(pc.utf8_trim_whitespace(text), kind)
    return _dates(text) if pa.types.is_date(kind) else pc.cast(_timestamps(text), kind)


def is_supported(kind: pa.DataType) -> bool:
    """Whether `convert` has this type."""
    tests: tuple[Callable[[pa.DataType], bool], ...] = (
        pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal,
        pa.types.is_string, pa.types.is_date, pa.types.is_timestamp,
    )  # fmt: skip
    return any(test(kind) for test in tests)


def finite(numbers: pa.Array) -> pa.Array:
    """The floats without infinity and NaN, which JSON does not have."""
    fits = pc.is_finite(numbers)
    return numbers if pc.all(fits, min_count=0).as_py() else _where(fits, numbers)


def _usual(text: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """The values if all texts have the form that Arrow's cast accepts, which costs the least; else None."""
    # The cast accepts hexadecimal integers and the year 0, which Python does not.
    refused = ("0x", "0X") if pa.types.is_integer(kind) else ("0000-",) if pa.types.is_temporal(kind) else ()
    if any(map(_any, (pc.match_substring(text, one) for one in refused))):
        return None
    # A cast that fails is slow, so there is one attempt.
    naive = pa.types.is_timestamp(kind) and not _any(pc.ends_with(text, "Z"))
    try:
        found = pc.cast(pc.cast(text, NAIVE_TIMESTAMP if naive else kind), kind)
    except pa.ArrowInvalid:
        return None
    return finite(found) if pa.types.is_floating(kind) else found


def _any(mask: pa.Array) -> bool:
    return bool(pc.any(mask, min_count=0).as_py())


def _where(mask: pa.Array, values: pa.Array) -> pa.Array:
    """The values where the mask is true, else null."""
    return pc.if_else(mask, values, pa.scalar(None, values.type))


def _matching(text: pa.Array, pattern: str) -> pa.Array:
    return _where(pc.match_substring_regex(text, pattern), text)


def _booleans(text: pa.Array) -> pa.Array:
    yes = pc.equal(text, "true")
    return _where(pc.or_(yes, pc.equal(text, "false")), yes)


def _integers(text: pa.Array, kind: pa.DataType) -> pa.Array:
    bound = 2 ** (kind.bit_width - 1)
    exact = pc.cast(_unsigned_plus(_matching(text, _WHOLE)), pa.decimal128(38, 0))
    low, high = (pa.scalar(one, pa.decimal128(38, 0)) for one in (-bound, bound - 1))
    whole = _where(pc.and_(pc.greater_equal(exact, low), pc.less_equal(exact, high)), exact)
    floats = pc.cast(_matching(text, _NUMBER), pa.float64())
    fits = pc.and_(pc.greater_equal(floats, float(-bound)), pc.less(floats, float(bound)))
    others = _where(pc.and_(fits, pc.equal(pc.floor(floats), floats)), floats)
    # A number without a decimal point is exact; its float could round into the range.
    others = _where(pc.invert(pc.match_substring_regex(text, _WHOLE)), others)
    return pc.coalesce(pc.cast(whole, kind), pc.cast(others, kind))


def _unsigned_plus(text: pa.Array) -> pa.Array:
    """The numbers without plus signs and leading zeros, which count as digits for Arrow's decimals."""
    return pc.replace_substring_regex(text, r"^\+?(-?)0*([0-9])", r"\1\2")


def _decimals(text: pa.Array, kind: pa.DataType) -> pa.Array:
    plain = pc.replace_substring_regex(_matching(text, _PLAIN_DECIMAL), r"(\.[0-9]{37})[0-9]+", r"\1")
    exact = pc.cast(_unsigned_plus(plain), _WIDE)
    others = pc.cast(_matching(_where(pc.is_null(plain), text), _NUMBER), pa.float64())
    rounded = pc.round(exact, kind.scale, "half_to_even")
    fits = pc.less(pc.abs(rounded), pa.scalar(10 ** (kind.precision - kind.scale), _WIDE))
    near = pc.round(others, kind.scale, "half_to_even")
    near = _where(pc.less(pc.abs(near), 10.0 ** (kind.precision - kind.scale)), near)
    return pc.coalesce(pc.cast(_where(fits, rounded), kind), pc.cast(near, kind))


def _dates(text: pa.Array) -> pa.Array:
    short = pc.replace_substring_regex(_matching(text, _SHORT_DAY), _SHORT_DAY, r"\1-\2-\3")
    days = pc.coalesce(_matching(text, _DAY), short)
    return pc.cast(_checked_moments(days, "%Y-%m-%d", pc.utf8_slice_codeunits(days, 8, 10)), pa.date32())


def _checked_moments(text: pa.Array, pattern: str, day: pa.Array) -> pa.Array:
    """Parse dates; null for a day that its month does not have, which strptime moves to the next month."""
    found = pc.strptime(text, format=pattern, unit="us", error_is_null=True)
    fits = pc.and_(pc.equal(pc.day(found), pc.cast(day, pa.int64())), pc.greater(pc.year(found), 0))
    return _where(fits, found)


def _timestamps(text: pa.Array) -> pa.Array:
    numbers = _matching(text, _NUMBER)
    texts = _where(pc.is_null(numbers), text)
    micros = pc.coalesce(_seconds(numbers), _iso_8601(texts))
    fits = pc.and_(pc.greater_equal(micros, _YEAR_1), pc.less(micros, _YEAR_10000))
    return pc.cast(_where(fits, micros), UTC_TIMESTAMP)


def _seconds(numbers: pa.Array) -> pa.Array:
    """Seconds since 1970 as microseconds, rounded as Python's fromtimestamp does."""
    floats = pc.cast(numbers, pa.float64())
    limit = float(_YEAR_10000 // _SECOND)
    floats = _where(pc.less(pc.abs(floats), limit), floats)
    whole = pc.trunc(floats)
    part = pc.round(pc.multiply(pc.subtract(floats, whole), float(_SECOND)), 0, "half_to_even")
    return pc.add(pc.multiply(pc.cast(whole, pa.int64()), _SECOND), pc.cast(part, pa.int64()))


def _iso_8601(text: pa.Array) -> pa.Array:
    """Microseconds since 1970; a missing zone means UTC, and digits after microseconds are dropped."""
    found = pc.extract_regex(text, _MOMENT)
    parts: Mapping[str, pa.Array] = {
        field.name: pc.struct_field(found, field.name) for field in found.type.fields
    }
    seconds = _filled(parts["second"], "00")
    days = pc.binary_join_element_wise(parts["year"], parts["month"], parts["day"], "-")
    times = pc.binary_join_element_wise(
        _filled(parts["hour"], "00"), _filled(parts["minute"], "00"), seconds, ":"
    )
    moments = _checked_moments(
        pc.binary_join_element_wise(days, times, "T"), "%Y-%m-%dT%H:%M:%S", parts["day"]
    )
    # A minute has 60 seconds for Python, but 62 for strptime.
    moments = _where(pc.less(seconds, "60"), moments)
    fraction = pc.cast(pc.utf8_slice_codeunits(pc.utf8_rpad(parts["part"], 6, "0"), 0, 6), pa.int64())
    local = pc.add(pc.cast(moments, pa.int64()), fraction)
    return pc.subtract(local, _zone(parts))


def _zone(parts: Mapping[str, pa.Array]) -> pa.Array:
    """The offsets from UTC in microseconds; null for an impossible zone."""
    hours, minutes, seconds = (_filled(parts[name], "00") for name in ("zh", "zm", "zs"))
    fits = pc.and_(pc.less(hours, "24"), pc.and_(pc.less(minutes, "60"), pc.less(seconds, "60")))
    numbers = [pc.cast(one, pa.int64()) for one in (hours, minutes, seconds)]
    total = pc.add(pc.multiply(numbers[0], 3600), pc.add(pc.multiply(numbers[1], 60), numbers[2]))
    signed = pc.if_else(pc.equal(parts["sign"], "-"), pc.negate(total), total)
    return pc.multiply(_where(fits, signed), _SECOND)


def _filled(text: pa.Array, default: str) -> pa.Array:
    """The texts, with the default for those that the pattern did not find."""
    return pc.if_else(pc.equal(text, ""), default, text)
