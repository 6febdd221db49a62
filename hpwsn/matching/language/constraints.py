"""Constraints on the events of a stream service, and the check of requests against them.

A service declares the range of its attributes (`flow = "> 0"`, `longitude = "115.25 < longitude < 117.30"`).
A predicate is outside a constraint if no value of the range satisfies it. A request with such a predicate can
never match in that part, so it is refused (the paper on stream data services: constraint). A predicate that
holds for part of the range is inside. Pure: the services decide who has constraints and when they are
checked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hpwsn.matching.language.normal_form import And, Expression, TooLarge, normalise
from hpwsn.matching.language.predicate_parser import PredicateError, parse_expression, parse_predicates
from hpwsn.matching.language.predicates import Conjunction, Disjunction, Predicate
from hpwsn.matching.language.values import Instant
from hpwsn_client.wsn.soap.faults import InvalidFilterFault
from hpwsn_client.wsn.soap.names import wsnt

_begins_with_operator = re.compile(r"\s*(?:[<>=!]|(?:not|between|in|like)\b)", re.I).match


@dataclass(frozen=True, slots=True)
class Constraint:
    """The range of one attribute, as text and as an expression."""

    attribute: str
    text: str
    expression: Expression

    @property
    def predicates(self) -> Conjunction:
        """The predicates of all its alternatives."""
        return tuple(predicate for conjunction in normalise(self.expression) for predicate in conjunction)


@dataclass(frozen=True, slots=True)
class Violation:
    """Predicates of a request on one attribute that no value within its constraint satisfies."""

    predicates: Conjunction
    constraint: Constraint

    def __str__(self) -> str:
        predicates = " and ".join(map(str, self.predicates))
        text = f"{predicates} lies outside the constraint {self.constraint.attribute}: {self.constraint.text}"
        if _has_operand(self.predicates, float) and _has_operand(self.constraint.predicates, Instant):
            return f"{text} (a number is not a date; write a date as 2010-01-01)"
        return text


def _has_operand(predicates: Conjunction, kind: type) -> bool:
    return any(isinstance(operand, kind) for predicate in predicates for operand in predicate.operands)


def parse_constraints(given: Mapping[str, str]) -> tuple[Constraint, ...]:
    """Parse constraints by attribute; PredicateError names an invalid one."""
    return tuple(_parse(attribute, text) for attribute, text in given.items())


def _parse(attribute: str, text: str) -> Constraint:
    # A constraint without a left side is about its own attribute.
    whole = f"`{attribute}` {text}" if _begins_with_operator(text) else text
    try:
        alternatives = parse_predicates(whole)
        expression = parse_expression(whole)
    except PredicateError as error:
        raise PredicateError(f"the constraint {attribute} = {text!r} is invalid: {error}") from None
    others = {p.attribute for conjunction in alternatives for p in conjunction} - {attribute}
    if others:
        raise PredicateError(
            f"the constraint {attribute} = {text!r} is about {', '.join(sorted(others))};"
            f" write one that is about {attribute}"
        )
    return Constraint(attribute, text, expression)


def violations(constraints: tuple[Constraint, ...], request: Disjunction) -> tuple[Violation, ...]:
    """Return the parts of the request that are outside a constraint."""
    found: dict[Violation, None] = {}
    for conjunction in request:
        for constraint in constraints:
            predicates = tuple(p for p in conjunction if p.attribute == constraint.attribute)
            alone = [(p,) for p in predicates if _is_outside((p,), constraint)]
            together = [] if alone or not _is_outside(predicates, constraint) else [predicates]
            found |= dict.fromkeys(Violation(predicates, constraint) for predicates in alone + together)
    return tuple(found)


def _is_outside(predicates: tuple[Predicate, ...], constraint: Constraint) -> bool:
    if not predicates:
        return False
    try:
        return not normalise(And((*predicates, constraint.expression)))
    except TooLarge:
        # Accept what cannot be decided: at worst a filter matches nothing.
        return False


def check_constraints(constraints: tuple[Constraint, ...], request: Disjunction) -> None:
    """Raise InvalidFilterFault if a part of the request is outside a constraint."""
    found = violations(constraints, request)
    if found:
        raise InvalidFilterFault(
            f"{'; '.join(map(str, found))}: no event of this service can match;"
            " write a filter within its constraints",
            unknown_filters=(wsnt("MessageContent"),),
        )
