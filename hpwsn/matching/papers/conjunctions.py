"""The common base of the papers' engines: splits requests into conjunctions, and maps matches back to ids.

The papers evaluate one predicate at a time. For a repeated attribute that is necessary but not sufficient,
since one value must satisfy the whole conjunction. So matches of events with repeated attributes are
evaluated again.
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


class StoredConjunction:
    """One conjunction of a request; `place` belongs to the engine that stores it."""

    __slots__ = ("conjunction", "id", "place")

    def __init__(self, id_: int, conjunction: Conjunction) -> None:
        self.id = id_
        self.conjunction = conjunction
        self.place: Any = None


class ConjunctionEngine(ABC):
    """An Engine that stores conjunctions."""

    def __init__(self) -> None:
        self.evaluations = 0
        self._requests: dict[int, tuple[StoredConjunction, ...]] = {}
        self._with_alternatives = 0

    @abstractmethod
    def _insert(self, stored: StoredConjunction) -> None:
        """Add a conjunction to the index."""

    @abstractmethod
    def _delete(self, stored: StoredConjunction) -> None:
        """Remove a conjunction from the index."""

    @abstractmethod
    def _find(self, event: Event) -> Iterable[StoredConjunction]:
        """Return the conjunctions whose predicates each hold by themselves."""

    def add(self, id_: int, request: Disjunction) -> None:
        """Add a request; ValueError if the id is in use."""
        if id_ in self._requests:
            raise ValueError(f"request {id_} is already in the engine; remove it first")
        stored = tuple(StoredConjunction(id_, conjunction) for conjunction in request)
        self._requests[id_] = stored
        self._with_alternatives += len(stored) > 1
        for one in stored:
            self._insert(one)

    def remove(self, id_: int) -> None:
        """Remove a request; KeyError if the id is unknown."""
        stored = self._requests.pop(id_)
        self._with_alternatives -= len(stored) > 1
        for one in stored:
            self._delete(one)

    def match(self, event: Event) -> list[int]:
        """Return the ids of all requests that match."""
        return self._ids(self._find(event), event)

    def _ids(self, found: Iterable[StoredConjunction], event: Event) -> list[int]:
        if any(type(value) is tuple for value in event.values()):
            found = [stored for stored in found if self._holds_whole(stored, event)]
        ids = [stored.id for stored in found]
        return list(dict.fromkeys(ids)) if self._with_alternatives else ids

    def _holds_whole(self, stored: StoredConjunction, event: Event) -> bool:
        self.evaluations += len(stored.conjunction)
        return conjunction_holds(stored.conjunction, event)

    def _holds(self, predicates: Iterable[Predicate], event: Event) -> bool:
        """Evaluate the predicates in order until one fails."""
        for predicate in predicates:
            self.evaluations += 1
            if not predicate_holds(predicate, event):
                return False
        return True

    def match_batch(self, events: Sequence[Event]) -> list[list[int]]:
        """Return the matching ids for each event."""
        return [self.match(event) for event in events]

    def __len__(self) -> int:
        return len(self._requests)


def simple_predicates(conjunction: Conjunction) -> list[Predicate]:
    """Return the distinct predicates, sorted by attribute; `between` becomes two comparisons."""
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
