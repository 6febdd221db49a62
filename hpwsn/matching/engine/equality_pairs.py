"""Pair tables of the equality index: for two attributes, a hash table from their two values to conjunctions.

They suit conjunctions that share single values, such as five of twenty attributes with a thousand values
each: nearly every pair lookup then finds nothing, however many conjunctions there are. An event costs one
lookup per table. So a conjunction goes into the fullest existing table that it fits. A new table is chosen so
that the attributes form cliques, which by Turán's theorem need the fewest pairs to cover every conjunction.
Common pairs of values are refused. The equality index decides whether a new table pays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, product
from operator import itemgetter
from typing import Any, cast

from hpwsn.matching.engine.conjunction_index import Entry
from hpwsn.matching.language.predicates import Event
from hpwsn.matching.language.values import Scalar

SMALL_BUCKET = 4
"""A bucket with fewer conjunctions than this always accepts another."""

RARE_FRACTION = 128
"""A larger bucket accepts another while it holds less than 1/N of its attribute's or table's conjunctions."""

MAX_PAIRED = 8
"""Equalities of a conjunction that are considered for a pair."""

AttributeValue = tuple[str, Scalar]
"""An attribute and the value that it must have."""

Key = tuple[Scalar, Scalar]


def is_common_value(size: int, count: int) -> bool:
    """Whether a bucket of this size, out of `count` conjunctions, is better served by bitsets."""
    return size >= SMALL_BUCKET and size * RARE_FRACTION >= count


class PairTable:
    """Conjunctions by the values of two attributes."""

    __slots__ = ("buckets", "count", "names")

    def __init__(self, names: tuple[str, str]) -> None:
        self.names = names
        # True and 1.0 are the same key here; evaluating the conjunction tells them apart.
        self.buckets: dict[Key, tuple[Entry, ...]] = {}
        self.count = 0

    def has_room(self, key: Key) -> bool:
        """Whether the pair of values is rare enough for another conjunction."""
        bucket = self.buckets.get(key)
        return bucket is None or not is_common_value(len(bucket), self.count)

    def add(self, key: Key, entry: Entry) -> None:
        """Add a conjunction, and record the table as the entry's place."""
        self.buckets[key] = (*self.buckets.get(key, ()), entry)
        self.count += 1
        entry.place = self, key

    def remove(self, key: Key, entry: Entry) -> None:
        """Remove a conjunction."""
        left = tuple(other for other in self.buckets[key] if other is not entry)
        if left:
            self.buckets[key] = left
        else:
            del self.buckets[key]
        self.count -= 1


class PairTables:
    """The pair tables, and the choice of a table for each conjunction."""

    def __init__(self) -> None:
        self.count = 0
        # Each table is stored twice, under both of its attributes.
        self._partners: dict[str, dict[str, PairTable]] = {}
        self._tables: dict[tuple[str, str], PairTable] = {}
        self._flatten()

    def __len__(self) -> int:
        return len(self._tables)

    def offer(self, entry: Entry, singles: Sequence[AttributeValue]) -> bool:
        """Add the conjunction to the fullest table with room; return whether there is one.

        `singles` are its equalities with one value, sorted by attribute.
        """
        best, chosen, tables = 0, None, self._tables
        for (first, one), (second, two) in combinations(singles, 2):
            table = tables.get((first, second))
            if table is not None and table.count > best and table.has_room((one, two)):
                best, chosen = table.count, (table, (one, two))
        if chosen is None:
            return False
        chosen[0].add(chosen[1], entry)
        self.count += 1
        return True

    def add(self, entry: Entry, singles: Sequence[AttributeValue]) -> bool:
        """Add the conjunction to a new table; return False if all of its pairs already have one."""
        without = [pair for pair in combinations(singles, 2) if (pair[0][0], pair[1][0]) not in self._tables]
        if not without:
            return False
        (first, one), (second, two) = max(without, key=self._partner_overlap)
        table = PairTable((first, second))
        table.add((one, two), entry)
        self.count += 1
        self._tables[first, second] = table
        self._partners.setdefault(first, {})[second] = table
        self._partners.setdefault(second, {})[first] = table
        self._flatten()
        return True

    def _partner_overlap(self, pair: tuple[AttributeValue, AttributeValue]) -> int:
        """How far the two attributes already share the same partners."""
        (first, _), (second, _) = pair
        ours, theirs = self._partners.get(first, {}).keys(), self._partners.get(second, {}).keys()
        return 2 * len(ours & theirs) - len(ours ^ theirs)

    def remove(self, entry: Entry) -> None:
        """Remove a conjunction, and its table if that becomes empty."""
        table, key = cast(tuple[PairTable, Key], entry.place)
        table.remove(key, entry)
        self.count -= 1
        if not table.count:
            first, second = table.names
            del self._tables[table.names]
            for name, other in ((first, second), (second, first)):
                del self._partners[name][other]
                if not self._partners[name]:
                    del self._partners[name]
            self._flatten()

    def _flatten(self) -> None:
        """Copy the tables into parallel lists for the lookup loop."""
        self._firsts = [first for first, _ in self._tables]
        self._seconds = [second for _, second in self._tables]
        self._buckets = [table.buckets for table in self._tables.values()]
        self._first_of, self._second_of = _getter(self._firsts), _getter(self._seconds)

    def match(self, event: Event) -> Iterable[tuple[Entry, ...]]:
        """Return the buckets of the pairs of values in an event that repeats no attribute."""
        if len(event) < len(self._partners):
            return self._match_few(event)
        try:
            keys: Any = zip(self._first_of(event), self._second_of(event), strict=False)
        except KeyError:
            keys = zip(map(event.get, self._firsts), map(event.get, self._seconds), strict=True)
        return filter(None, map(_GET, self._buckets, keys))

    def _match_few(self, event: Event) -> Iterator[tuple[Entry, ...]]:
        """Return the same from the event's attributes, if they are fewer than those of all tables."""
        for table in self._tables_of(event):
            first, second = table.names
            bucket = table.buckets.get((event[first], event[second]))  # type: ignore[arg-type]
            if bucket is not None:
                yield bucket

    def _tables_of(self, event: Event) -> Iterator[PairTable]:
        for first in event:
            partners = self._partners.get(first)
            if partners is not None:
                for second in partners if len(partners) < len(event) else event:
                    if first < second and second in event and second in partners:
                        yield partners[second]

    def match_repeated(self, event: Event) -> Iterator[tuple[Entry, ...]]:
        """Return the same for repeated attributes; a conjunction can be in several buckets."""
        for table in self._tables_of(event):
            firsts, seconds = (dict.fromkeys(_values(event[name])) for name in table.names)
            if len(firsts) * len(seconds) <= len(table.buckets):
                yield from filter(None, map(table.buckets.get, product(firsts, seconds)))
            else:
                yield from (
                    bucket for (one, two), bucket in table.buckets.items() if one in firsts and two in seconds
                )


_GET: Any = dict.get


def _getter(names: list[str]) -> Callable[[Event], tuple[Any, ...]]:
    # The first name is repeated, since itemgetter does not return a tuple for a single name.
    return itemgetter(*names, *names[:1]) if names else lambda event: ()


def _values(value: Scalar | tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    return value if type(value) is tuple else (value,)  # type: ignore[return-value]
