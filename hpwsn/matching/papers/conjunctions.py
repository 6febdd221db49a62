"""What the papers' engines share: requests become conjunctions, and conjunctions that are found become ids.

The papers ask one predicate at a time. Of a repeated attribute that is necessary but not enough, since one
value must do for a whole conjunction; so what is found for an event that repeats attributes is asked again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from hpwsn.matching.language.predicates import (
    Conjunction,
    Disjunction,
    Event,
    Operator,
    Predicate,
    conjunction_holds,
    predicate_holds,
)


class Held:
    """One conjunction of a request that is in use; its engine keeps what it needs in `place`."""

    __slots__ = ("conjunction", "id", "place")

    def __init__(self, id_: int, conjunction: Conjunction) -> None:
        self.id = id_
        self.conjunction = conjunction
        self.place: Any = None


class ConjunctionEngine(ABC):
    """The port of engines, for those that hold conjunctions."""

    def __init__(self) -> None:
        self.evaluations = 0
        self._requests: dict[int, tuple[Held, ...]] = {}
        self._divided = 0

    @abstractmethod
    def _insert(self, held: Held) -> None:
        """Take a conjunction into the index."""

    @abstractmethod
    def _delete(self, held: Held) -> None:
        """Take it out again."""

    @abstractmethod
    def _find(self, event: Event) -> Iterable[Held]:
        """The conjunctions of which each predicate holds by itself."""

    def add(self, id_: int, request: Disjunction) -> None:
        """Take a request."""
        if id_ in self._requests:
            raise ValueError(f"request {id_} is already there; remove it first")
        held = tuple(Held(id_, conjunction) for conjunction in request)
        self._requests[id_] = held
        self._divided += len(held) > 1
        for one in held:
            self._insert(one)

    def remove(self, id_: int) -> None:
        """Forget a request."""
        held = self._requests.pop(id_)
        self._divided -= len(held) > 1
        for one in held:
            self._delete(one)

    def match(self, event: Event) -> list[int]:
        """The ids of all requests that hold."""
        return self._ids(self._find(event), event)

    def _ids(self, found: Iterable[Held], event: Event) -> list[int]:
        if any(type(value) is tuple for value in event.values()):
            found = [held for held in found if self._holds_whole(held, event)]
        ids = [held.id for held in found]
        return list(dict.fromkeys(ids)) if self._divided else ids

    def _holds_whole(self, held: Held, event: Event) -> bool:
        self.evaluations += len(held.conjunction)
        return conjunction_holds(held.conjunction, event)

    def _holds(self, predicates: Iterable[Predicate], event: Event) -> bool:
        """Asks one predicate after another until one fails."""
        for predicate in predicates:
            self.evaluations += 1
            if not predicate_holds(predicate, event):
                return False
        return True

    def match_batch(self, events: Sequence[Event]) -> list[list[int]]:
        """The same for several events."""
        return [self.match(event) for event in events]

    def __len__(self) -> int:
        return len(self._requests)


def simple_predicates(conjunction: Conjunction) -> list[Predicate]:
    """The predicates in alphabetical order of attribute, each once, a band as its two comparisons."""
    parts = [part for predicate in conjunction for part in _comparisons(predicate)]
    return list(dict.fromkeys(sorted(parts, key=_order)))


def _comparisons(predicate: Predicate) -> tuple[Predicate, ...]:
    if predicate.operator is not Operator.BETWEEN or predicate.negated:
        return (predicate,)
    low, high = predicate.operands
    name = predicate.attribute
    return (Predicate(name, Operator.GE, (low,)), Predicate(name, Operator.LE, (high,)))


def _order(predicate: Predicate) -> tuple[str, str, bool, str]:
    return (predicate.attribute, predicate.operator.value, predicate.negated, repr(predicate.operands))
