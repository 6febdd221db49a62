"""The naive engine: every request is asked, predicate after predicate, until one fails.

The yardstick for the others' answers and for their speed (BruteForce in the papers).

The port of matching engines: requests go in and out, an event gives the ids of those that hold.

Engines are pure and know no broker. Each must answer as hpwsn.matching.language.predicates defines it,
whatever its index; the naive engine does nothing else, and is what the others are compared with.
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
    """Requests that can be matched against events."""

    evaluations: int
    """Predicates evaluated since the start, as the engine's paper counts them."""

    def add(self, id_: int, request: Disjunction) -> None:
        """Take a request under an id that is not in use (ValueError if it is)."""

    def remove(self, id_: int) -> None:
        """Forget a request (KeyError if there is none of that id)."""

    def match(self, event: Event) -> list[int]:
        """The ids of all requests that hold, each once, in no particular order."""

    def match_batch(self, events: Sequence[Event]) -> list[list[int]]:
        """The same for several events."""

    def __len__(self) -> int:
        """How many requests there are."""


class NaiveEngine:
    """All requests in a dict, asked one after another."""

    def __init__(self) -> None:
        self.evaluations = 0
        self._requests: dict[int, Disjunction] = {}

    def add(self, id_: int, request: Disjunction) -> None:
        """Take a request."""
        if id_ in self._requests:
            raise ValueError(f"request {id_} is already there; remove it first")
        self._requests[id_] = request

    def remove(self, id_: int) -> None:
        """Forget a request."""
        del self._requests[id_]

    def match(self, event: Event) -> list[int]:
        """The ids of all requests that hold."""
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
        """The same for several events."""
        return [self.match(event) for event in events]

    def __len__(self) -> int:
        return len(self._requests)
