"""A conjunction as closed intervals of numbers, one for each channel that it uses.

A channel is an attribute read as one type: number, text, boolean, instant, or mere presence. Texts become
codes, so that equality with a text is an interval of one point. An open bound becomes the next double, which
is exact. Predicates that an interval cannot express (`!=`, `like`, lists, words, negation) remain as the
rest. The intervals are then a necessary condition, and the rest is evaluated afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from hpwsn.matching.language.predicates import Conjunction, Operand, Operator, Predicate
from hpwsn.matching.language.values import Instant, Scalar, instant_of

Channel = tuple[str, str]
"""An attribute, and the type that it is read as."""

NUMBER, TEXT, TRUTH, INSTANT, PRESENCE = "number", "text", "truth", "instant", "presence"

EVERYTHING = (-math.inf, math.inf)

UNKNOWN_TEXT = -1.0
"""The code of texts that no request names."""


@dataclass(slots=True)
class IntervalRow:
    """The intervals of one conjunction, the predicates that they do not fully express, and its texts."""

    bounds: dict[Channel, tuple[float, float]]
    rest: Conjunction = ()
    possible: bool = True
    texts: tuple[str, ...] = ()


class TextCodes:
    """Reference-counted numbers for the texts that requests name."""

    __slots__ = ("_codes", "_free", "_users")

    def __init__(self) -> None:
        self._codes: dict[str, float] = {}
        self._users: dict[str, int] = {}
        self._free: list[float] = []

    def acquire(self, text: str) -> float:
        """Return the text's code, and count one more user."""
        code = self._codes.get(text)
        if code is None:
            code = self._codes[text] = self._free.pop() if self._free else float(len(self._codes))
        self._users[text] = self._users.get(text, 0) + 1
        return code

    def release(self, texts: tuple[str, ...]) -> None:
        """Count one user less of each text; the last release frees its code."""
        for text in texts:
            self._users[text] -= 1
            if not self._users[text]:
                del self._users[text]
                self._free.append(self._codes.pop(text))

    def find(self, text: str) -> float:
        """Return the text's code, or UNKNOWN_TEXT."""
        return self._codes.get(text, UNKNOWN_TEXT)

    def __len__(self) -> int:
        return len(self._codes)


def interval_row(conjunction: Conjunction, codes: TextCodes) -> IntervalRow:
    """Return the conjunction as intervals; acquires codes for its texts."""
    row = IntervalRow({})
    bounds = row.bounds
    for predicate in conjunction:
        if predicate.negated:
            row.rest += (predicate,)
            continue
        operands = predicate.operands
        if predicate.operator is _BETWEEN and type(operands[0]) is type(operands[1]) is float:
            # A shortcut for _interval: most predicates are of this kind.
            low, high = cast(tuple[float, float], operands)
            channel, exact = (predicate.attribute, NUMBER), True
        else:
            channel, low, high, exact = _interval(predicate, codes)
        if channel in bounds:
            low, high = _intersection((low, high), bounds[channel])
        bounds[channel] = (low, high)
        if not exact:
            row.rest += (predicate,)
        if not low <= high:
            row.possible = False
        if predicate.operator is _EQ and channel[1] is TEXT:
            row.texts += (str(operands[0]),)
    return row


def _intersection(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """Return the common part of two intervals; it is empty if a bound is NaN."""
    low = other[0] if one[0] <= other[0] else one[0]
    high = other[1] if one[1] >= other[1] else one[1]
    return low, high


def _interval(predicate: Predicate, codes: TextCodes) -> tuple[Channel, float, float, bool]:
    """Return the channel, the bounds, and whether they express the whole predicate."""
    name, operator, operands = predicate.attribute, predicate.operator, predicate.operands
    kind = _KINDS[type(operands[0])] if operands else PRESENCE
    # No value lies between bounds of two types; the rest keeps such a predicate.
    bounds = _BOUNDS.get(operator) if operands and type(operands[0]) is type(operands[-1]) else None
    if bounds is not None and kind is NUMBER:
        low, high = bounds(*operands)
        return (name, NUMBER), low, high, True
    if bounds is not None and kind is INSTANT:
        low, high = bounds(*map(_number, operands))
        return (name, INSTANT), low, high, True
    if operator is _EQ:
        point = codes.acquire(operands[0]) if kind is TEXT else float(operands[0])  # type: ignore[arg-type]
        return (name, kind), point, point, True
    if operator is _IN:
        return _list_interval(name, operands)
    if operator is _HAS or operator is _EXISTS:
        return (name, PRESENCE), *EVERYTHING, operator is _EXISTS
    # Patterns, `!=`, and the order of texts, which codes do not preserve.
    return (name, kind), *EVERYTHING, False


def _list_interval(name: str, operands: tuple[Operand, ...]) -> tuple[Channel, float, float, bool]:
    kinds = {_KINDS[type(operand)] for operand in operands}
    if len(kinds) > 1:
        return (name, PRESENCE), *EVERYTHING, False
    kind = kinds.pop()
    numbers = [_number(operand) for operand in operands] if kind in (NUMBER, INSTANT) else []
    numbers = [number for number in numbers if number == number]
    return (
        ((name, kind), min(numbers), max(numbers), False) if numbers else ((name, kind), *EVERYTHING, False)
    )


# Module constants: looking up a member of an enumeration by name is slow.
_EQ, _IN, _HAS, _EXISTS = Operator.EQ, Operator.IN, Operator.HAS, Operator.EXISTS
_BETWEEN = Operator.BETWEEN
_KINDS: dict[type, str] = {float: NUMBER, str: TEXT, bool: TRUTH, Instant: INSTANT}


def _number(operand: Operand) -> float:
    return operand.seconds if type(operand) is Instant else operand  # type: ignore[return-value]


def _above(value: float) -> float:
    return math.nan if value == math.inf else math.nextafter(value, math.inf)


def _below(value: float) -> float:
    return math.nan if value == -math.inf else math.nextafter(value, -math.inf)


_BOUNDS: dict[Operator, Callable[..., tuple[float, float]]] = {
    Operator.LT: lambda value: (-math.inf, _below(value)),
    Operator.LE: lambda value: (-math.inf, value),
    Operator.GT: lambda value: (_above(value), math.inf),
    Operator.GE: lambda value: (value, math.inf),
    Operator.EQ: lambda value: (value, value),
    Operator.BETWEEN: lambda low, high: (low, high),
}


def scalar_in_channel(value: Scalar, kind: str, codes: TextCodes) -> float:
    """Return the value as the channel reads it; NaN if the value has another type."""
    if kind == PRESENCE:
        return 0.0
    if kind == INSTANT:
        instant = instant_of(value) if type(value) is str else None
        return math.nan if instant is None else instant.seconds
    if kind == NUMBER:
        return value if type(value) is float else math.nan
    if kind == TEXT:
        return codes.find(value) if type(value) is str else math.nan
    return float(value) if type(value) is bool else math.nan
