"""Conditions on events, for filters and constraints, in the broker's predicate language.

Conditions have the meaning that the broker gives them (hpwsn.matching.language.predicates), because the
broker checks subscriptions against the constraints of a service. Rejects comparisons that do not fit the type
of the attribute. Rejects `has`, which is for repeated attributes.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal

from hpwsn.matching.language.predicate_parser import PredicateError, parse_predicates
from hpwsn.matching.language.predicates import (
    ORDERED,
    Disjunction,
    Operand,
    Operator,
    Predicate,
    disjunction_holds,
)
from hpwsn.matching.language.values import Instant, Scalar
from hpwsn.streams.definition.problems import suggestion
from hpwsn.streams.definition.schema import Event, Schema, Type, Value, json_of


class ConditionError(ValueError):
    """A condition does not fit the schema of the stream; `attribute` is the attribute concerned."""

    def __init__(self, message: str, attribute: str = "") -> None:
        super().__init__(message)
        self.attribute = attribute


def parse_condition(text: str, schema: Schema) -> Disjunction:
    """Parse a condition and check it against the schema."""
    try:
        found = parse_predicates(text)
    except PredicateError as error:
        raise ConditionError(str(error)) from None
    for conjunction in found:
        for predicate in conjunction:
            check_predicate(predicate, schema)
    return found


def comparison(attribute: str, operator: str, value: object, schema: Schema) -> Disjunction:
    """The condition of one comparison with a value from TOML."""
    predicate = Predicate(attribute, Operator(operator), (_operand(attribute, value),))
    check_predicate(predicate, schema)
    return ((predicate,),)


def _operand(attribute: str, value: object) -> Operand:
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, datetime):
        return Instant((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp())
    if isinstance(value, date):
        return Instant(datetime(value.year, value.month, value.day, tzinfo=UTC).timestamp())
    raise ConditionError(
        f"cannot be compared with {value!r}; write a boolean, number, text, date or timestamp", attribute
    )


def check_predicate(predicate: Predicate, schema: Schema) -> None:
    """Raise ConditionError if the predicate does not fit the type of its attribute."""
    name = predicate.attribute
    if name not in schema:
        raise ConditionError(f"unknown attribute; {suggestion(name, schema.names)}", name)
    kind = schema[name]
    if predicate.operator is Operator.HAS:
        raise ConditionError(
            "cannot be used with has(…): events of a stream have no repeated attributes", name
        )
    if predicate.operator is Operator.LIKE and kind.name != "STRING":
        raise ConditionError(f"is {kind}; like requires a STRING", name)
    if predicate.operator in ORDERED and not kind.has_order:
        raise ConditionError(f"is {kind}, which has no order; use = or !=", name)
    for operand in predicate.operands:
        if type(operand) is not _fitting(kind):
            raise ConditionError(f"is {kind}, but {_shown(operand)} is not; {_advice(kind)}", name)


def _shown(operand: Operand) -> str:
    return "a date" if isinstance(operand, Instant) else repr(operand)


def _fitting(kind: Type) -> type:
    if kind.is_number:
        return float
    return {"BOOLEAN": bool, "STRING": str}.get(kind.name, Instant)


def _advice(kind: Type) -> str:
    wanted: Mapping[type, str] = {
        float: "write a number",
        bool: "write true or false",
        str: "write a text in quotes",
        Instant: "write a date without quotes, such as 2010-01-01 or 2010-01-01T08:00:00Z",
    }
    return wanted[_fitting(kind)]


def holds(condition: Disjunction, event: Event) -> bool:
    """Whether an event satisfies the condition; a null attribute counts as missing."""
    names = {predicate.attribute for conjunction in condition for predicate in conjunction}
    seen = {name: scalar(event[name]) for name in names if event[name] is not None}
    return disjunction_holds(condition, seen)


def scalar(value: Value) -> Scalar:
    """A value in the form that the broker's predicates compare."""
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return float(value)
    found = json_of(value)
    return found if isinstance(found, bool) else str(found)
