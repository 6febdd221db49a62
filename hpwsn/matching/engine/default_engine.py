"""The default matching engine: stores each conjunction in the index that finds it with the least work.

The package docstring says which index takes which conjunction. Adding or removing a request changes only the
entries of its own conjunctions; nothing is rebuilt. When a rare attribute becomes common, its conjunctions
move to the interval index.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hpwsn.matching.engine.conjunction_index import Entry, Index, RareAttributeIndex
from hpwsn.matching.engine.equality_index import EqualityIndex
from hpwsn.matching.engine.interval_index import IntervalIndex
from hpwsn.matching.engine.intervals import TextCodes, interval_row
from hpwsn.matching.engine.kernels import Kernel, match_numpy
from hpwsn.matching.engine.keyword_index import KeywordIndex
from hpwsn.matching.language.predicates import Disjunction, Event, Operator, conjunction_holds

# Module constants: looking up a member of an enumeration by name is slow.
_HAS, _EQ, _IN = Operator.HAS, Operator.EQ, Operator.IN


def _remove_from_nowhere(entry: Entry) -> None:
    """Do nothing: the conjunction can never match, and no index stores it."""


class DefaultEngine:
    """Matches events against requests, whose conjunctions it distributes over several indexes."""

    def __init__(self, kernel: Kernel = match_numpy) -> None:
        self.evaluations = 0
        self.kernel = kernel
        self._codes = TextCodes()
        self._intervals = IntervalIndex(self._codes, lambda: self.kernel)
        self._equalities = EqualityIndex()
        self._keywords = KeywordIndex()
        self._rare = RareAttributeIndex()
        # Bound once: each access creates a method object, and a hundred thousand entries would keep one each.
        self._remove_keyword, self._remove_equality = self._keywords.remove, self._equalities.remove
        self._remove_rare, self._remove_interval = self._rare.remove, self._intervals.remove
        self._indexes: tuple[Index, ...] = (self._keywords, self._equalities, self._rare, self._intervals)
        self._active_matches: list[Callable[[Event, list[int]], int]] | None = None
        self._unindexed: dict[Entry, None] = {}
        self._requests: dict[int, tuple[Entry, ...]] = {}
        self._with_alternatives = 0

    def add(self, id_: int, request: Disjunction) -> None:
        """Add a request; ValueError if the id is in use."""
        if id_ in self._requests:
            raise ValueError(f"request {id_} is already in the engine; remove it first")
        entries = tuple(Entry(id_, conjunction) for conjunction in request)
        for entry in entries:
            self._place(entry)
        self._requests[id_] = entries
        self._active_matches = None
        self._with_alternatives += len(entries) > 1

    def _place(self, entry: Entry) -> None:
        """Store a conjunction in the first index that accepts it."""
        operators = {predicate.operator for predicate in entry.conjunction}
        if _HAS in operators and self._keywords.offer(entry):
            entry.remove = self._remove_keyword
        elif (_EQ in operators or _IN in operators) and self._equalities.offer(entry):
            entry.remove = self._remove_equality
        else:
            self._place_intervals(entry)

    def _place_intervals(self, entry: Entry) -> None:
        row = interval_row(entry.conjunction, self._codes)
        common = self._intervals.attributes
        rare = [attribute for attribute, _ in row.bounds if attribute not in common]
        if row.possible and row.bounds and not rare:
            self._intervals.add(entry, row)
            entry.remove = self._remove_interval
            return
        self._codes.release(row.texts)
        if not row.possible:
            # It can never match, so no index stores it.
            entry.remove = _remove_from_nowhere
        elif rare:
            entry.remove = self._remove_rare
            attribute = self._rare.add(entry, rare)
            if self._rare.is_common(attribute):
                self._move_to_intervals(attribute)
        else:
            self._unindexed[entry] = None
            entry.remove = self._unindexed.__delitem__

    def _move_to_intervals(self, attribute: str) -> None:
        """Move an attribute's conjunctions, and those of every attribute they use, to the interval index."""
        attributes = [attribute]
        while attributes:
            for entry in self._rare.take_all(attributes.pop()):
                row = interval_row(entry.conjunction, self._codes)
                attributes += {name for name, _ in row.bounds if name not in self._intervals.attributes}
                self._intervals.add(entry, row)
                entry.remove = self._remove_interval

    def remove(self, id_: int) -> None:
        """Remove a request; KeyError if the id is unknown."""
        placed = self._requests.pop(id_)
        self._with_alternatives -= len(placed) > 1
        for entry in placed:
            entry.remove(entry)
        self._active_matches = None

    def match(self, event: Event) -> list[int]:
        """Return the ids of all requests that match, each once."""
        active = self._active_matches
        if active is None:
            # Computed once after a change, not for each event.
            active = self._active_matches = [index.match for index in self._indexes if index]
        evaluated, found = 0, list[int]()
        for match in active:
            evaluated += match(event, found)
        for entry in self._unindexed:
            evaluated += 1
            if conjunction_holds(entry.conjunction, event):
                found.append(entry.id)
        self.evaluations += evaluated
        # Several conjunctions of one request may have matched.
        return list(dict.fromkeys(found)) if self._with_alternatives else found

    def match_batch(self, events: Sequence[Event]) -> list[list[int]]:
        """Return the matching ids for each event."""
        return [self.match(event) for event in events]

    def __len__(self) -> int:
        return len(self._requests)


def fast_kernel() -> Kernel:
    """Return the compiled kernel, ready to run, or numpy's if numba is not installed.

    Compilation can take seconds, so a server calls this in a thread and then sets the engine's `kernel`.
    Until then the engine uses the numpy kernel.
    """
    try:
        from hpwsn.matching.engine.compiled_kernel import match_compiled, warm_up

        warm_up()
    except (ImportError, OSError):
        # numba is not installed, or its cache cannot be written.
        return match_numpy
    return match_compiled
