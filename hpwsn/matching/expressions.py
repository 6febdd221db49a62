"""Expressions over predicates as they are written: and, or, not, in any nesting.

Owns the tree between the language and the normal form, and its meaning, against which the normal form is
checked.
"""

from __future__ import annotations

from dataclasses import dataclass

from hpwsn.matching.predicates import Event, Predicate, predicate_holds


@dataclass(frozen=True, slots=True)
class And:
    """All of the parts hold."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """One of the parts holds."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold."""

    part: Expression


Expression = And | Or | Not | Predicate


def expression_holds(expression: Expression, event: Event) -> bool:
    """Whether the expression holds for an event that repeats no attribute."""
    match expression:
        case And(parts):
            return all(expression_holds(part, event) for part in parts)
        case Or(parts):
            return any(expression_holds(part, event) for part in parts)
        case Not(part):
            return not expression_holds(part, event)
        case _:
            return predicate_holds(expression, event)
