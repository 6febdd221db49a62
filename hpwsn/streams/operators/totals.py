"""The five aggregate functions, computed incrementally from partials.

A partial is (sum, count, minimum, maximum) of the non-null values so far. It is sufficient for all five
functions, and two partials can be combined. Result types are Spark's: a sum of integers is BIGINT, an average
DOUBLE.
"""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from hpwsn.streams.definition.operator import OperatorError, StreamType, attribute_of
from hpwsn.streams.definition.schema import BIGINT, DOUBLE, Type, Value

FUNCTIONS = ("sum", "count", "min", "max", "avg")
EXTREMES = ("min", "max")
"""The functions whose value is that of an event."""

Partial = tuple[Any, int, Any, Any]
EMPTY: Partial = (None, 0, None, None)


def result_type(function: str, stream: StreamType, attribute: str) -> Type:
    """The result type of a function; OperatorError if the function does not accept the attribute's type."""
    if function == "count":
        if attribute:
            attribute_of(stream, attribute, "attribute")
        return BIGINT
    kind = attribute_of(stream, attribute, "attribute")
    if function in ("min", "max"):
        if not kind.has_order:
            raise OperatorError(
                "attribute", f"is {kind}, which has no order; {function} requires one", attribute
            )
        return kind
    if not kind.is_number:
        raise OperatorError("attribute", f"is {kind}; {function} requires a number", attribute)
    if function == "avg":
        return DOUBLE
    if kind.name == "DECIMAL":
        return Type("DECIMAL", min(38, kind.precision + 10), kind.scale)
    return BIGINT if kind.is_integer else DOUBLE


def partial_of(value: Value, adds: bool) -> Partial:
    """The partial of one value; `adds` says whether the value is a number."""
    return EMPTY if value is None else (value if adds else None, 1, value, value)


def combine(one: Partial, other: Partial) -> Partial:
    """The partial of the values of both."""
    if not one[1] or not other[1]:
        return one if one[1] else other
    total = None if one[0] is None or other[0] is None else one[0] + other[0]
    return (total, one[1] + other[1], min(one[2], other[2]), max(one[3], other[3]))


def partial(values: Iterable[Value], adds: bool) -> Partial:
    """The partial of several values."""
    whole = EMPTY
    for value in values:
        whole = combine(whole, partial_of(value, adds))
    return whole


def result(function: str, whole: Partial, kind: Type) -> Value:
    """The result of the function for a partial; without values null, or 0 for count."""
    total, count, least, greatest = whole
    if function == "count":
        return count
    if not count:
        return None
    if function == "avg":
        return float(total) / count
    found: Value = {"sum": total, "min": least, "max": greatest}[function]
    return float(found) if kind == DOUBLE and isinstance(found, int | float | Decimal) else found
