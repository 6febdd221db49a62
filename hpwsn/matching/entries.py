"""What the parts of the default engine share: a conjunction in use, and the port of such a part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from hpwsn.matching.predicates import Conjunction, Event


class Entry:
    """One conjunction of a request, in one place of one index, which keeps that place in `place`.

    `remove` takes it out of there. `texts` are those that it uses codes of, `rest` what the index cannot see.
    """

    __slots__ = ("conjunction", "id", "place", "remove", "rest", "texts")

    remove: Callable[[Entry], None]

    def __init__(self, id_: int, conjunction: Conjunction) -> None:
        self.id = id_
        self.conjunction = conjunction
        self.place: object = None
        self.texts: tuple[str, ...] = ()
        self.rest: Conjunction = ()


class Index(Protocol):
    """A part of the engine that finds conjunctions by what they have in common."""

    def __bool__(self) -> bool:
        """Whether it has any."""

    def remove(self, entry: Entry) -> None:
        """Forget a conjunction that it took."""

    def match(self, event: Event, found: list[int]) -> int:
        """Append the ids of conjunctions that hold; how many were asked one by one."""
