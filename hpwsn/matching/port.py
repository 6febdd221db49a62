"""The port of matching engines: requests go in and out, an event gives the ids of those that hold.

Engines are pure and know no broker. Each must answer as hpwsn.matching.predicates defines it, whatever its
index; the naive engine does nothing else, and is what the others are compared with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hpwsn.matching.predicates import Disjunction, Event


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
