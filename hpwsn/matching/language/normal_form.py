"""The normal form of an expression: a disjunction of conjunctions, simplified, without what can never
hold.

Negation is pushed down to the predicates and stays there, since a missing attribute makes a predicate
false and its negation true. Bounded: an expression that unfolds to too much is refused, not worked on.

Expressions over predicates as they are written: and, or, not, in any nesting.

Owns the tree between the language and the normal form, and its meaning, against which the normal form is
checked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import count

from hpwsn.matching.language.predicates import Conjunction, Disjunction, Event, Predicate, predicate_holds
from hpwsn.matching.language.simplify import is_simple, simplify


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


MOST_CONJUNCTIONS = 256
MOST_PREDICATES = 2048
"""Predicates of all conjunctions together."""
MOST_STEPS = 2048
"""Conjunctions that are looked at on the way, also those that fall away: a subscriber's filter must not hold
up the others."""

MOST_PLAIN = 256
"""Predicates of an expression without alternatives that is not taken apart first."""


class TooLarge(ValueError):
    """An expression that unfolds to more than is taken."""


def normalise(expression: Expression) -> Disjunction:
    """The disjunction of conjunctions that means the same; empty if the expression can never hold."""
    plain = _plain(expression)
    if plain is not None and is_simple(plain):
        return (_sorted(plain),)
    return _absorbed(_unfold(expression, count(1), negated=False))


def _plain(expression: Expression) -> list[Predicate] | None:
    """The predicates of an expression without alternatives; None for any other."""
    if isinstance(expression, Predicate):
        return [expression]
    if not isinstance(expression, And):
        return None
    found: list[Predicate] = []
    for part in expression.parts:
        inner = [part] if isinstance(part, Predicate) else _plain(part)
        if inner is None or len(found) + len(inner) > MOST_PLAIN:
            return None
        found += inner
    return found


def _unfold(expression: Expression, steps: Iterator[int], *, negated: bool) -> list[frozenset[Predicate]]:
    match expression:
        case Not(part):
            return _unfold(part, steps, negated=not negated)
        case And(parts) | Or(parts):
            unfolded = [_unfold(part, steps, negated=negated) for part in parts]
            joined = isinstance(expression, And) != negated
            return _product(unfolded, steps) if joined else _bounded([c for each in unfolded for c in each])
        case _:
            return _simplified([frozenset({_literal(expression, negated)})], steps)


def _literal(predicate: Predicate, negated: bool) -> Predicate:
    return Predicate(
        predicate.attribute, predicate.operator, predicate.operands, predicate.negated != negated
    )


def _product(factors: list[list[frozenset[Predicate]]], steps: Iterator[int]) -> list[frozenset[Predicate]]:
    # Most expressions have no alternatives, and are simplified once.
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
    """Each made as short as can be, once, without those that can never hold."""
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
        f"it unfolds to more than {MOST_CONJUNCTIONS} alternatives or {MOST_PREDICATES} predicates,"
        f" or takes more than {MOST_STEPS} combinations to unfold;"
        " write fewer `or` within `and`, or use in (…)"
    )


def _absorbed(conjunctions: list[frozenset[Predicate]]) -> Disjunction:
    """Without those that ask for more than another one does."""
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
