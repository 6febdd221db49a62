"""The five functions of aggregates, and what of the events they need to be added up bit by bit.

A partial is (sum, count, least, greatest) of the values so far, without those that are null: enough for all
five, and two partials make one. Types are Spark's: a sum of whole numbers is BIGINT, an average DOUBLE.
"""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from hpwsn.streams.definition.operator import Refused, Shape, attribute_of
from hpwsn.streams.definition.schema import BIGINT, DOUBLE, Type, Value

FUNCTIONS = ("sum", "count", "min", "max", "avg")

Partial = tuple[Any, int, Any, Any]
EMPTY: Partial = (None, 0, None, None)


def result_type(function: str, stream: Shape, attribute: str) -> Type:
    """The type of a function's result, which the attribute's own type must allow."""
    if function == "count":
        if attribute:
            attribute_of(stream, attribute, "attribute")
        return BIGINT
    kind = attribute_of(stream, attribute, "attribute")
    if function in ("min", "max"):
        if not kind.has_order:
            raise Refused("attribute", f"is {kind}, which has no order", attribute)
        return kind
    if not kind.is_number:
        raise Refused("attribute", f"is {kind}, and {function} is about numbers", attribute)
    if function == "avg":
        return DOUBLE
    if kind.name == "DECIMAL":
        return Type("DECIMAL", min(38, kind.precision + 10), kind.scale)
    return BIGINT if kind.is_integer else DOUBLE


def partial_of(value: Value, adds: bool) -> Partial:
    """The partial of one value; `adds` where it can be added up."""
    return EMPTY if value is None else (value if adds else None, 1, value, value)


def combine(one: Partial, other: Partial) -> Partial:
    """The partial of both."""
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
    """What the function makes of a partial; null where there was no value, save for count."""
    total, count, least, greatest = whole
    if function == "count":
        return count
    if not count:
        return None
    if function == "avg":
        return float(total) / count
    found: Value = {"sum": total, "min": least, "max": greatest}[function]
    return float(found) if kind == DOUBLE and isinstance(found, int | float | Decimal) else found
