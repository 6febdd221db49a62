"""What the events of a stream service can be at all, and requests that ask for something else.

A service states the range of each of its attributes (`flow = "> 0"`, `longitude = "115.25 < longitude <
117.30"`). A request of which a predicate lies outside can never get anything in that part, so it is refused
when it is made (spec of stream data services: constraint). Outside means that no value of the range
satisfies the predicate; one that holds for some of the range, or for all of it, is inside. Pure; who has
constraints and when they are checked is the services' business.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hpwsn.matching.language.grammar import PredicateError, parse_expression, parse_predicates
from hpwsn.matching.language.normal_form import And, Expression, TooLarge, normalise
from hpwsn.matching.language.predicates import Conjunction, Disjunction, Predicate
from hpwsn_client.wsn.soap.faults import InvalidFilterFault
from hpwsn_client.wsn.soap.names import wsnt

_begins_with_operator = re.compile(r"\s*(?:[<>=!]|(?:not|between|in|like)\b)", re.I).match


@dataclass(frozen=True, slots=True)
class Constraint:
    """The range of one attribute, as it was written and as it is."""

    attribute: str
    text: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Breach:
    """Predicates of a request, on one attribute, that no value within its constraint satisfies."""

    predicates: Conjunction
    constraint: Constraint

    def __str__(self) -> str:
        asked = " and ".join(map(str, self.predicates))
        return f"{asked} lies outside the constraint {self.constraint.attribute}: {self.constraint.text}"


def parse_constraints(given: Mapping[str, str]) -> tuple[Constraint, ...]:
    """The constraints by attribute; PredicateError names the one that cannot be used."""
    return tuple(_parse(attribute, text) for attribute, text in given.items())


def _parse(attribute: str, text: str) -> Constraint:
    # Without a left side it is about the attribute whose constraint it is.
    whole = f"`{attribute}` {text}" if _begins_with_operator(text) else text
    try:
        alternatives = parse_predicates(whole)
        expression = parse_expression(whole)
    except PredicateError as error:
        raise PredicateError(f"the constraint {attribute} = {text!r} cannot be used: {error}") from None
    others = {p.attribute for conjunction in alternatives for p in conjunction} - {attribute}
    if others:
        raise PredicateError(
            f"the constraint {attribute} = {text!r} is about {', '.join(sorted(others))};"
            f" write one that is about {attribute}"
        )
    return Constraint(attribute, text, expression)


def breaches(constraints: tuple[Constraint, ...], request: Disjunction) -> tuple[Breach, ...]:
    """What in the request lies outside which constraint; nothing where all of it can be had."""
    found: dict[Breach, None] = {}
    for conjunction in request:
        for constraint in constraints:
            asked = tuple(p for p in conjunction if p.attribute == constraint.attribute)
            alone = [(p,) for p in asked if _is_outside((p,), constraint)]
            together = [] if alone or not _is_outside(asked, constraint) else [asked]
            found |= dict.fromkeys(Breach(predicates, constraint) for predicates in alone + together)
    return tuple(found)


def _is_outside(predicates: tuple[Predicate, ...], constraint: Constraint) -> bool:
    if not predicates:
        return False
    try:
        return not normalise(And((*predicates, constraint.expression)))
    except TooLarge:
        # What cannot be worked out is let in: it costs a filter that selects nothing, and refuses nobody.
        return False


def check_constraints(constraints: tuple[Constraint, ...], request: Disjunction) -> None:
    """Raise InvalidFilterFault where a part of the request lies outside."""
    found = breaches(constraints, request)
    if found:
        raise InvalidFilterFault(
            f"{'; '.join(map(str, found))}: no event of this service is so, ask within its constraints",
            unknown_filters=(wsnt("MessageContent"),),
        )
