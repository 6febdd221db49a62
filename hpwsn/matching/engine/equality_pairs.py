"""Conjunctions by two equalities at once: for a pair of attributes, a table from their two values.

Right where a value alone is asked for by several, as with five of twenty attributes that have a thousand
values each: nearly every look-up finds nothing, however many conjunctions there are. What an event costs is
the number of tables. So a conjunction goes where a table is already, the fullest first, and a new one is made
such that attributes gather into cliques: by Turán's theorem the fewest pairs of which every conjunction has
one. Refuses values that many ask for together; whether a new table pays,
hpwsn.matching.engine.equality_index decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, product
from operator import itemgetter
from typing import Any, cast

from hpwsn.matching.engine.conjunction_index import Entry
from hpwsn.matching.language.predicates import Event
from hpwsn.matching.language.values import Scalar

ALWAYS = 4
"""Conjunctions of a value, or of two together, that are taken in any case."""

RARE = 128
"""More are taken as long as that leaves them less than this part of all of their attribute or table."""

LOOKED_AT = 8
"""Equalities of a conjunction among which a pair is sought, at most."""

Equal = tuple[str, Scalar]
"""An attribute and the value that it must have."""

Key = tuple[Scalar, Scalar]


def is_crowded(crowd: int, count: int) -> bool:
    """Whether so many of a count are better found by bitsets."""
    return crowd >= ALWAYS and crowd * RARE >= count


class PairTable:
    """The conjunctions that are found by the values of two attributes."""

    __slots__ = ("buckets", "count", "names")

    def __init__(self, names: tuple[str, str]) -> None:
        self.names = names
        # True and 1.0 are one key here, and are told apart when the conjunction is asked.
        self.buckets: dict[Key, tuple[Entry, ...]] = {}
        self.count = 0

    def has_room(self, key: Key) -> bool:
        """Whether few enough ask for these values."""
        bucket = self.buckets.get(key)
        return bucket is None or not is_crowded(len(bucket), self.count)

    def add(self, key: Key, entry: Entry) -> None:
        """File a conjunction, whose place this is now."""
        self.buckets[key] = (*self.buckets.get(key, ()), entry)
        self.count += 1
        entry.place = self, key

    def remove(self, key: Key, entry: Entry) -> None:
        """Forget a conjunction."""
        left = tuple(one for one in self.buckets[key] if one is not entry)
        if left:
            self.buckets[key] = left
        else:
            del self.buckets[key]
        self.count -= 1


class PairTables:
    """The tables in use, and which of them a conjunction goes to."""

    def __init__(self) -> None:
        self.count = 0
        # Each table is there twice, from either of its attributes.
        self._partners: dict[str, dict[str, PairTable]] = {}
        self._tables: dict[tuple[str, str], PairTable] = {}
        self._set_out()

    def __len__(self) -> int:
        return len(self._tables)

    def offer(self, entry: Entry, equals: Sequence[Equal]) -> bool:
        """Take the conjunction if two of its equalities, in order of attribute, have a table with room."""
        best, chosen, tables = 0, None, self._tables
        for (first, one), (second, two) in combinations(equals, 2):
            table = tables.get((first, second))
            if table is not None and table.count > best and table.has_room((one, two)):
                best, chosen = table.count, (table, (one, two))
        if chosen is None:
            return False
        chosen[0].add(chosen[1], entry)
        self.count += 1
        return True

    def add(self, entry: Entry, equals: Sequence[Equal]) -> bool:
        """Take the conjunction into a new table, if not all of its pairs have one already."""
        without = [pair for pair in combinations(equals, 2) if (pair[0][0], pair[1][0]) not in self._tables]
        if not without:
            return False
        (first, one), (second, two) = max(without, key=self._alike)
        table = PairTable((first, second))
        table.add((one, two), entry)
        self.count += 1
        self._tables[first, second] = table
        self._partners.setdefault(first, {})[second] = table
        self._partners.setdefault(second, {})[first] = table
        self._set_out()
        return True

    def _alike(self, pair: tuple[Equal, Equal]) -> int:
        """How much the partners that two attributes have already are the same ones."""
        (first, _), (second, _) = pair
        ours, theirs = self._partners.get(first, {}).keys(), self._partners.get(second, {}).keys()
        return 2 * len(ours & theirs) - len(ours ^ theirs)

    def remove(self, entry: Entry) -> None:
        """Forget a conjunction that was taken, and a table that has no other."""
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
            self._set_out()

    def _set_out(self) -> None:
        """Lay the tables side by side for the loop that looks them up."""
        self._firsts = [first for first, _ in self._tables]
        self._seconds = [second for _, second in self._tables]
        self._buckets = [table.buckets for table in self._tables.values()]
        self._first_of, self._second_of = _getter(self._firsts), _getter(self._seconds)

    def match(self, event: Event) -> Iterable[tuple[Entry, ...]]:
        """Conjunctions whose two values the event has, in lists; no value of the event is repeated."""
        if len(event) < len(self._partners):
            return self._match_few(event)
        try:
            keys: Any = zip(self._first_of(event), self._second_of(event), strict=False)
        except KeyError:
            keys = zip(map(event.get, self._firsts), map(event.get, self._seconds), strict=True)
        return filter(None, map(_GET, self._buckets, keys))

    def _match_few(self, event: Event) -> Iterator[tuple[Entry, ...]]:
        """The same from the event's attributes, which are fewer than those of all tables."""
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
        """The same where values are repeated; a conjunction may be in several lists."""
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
    # One name more than there are tables, since of a single one itemgetter would give no tuple.
    return itemgetter(*names, *names[:1]) if names else lambda event: ()


def _values(value: Scalar | tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    return value if type(value) is tuple else (value,)  # type: ignore[return-value]
