"""The interface of matching engines, and the naive engine that defines their correct answers.

An engine takes requests, and returns the ids of those that match an event. Engines are pure and do not know
the broker. Every engine must answer as `hpwsn.matching.language.predicates` defines. `NaiveEngine` evaluates
every request in turn (BruteForce in the papers); tests and benchmarks compare the other engines with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hpwsn.matching.language.predicates import (
    Conjunction,
    Disjunction,
    Event,
    conjunction_holds,
    predicate_holds,
)


class Engine(Protocol):
    """Requests that are matched against events."""

    evaluations: int
    """Predicates evaluated since the start, as the engine's paper counts them."""

    def add(self, id_: int, request: Disjunction) -> None:
        """Add a request; ValueError if the id is in use."""

    def remove(self, id_: int) -> None:
        """Remove a request; KeyError if the id is unknown."""

    def match(self, event: Event) -> list[int]:
        """Return the ids of all requests that match, each once, in any order."""

    def match_batch(self, events: Sequence[Event]) -> list[list[int]]:
        """Return the matching ids for each event."""

    def __len__(self) -> int:
        """The number of requests."""


class NaiveEngine:
    """Evaluates all requests one after another."""

    def __init__(self) -> None:
        self.evaluations = 0
        self._requests: dict[int, Disjunction] = {}

    def add(self, id_: int, request: Disjunction) -> None:
        """Add a request; ValueError if the id is in use."""
        if id_ in self._requests:
            raise ValueError(f"request {id_} is already in the engine; remove it first")
        self._requests[id_] = request

    def remove(self, id_: int) -> None:
        """Remove a request; KeyError if the id is unknown."""
        del self._requests[id_]

    def match(self, event: Event) -> list[int]:
        """Return the ids of all requests that match."""
        repeated = any(type(value) is tuple for value in event.values())
        holds = self._holds_repeated if repeated else self._holds
        return [id_ for id_, request in self._requests.items() if any(holds(c, event) for c in request)]

    def _holds(self, conjunction: Conjunction, event: Event) -> bool:
        for predicate in conjunction:
            self.evaluations += 1
            if not predicate_holds(predicate, event):
                return False
        return True

    def _holds_repeated(self, conjunction: Conjunction, event: Event) -> bool:
        self.evaluations += len(conjunction)
        return conjunction_holds(conjunction, event)

    def match_batch(self, events: Sequence[Event]) -> list[list[int]]:
        """Return the matching ids for each event."""
        return [self.match(event) for event in events]

    def __len__(self) -> int:
        return len(self._requests)
