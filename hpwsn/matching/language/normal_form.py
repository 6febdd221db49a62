"""Expressions of predicates with and, or and not, and their disjunctive normal form.

The normal form is a simplified disjunction of conjunctions, without conjunctions that can never match.
Negation is moved to the predicates and stays there, since a missing attribute makes a predicate false and its
negation true. Expressions whose normal form would be too large are refused. Tests compare the normal form
with `expression_holds`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import count

from hpwsn.matching.language.predicates import Conjunction, Disjunction, Event, Predicate, predicate_holds
from hpwsn.matching.language.simplify import is_simple, simplify

MOST_CONJUNCTIONS = 256
MOST_PREDICATES = 2048
"""Predicates of all conjunctions together."""
MOST_STEPS = 2048
"""Conjunctions processed on the way, including those dropped: one subscriber's filter must not delay
others."""

MOST_PLAIN = 256
"""Predicates of a conjunction that skips the general algorithm."""


@dataclass(frozen=True, slots=True)
class And:
    """All of the parts hold."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one of the parts holds."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold."""

    part: Expression


Expression = And | Or | Not | Predicate


def expression_holds(expression: Expression, event: Event) -> bool:
    """Whether the expression holds for an event without repeated attributes."""
    match expression:
        case And(parts):
            return all(expression_holds(part, event) for part in parts)
        case Or(parts):
            return any(expression_holds(part, event) for part in parts)
        case Not(part):
            return not expression_holds(part, event)
        case _:
            return predicate_holds(expression, event)


class TooLarge(ValueError):
    """The normal form of an expression exceeds the limits."""


def normalise(expression: Expression) -> Disjunction:
    """Return the equivalent disjunction of conjunctions; empty if the expression can never match."""
    plain = _flat_conjunction(expression)
    if plain is not None and is_simple(plain):
        return (_sorted(plain),)
    return _absorbed(_distribute(expression, count(1), negated=False))


def _flat_conjunction(expression: Expression) -> list[Predicate] | None:
    """Return the predicates of an expression without `or` and `not`; None for any other."""
    if isinstance(expression, Predicate):
        return [expression]
    if not isinstance(expression, And):
        return None
    found: list[Predicate] = []
    for part in expression.parts:
        inner = [part] if isinstance(part, Predicate) else _flat_conjunction(part)
        if inner is None or len(found) + len(inner) > MOST_PLAIN:
            return None
        found += inner
    return found


def _distribute(expression: Expression, steps: Iterator[int], *, negated: bool) -> list[frozenset[Predicate]]:
    match expression:
        case Not(part):
            return _distribute(part, steps, negated=not negated)
        case And(parts) | Or(parts):
            distributed = [_distribute(part, steps, negated=negated) for part in parts]
            joined = isinstance(expression, And) != negated
            return (
                _product(distributed, steps)
                if joined
                else _bounded([c for each in distributed for c in each])
            )
        case _:
            return _simplified([frozenset({_literal(expression, negated)})], steps)


def _literal(predicate: Predicate, negated: bool) -> Predicate:
    return Predicate(
        predicate.attribute, predicate.operator, predicate.operands, predicate.negated != negated
    )


def _product(factors: list[list[frozenset[Predicate]]], steps: Iterator[int]) -> list[frozenset[Predicate]]:
    # Most expressions have no alternatives, and need one simplification.
    plain = frozenset[Predicate]().union(*(factor[0] for factor in factors if len(factor) == 1))
    result = _simplified([plain], steps)
    for factor in factors:
        if len(factor) == 1:
            continue
        result = _bounded(_simplified((left | right for left in result for right in factor), steps))
    return result


def _simplified(
    conjunctions: Iterable[frozenset[Predicate]], steps: Iterator[int]
) -> list[frozenset[Predicate]]:
    """Return the distinct simplified conjunctions, without those that can never match."""
    simple: dict[frozenset[Predicate], None] = {}
    for conjunction in conjunctions:
        if next(steps) > MOST_STEPS or len(simple) > MOST_CONJUNCTIONS:
            raise _too_large()
        shorter = simplify(conjunction)
        if shorter is not None:
            simple[shorter] = None
    return list(simple)


def _bounded(conjunctions: list[frozenset[Predicate]]) -> list[frozenset[Predicate]]:
    if len(conjunctions) > MOST_CONJUNCTIONS or sum(map(len, conjunctions)) > MOST_PREDICATES:
        raise _too_large()
    return conjunctions


def _too_large() -> TooLarge:
    return TooLarge(
        f"the expression has more than {MOST_CONJUNCTIONS} alternatives or {MOST_PREDICATES} predicates in"
        f" normal form, or needs more than {MOST_STEPS} combinations; use fewer `or` within `and`, or in (…)"
    )


def _absorbed(conjunctions: list[frozenset[Predicate]]) -> Disjunction:
    """Drop conjunctions that another one implies."""
    ordered = sorted(set(conjunctions), key=len)
    kept: list[frozenset[Predicate]] = []
    for conjunction in ordered:
        if not any(other <= conjunction for other in kept):
            kept.append(conjunction)
    return tuple(_sorted(conjunction) for conjunction in kept)


def _sorted(conjunction: Collection[Predicate]) -> Conjunction:
    if len({p.attribute for p in conjunction}) == len(conjunction):
        return tuple(sorted(conjunction, key=lambda p: p.attribute))
    return tuple(sorted(conjunction, key=lambda p: (p.attribute, p.operator.value, str(p))))
