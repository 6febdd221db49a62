"""What the indexes of the default engine share, and the simplest of them, for rare attributes.

An interval column pays only if many rows share it. Until eight conjunctions use an attribute, they stay in
`RareAttributeIndex`, which evaluates them one by one if an event has the attribute. Then they move to the
interval index. So subscriptions that each have an attribute of their own need no columns, and cost events
without that attribute nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, cast

from hpwsn.matching.language.predicates import Conjunction, Event, conjunction_holds

COMMON_ATTRIBUTE = 8
"""Number of conjunctions from which an attribute is common, and gets a column."""


class Entry:
    """One conjunction of a request, stored in one index.

    `place` is the index's own record of where the entry is, and `remove` deletes it there. `texts` are the
    texts whose codes it uses, `rest` the predicates that the index does not cover.
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
    """An index of the default engine."""

    def __bool__(self) -> bool:
        """Whether the index has entries."""

    def remove(self, entry: Entry) -> None:
        """Remove an entry that the index accepted."""

    def match(self, event: Event, found: list[int]) -> int:
        """Append the ids of conjunctions that match; return how many were evaluated one by one."""


class RareAttributeIndex:
    """Conjunctions by the rarest of their attributes."""

    def __init__(self) -> None:
        self._by_attribute: dict[str, dict[Entry, None]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_attribute)

    def add(self, entry: Entry, attributes: Iterable[str]) -> str:
        """Add a conjunction under the rarest of the attributes, and return that attribute."""
        rarest = min(attributes, key=lambda name: len(self._by_attribute.get(name, ())))
        self._by_attribute.setdefault(rarest, {})[entry] = None
        entry.place = rarest
        return rarest

    def is_common(self, attribute: str) -> bool:
        """Whether the attribute's conjunctions should move to the interval index."""
        return len(self._by_attribute.get(attribute, ())) >= COMMON_ATTRIBUTE

    def remove(self, entry: Entry) -> None:
        """Remove a conjunction."""
        attribute = cast(str, entry.place)
        entries = self._by_attribute[attribute]
        del entries[entry]
        if not entries:
            del self._by_attribute[attribute]

    def take_all(self, attribute: str) -> list[Entry]:
        """Remove and return all conjunctions of an attribute."""
        return list(self._by_attribute.pop(attribute, ()))

    def match(self, event: Event, found: list[int]) -> int:
        """Append the ids of conjunctions that match; return how many were evaluated."""
        evaluated, by_attribute = 0, self._by_attribute
        for attribute in by_attribute if len(by_attribute) < len(event) else event:
            entries = by_attribute.get(attribute)
            if entries is not None and attribute in event:
                evaluated += len(entries)
                found += [entry.id for entry in entries if conjunction_holds(entry.conjunction, event)]
        return evaluated
