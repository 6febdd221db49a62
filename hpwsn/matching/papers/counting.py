"""Predicate counting: a conjunction matches when the number of its true predicates equals its length.

PreIndexEngine is the baseline of the paper on stream data services: one table from each distinct predicate to
its conjunctions, scanned completely for each event. ForwardingEngine is Carzaniga and Wolf's forwarding
table: for each attribute of the event, sorted lists and hash tables find the predicates that hold. It counts
the comparisons of a lookup as evaluations: the logarithm of the length of a sorted list, and one for a hash
table.
"""

from __future__ import annotations

from collections.abc import Iterable

from hpwsn.matching.language.predicates import Event, predicate_holds
from hpwsn.matching.papers.conjunctions import ConjunctionEngine, StoredConjunction, simple_predicates
from hpwsn.matching.papers.predicate_lists import ListedPredicate, PredicateList, PredicateLists, SortedList


class PreIndexEngine(ConjunctionEngine):
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


class ForwardingEngine(PreIndexEngine):
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
