"""Predicate counting: a conjunction holds when as many of its predicates are found true as it has.

PreIndexEngine is the predicate index that the paper on stream data services measures itself against: one
table from each distinct predicate to its conjunctions, gone through from end to end for each event.
ForwardingEngine is Carzaniga and Wolf's forwarding table: for each attribute of the event the predicates that
hold are looked up in sorted lists and hashes. It counts the comparisons of a look-up as evaluations, the
logarithm of a sorted list's length and one for a hash.
"""

from __future__ import annotations

from collections.abc import Iterable

from hpwsn.matching.language.predicates import Event, predicate_holds
from hpwsn.matching.papers.conjunctions import ConjunctionEngine, Held, simple_predicates
from hpwsn.matching.papers.predicate_lists import Listed, PredicateList, PredicateLists, SortedList


class PreIndexEngine(ConjunctionEngine):
    """Every distinct predicate is evaluated once for an event."""

    def __init__(self) -> None:
        super().__init__()
        self._lists = PredicateLists()
        self._table: dict[Listed, None] = {}
        self._always: dict[Held, None] = {}

    def _insert(self, held: Held) -> None:
        held.place = [self._lists.take(p, held) for p in simple_predicates(held.conjunction)]
        self._table.update(dict.fromkeys(held.place))
        if not held.place:
            self._always[held] = None

    def _delete(self, held: Held) -> None:
        for listed in held.place:
            self._lists.release(listed, held)
            if not listed.uses:
                del self._table[listed]
        self._always.pop(held, None)

    def _find(self, event: Event) -> list[Held]:
        counts: dict[Held, int] = {}
        for listed in self._true(event):
            for held in listed.uses:
                counts[held] = counts.get(held, 0) + 1
        return [*self._always, *(held for held, count in counts.items() if count == len(held.place))]

    def _true(self, event: Event) -> Iterable[Listed]:
        """The predicates that hold."""
        self.evaluations += len(self._table)
        return [listed for listed in self._table if predicate_holds(listed.predicate, event)]


class ForwardingEngine(PreIndexEngine):
    """The predicates that hold are looked up."""

    def _true(self, event: Event) -> Iterable[Listed]:
        found: dict[Listed, None] = {}
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
