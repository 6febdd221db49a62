"""Content predicates and their semantics, which every matching engine must reproduce.

A request is a disjunction of conjunctions of predicates (the paper on stream data services: request), each on
one attribute of an event. An event maps attributes to a value, or to a tuple of values if the attribute is
repeated. The syntax is in `hpwsn.matching.language.grammar`, and indexes are in the engines.

- A missing attribute makes its predicate false, and a negated predicate true.
- A number compares with numbers, a text with texts, a boolean with booleans (by equality only), and an
  instant with texts that are dates. Other combinations of types make a predicate false.
- NaN compares with nothing, not even by `!=`.
- For a repeated attribute, one value must satisfy all predicates of a conjunction on that attribute. `has`
  and `exists` look at all values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from operator import ge, gt, le, lt
from typing import Any

from hpwsn.matching.language.values import Instant, Scalar, instant_of, like_pattern, scalar_text, words

Operand = float | str | bool | Instant
"""The type of a value in a predicate."""

RESERVED = frozenset(
    {"and", "or", "not", "between", "in", "like", "within", "has", "exists", "true", "false"}
)
"""Keywords in lower case; attributes of that name are written in backquotes."""

Event = Mapping[str, Scalar | tuple[Scalar, ...]]

Test = Callable[[Scalar, tuple[Operand, ...]], bool]
"""Whether a value satisfies a comparison with the operands."""


class Operator(Enum):
    """The comparison of a predicate; the enum value is its spelling."""

    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    EQ = "="
    NE = "!="
    BETWEEN = "between"
    IN = "in"
    LIKE = "like"
    HAS = "has"
    EXISTS = "exists"

    # Members are dict keys on the hot path, and Enum's own hash is written in Python.
    __hash__ = object.__hash__


ORDERED = frozenset({Operator.LT, Operator.LE, Operator.GT, Operator.GE, Operator.BETWEEN})
"""Operators that need ordered values."""

OF_ALL_VALUES = frozenset({Operator.HAS, Operator.EXISTS})
"""Operators that look at all values of a repeated attribute."""


@dataclass(frozen=True, slots=True, eq=False)
class Predicate:
    """A comparison of one attribute, or its negation.

    `operands` is one value for comparisons and LIKE, the two inclusive bounds for BETWEEN, one or more values
    for IN, the words for HAS, and empty for EXISTS.
    """

    attribute: str
    operator: Operator
    operands: tuple[Operand, ...]
    negated: bool = False

    def _key(self) -> tuple[object, ...]:
        # True equals 1.0 in Python, but not in predicates.
        return (self.attribute, self.operator, self.negated, self.operands, tuple(map(type, self.operands)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Predicate) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        text = _written(self)
        return f"not {text}" if self.negated else text


Conjunction = tuple[Predicate, ...]
"""Predicates that must all hold; an empty conjunction always holds."""

Disjunction = tuple[Conjunction, ...]
"""Conjunctions of which one must hold; an empty disjunction never holds."""


def disjunction_holds(disjunction: Disjunction, event: Event) -> bool:
    """Whether at least one conjunction holds."""
    return any(conjunction_holds(conjunction, event) for conjunction in disjunction)


def conjunction_holds(conjunction: Conjunction, event: Event) -> bool:
    """Whether all predicates hold; those on one repeated attribute must hold for the same value."""
    for predicate in conjunction:
        value = event.get(predicate.attribute)
        if value is None:
            if not predicate.negated:
                return False
        elif type(value) is tuple:
            return _repeated_holds(conjunction, event)
        elif predicate.negated == _TESTS[predicate.operator](value, predicate.operands):  # type: ignore[arg-type]
            return False
    return True


def _repeated_holds(conjunction: Conjunction, event: Event) -> bool:
    attributes = {predicate.attribute for predicate in conjunction}
    return all(
        _attribute_holds([p for p in conjunction if p.attribute == name], event) for name in attributes
    )


def _attribute_holds(predicates: list[Predicate], event: Event) -> bool:
    value = event.get(predicates[0].attribute)
    if type(value) is not tuple:
        return all(predicate_holds(predicate, event) for predicate in predicates)
    chosen = [predicate for predicate in predicates if predicate.operator not in OF_ALL_VALUES]
    whole = [predicate for predicate in predicates if predicate.operator in OF_ALL_VALUES]
    return all(predicate_holds(p, event) for p in whole) and (
        not chosen or any(all(value_holds(p, one) for p in chosen) for one in value)
    )


def predicate_holds(predicate: Predicate, event: Event) -> bool:
    """Whether the predicate holds by itself: for a repeated attribute, for one of its values."""
    value = event.get(predicate.attribute)
    if value is None or value == ():
        return predicate.negated
    if predicate.operator is Operator.EXISTS:
        return not predicate.negated
    if predicate.operator is Operator.HAS:
        return predicate.negated != words(value).issuperset(predicate.operands)
    if type(value) is tuple:
        return any(value_holds(predicate, one) for one in value)
    return value_holds(predicate, value)  # type: ignore[arg-type]


def value_holds(predicate: Predicate, value: Scalar) -> bool:
    """Whether a comparison holds for one value."""
    return predicate.negated != _TESTS[predicate.operator](value, predicate.operands)


def comparable(value: Scalar, operand: Operand) -> Operand | None:
    """Return the value in the operand's type; None if they do not compare."""
    if type(operand) is Instant:
        return instant_of(value) if type(value) is str else None
    if type(value) is not type(operand) or value != value:
        return None
    return value


def _ordered(value: Scalar, operand: Operand) -> Operand | None:
    return None if type(operand) is bool else comparable(value, operand)


def _in_order(compare: Callable[[Any, Any], bool]) -> Test:
    def test(value: Scalar, operands: tuple[Operand, ...]) -> bool:
        operand = operands[0]
        if type(value) is float is type(operand):
            return compare(value, operand)
        typed = _ordered(value, operand)
        return typed is not None and compare(typed, operand)

    return test


_less_or_equal, _greater_or_equal = _in_order(le), _in_order(ge)


def _equal(value: Scalar, operands: tuple[Operand, ...]) -> bool:
    typed = comparable(value, operands[0])
    return typed is not None and typed == operands[0]


def _not_equal(value: Scalar, operands: tuple[Operand, ...]) -> bool:
    typed = comparable(value, operands[0])
    # A NaN operand compares with nothing either.
    return typed is not None and typed != operands[0] and operands[0] == operands[0]


def _between(value: Scalar, operands: tuple[Operand, ...]) -> bool:
    low, high = operands
    if type(value) is type(low) is type(high) is float:
        return low <= value <= high
    return _greater_or_equal(value, operands[:1]) and _less_or_equal(value, operands[1:])


def _in(value: Scalar, operands: tuple[Operand, ...]) -> bool:
    return any(_equal(value, (operand,)) for operand in operands)


def _like(value: Scalar, operands: tuple[Operand, ...]) -> bool:
    return type(value) is str and like_pattern(str(operands[0])).matches(value)


_TESTS: dict[Operator, Test] = {
    Operator.LT: _in_order(lt),
    Operator.LE: _less_or_equal,
    Operator.GT: _in_order(gt),
    Operator.GE: _greater_or_equal,
    Operator.EQ: _equal,
    Operator.NE: _not_equal,
    Operator.BETWEEN: _between,
    Operator.IN: _in,
    Operator.LIKE: _like,
    Operator.HAS: lambda value, operands: words(value).issuperset(operands),
    Operator.EXISTS: lambda value, operands: True,
}


def _written(predicate: Predicate) -> str:
    name, operands = attribute_text(predicate.attribute), list(map(operand_text, predicate.operands))
    match predicate.operator:
        case Operator.EXISTS | Operator.HAS:
            return f"{predicate.operator.value}({', '.join([name, *operands])})"
        case Operator.BETWEEN:
            return f"{name} between {operands[0]} and {operands[1]}"
        case Operator.IN:
            return f"{name} in ({', '.join(operands)})"
        case _:
            return f"{name} {predicate.operator.value} {operands[0]}"


_is_plain_name = re.compile(r"[^\W\d][\w.\-]*").fullmatch


def attribute_text(name: str) -> str:
    """Return an attribute in the syntax of the language."""
    return name if _is_plain_name(name) and name.lower() not in RESERVED else f"`{name}`"


def operand_text(operand: Operand) -> str:
    """Return an operand in the syntax of the language."""
    if type(operand) is Instant:
        return f'date "{datetime.fromtimestamp(operand.seconds, UTC).isoformat()}"'
    if type(operand) is str:
        escaped = operand.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return scalar_text(operand)  # type: ignore[arg-type]
