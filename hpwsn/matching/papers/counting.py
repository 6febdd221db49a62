"""Predicate counting: a conjunction matches when the number of its true predicates equals its length.

CountingEngine has one table from each distinct predicate to its conjunctions, evaluated completely for each
event. PreIndexEngine is the baseline of the paper on stream data services, which takes it from Liu, Zhou and
Wu (2010): it knows duplicates and covering. Equal conjunctions are one entry, equal predicates are one row,
and a predicate that another one covers is not evaluated if the other one decides it: x > 34 is false where
x > 32 is, and x > 32 is true where x > 34 is. A covered conjunction has covered predicates, so it is decided
in the same way. The table is still scanned completely, as the paper says of predicate indexes.

ForwardingEngine is Carzaniga and Wolf's forwarding table: for each attribute of the event, sorted lists and
hash tables find the predicates that hold. It counts the comparisons of a lookup as evaluations: the logarithm
of the length of a sorted list, and one for a hash table.
"""

from __future__ import annotations

from collections.abc import Iterable

from hpwsn.matching.language.predicates import Event, Predicate, predicate_holds
from hpwsn.matching.papers.conjunctions import ConjunctionEngine, StoredConjunction, simple_predicates
from hpwsn.matching.papers.predicate_lists import ListedPredicate, PredicateList, PredicateLists, SortedList


class CountingEngine(ConjunctionEngine):
    """Evaluates every distinct predicate once per event."""

    def __init__(self) -> None:
        super().__init__()
        self._lists = PredicateLists()
        self._table: dict[ListedPredicate, None] = {}
        self._unconditional: dict[StoredConjunction, None] = {}

    def _insert(self, stored: StoredConjunction) -> None:
        stored.place = [self._lists.acquire(p, stored) for p in simple_predicates(stored.conjunction)]
        self._table.update(dict.fromkeys(stored.place))
        if not stored.place:
            self._unconditional[stored] = None

    def _delete(self, stored: StoredConjunction) -> None:
        for listed in stored.place:
            self._lists.release(listed, stored)
            if not listed.uses:
                del self._table[listed]
        self._unconditional.pop(stored, None)

    def _find(self, event: Event) -> list[StoredConjunction]:
        counts: dict[StoredConjunction, int] = {}
        for listed in self._true(event):
            for stored in listed.uses:
                counts[stored] = counts.get(stored, 0) + 1
        return [
            *self._unconditional,
            *(stored for stored, count in counts.items() if count == len(stored.place)),
        ]

    def _true(self, event: Event) -> Iterable[ListedPredicate]:
        """Return the predicates that hold."""
        self.evaluations += len(self._table)
        return [listed for listed in self._table if predicate_holds(listed.predicate, event)]


class DistinctConjunction:
    """Equal conjunctions as one entry: its predicates' rows, and the requests that contain it."""

    __slots__ = ("key", "place", "users")

    def __init__(self, key: frozenset[Predicate]) -> None:
        self.key = key
        self.place: list[ListedPredicate] = []
        self.users: dict[StoredConjunction, None] = {}


class PreIndexEngine(ConjunctionEngine):
    """Evaluates a distinct predicate only if no other one decides it, and counts each conjunction once."""

    def __init__(self) -> None:
        super().__init__()
        self._lists = PredicateLists()
        self._table: dict[ListedPredicate, None] = {}
        self._distinct: dict[frozenset[Predicate], DistinctConjunction] = {}

    def _insert(self, stored: StoredConjunction) -> None:
        predicates = simple_predicates(stored.conjunction)
        key = frozenset(predicates)
        entry = self._distinct.get(key)
        if entry is None:
            entry = self._distinct[key] = DistinctConjunction(key)
            entry.place = [self._lists.acquire(predicate, entry) for predicate in predicates]
            self._table.update(dict.fromkeys(entry.place))
        entry.users[stored] = None
        stored.place = entry

    def _delete(self, stored: StoredConjunction) -> None:
        entry: DistinctConjunction = stored.place
        del entry.users[stored]
        if entry.users:
            return
        del self._distinct[entry.key]
        for listed in entry.place:
            self._lists.release(listed, entry)
            if not listed.uses:
                del self._table[listed]

    def _find(self, event: Event) -> list[StoredConjunction]:
        counts: dict[DistinctConjunction, int] = {}
        for listed in self._true(event):
            for entry in listed.uses:
                counts[entry] = counts.get(entry, 0) + 1
        matched = [entry for entry, count in counts.items() if count == len(entry.place)]
        if (unconditional := self._distinct.get(frozenset())) is not None:
            matched.append(unconditional)
        return [stored for entry in matched for stored in entry.users]

    def _true(self, event: Event) -> Iterable[ListedPredicate]:
        """Return the predicates that hold, most of them decided by others."""
        lists, before = self._lists, self._lists.evaluations
        lists.begin(event)
        found = [listed for listed in self._table if lists.holds(listed)]
        self.evaluations += lists.evaluations - before
        return found


class ForwardingEngine(CountingEngine):
    """Looks up the predicates that hold."""

    def _true(self, event: Event) -> Iterable[ListedPredicate]:
        found: dict[ListedPredicate, None] = {}
        for name, value in event.items():
            for one in value if isinstance(value, tuple) else (value,):
                for list_ in self._lists.of_attribute(name):
                    self.evaluations += _comparisons(list_)
                    found.update(dict.fromkeys(list_.true_for(one)))
        for listed in self._lists.unlisted.values():
            self.evaluations += 1
            if predicate_holds(listed.predicate, event):
                found[listed] = None
        return found


def _comparisons(list_: PredicateList) -> int:
    return len(list_).bit_length() if isinstance(list_, SortedList) else 1
