"""The index of rare attributes: conjunctions found by an attribute that few others look at.

Columns pay where many rows share them. A conjunction that looks at an attribute without a column is asked
by itself whenever an event has that attribute, until as many as FEW do; then they are handed over, and
become rows. So subscriptions that each have an attribute of their own cost an event nothing, and no
columns.

What the parts of the default engine share: a conjunction in use, and the port of such a part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, cast

from hpwsn.matching.language.predicates import Conjunction, Event, conjunction_holds


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


FEW = 8
"""Conjunctions of an attribute that are too many to be asked one by one."""


class RareAttributes:
    """Conjunctions by the attribute that they share with the fewest."""

    def __init__(self) -> None:
        self._by_attribute: dict[str, dict[Entry, None]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_attribute)

    def add(self, entry: Entry, attributes: Iterable[str]) -> str:
        """Take a conjunction; the one of the attributes that it is found by."""
        rarest = min(attributes, key=lambda name: len(self._by_attribute.get(name, ())))
        self._by_attribute.setdefault(rarest, {})[entry] = None
        entry.place = rarest
        return rarest

    def is_common(self, attribute: str) -> bool:
        """Whether the attribute's conjunctions had better be rows."""
        return len(self._by_attribute.get(attribute, ())) >= FEW

    def remove(self, entry: Entry) -> None:
        """Forget a conjunction."""
        attribute = cast(str, entry.place)
        entries = self._by_attribute[attribute]
        del entries[entry]
        if not entries:
            del self._by_attribute[attribute]

    def hand_over(self, attribute: str) -> list[Entry]:
        """Forget all conjunctions that are found by an attribute, and return them."""
        return list(self._by_attribute.pop(attribute, ()))

    def match(self, event: Event, found: list[int]) -> int:
        """Append the ids of conjunctions that hold; how many were asked."""
        asked, by_attribute = 0, self._by_attribute
        for attribute in by_attribute if len(by_attribute) < len(event) else event:
            entries = by_attribute.get(attribute)
            if entries is not None and attribute in event:
                asked += len(entries)
                found += [entry.id for entry in entries if conjunction_holds(entry.conjunction, event)]
        return asked
