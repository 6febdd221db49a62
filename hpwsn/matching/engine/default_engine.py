"""The default engine: each conjunction in the index that finds it with the least work.

Words and places go to hpwsn.matching.engine.keyword_index, rare equalities to hashes, what looks at an
attribute that few others look at to rare_attributes, everything else that asks for an interval to rows, and
the few that ask for none (only negations) are asked each time. Add and remove work on one conjunction and
rebuild nothing; an attribute that becomes common takes the few that were found by it along.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hpwsn.matching.engine.conjunction_index import Entry, Index, RareAttributes
from hpwsn.matching.engine.equality_index import HashIndex
from hpwsn.matching.engine.interval_index import RowIndex
from hpwsn.matching.engine.intervals import TextCodes, row_of
from hpwsn.matching.engine.kernels import Kernel, match_numpy
from hpwsn.matching.engine.keyword_index import KeywordIndex
from hpwsn.matching.language.predicates import Disjunction, Event, Operator, conjunction_holds

# Members of an enumeration are slow to look up by name.
_HAS, _EQ, _IN = Operator.HAS, Operator.EQ, Operator.IN


def _nothing(entry: Entry) -> None:
    """Takes out what lies nowhere."""


class IndexedEngine:
    """Requests in indexes by what they ask for."""

    def __init__(self, kernel: Kernel = match_numpy) -> None:
        self.evaluations = 0
        self.kernel = kernel
        self._codes = TextCodes()
        self._rows = RowIndex(self._codes, lambda: self.kernel)
        self._hashes = HashIndex()
        self._keywords = KeywordIndex()
        self._rare = RareAttributes()
        # Made once: each mention of a method makes an object, which a hundred thousand entries would keep.
        self._remove_words, self._remove_hashed = self._keywords.remove, self._hashes.remove
        self._remove_rare, self._remove_row = self._rare.remove, self._rows.remove
        self._indexes: tuple[Index, ...] = (self._keywords, self._hashes, self._rare, self._rows)
        self._in_use: list[Callable[[Event, list[int]], int]] | None = None
        self._always: dict[Entry, None] = {}
        self._requests: dict[int, tuple[Entry, ...]] = {}
        self._divided = 0

    def add(self, id_: int, request: Disjunction) -> None:
        """Take a request."""
        if id_ in self._requests:
            raise ValueError(f"request {id_} is already there; remove it first")
        entries = tuple(Entry(id_, conjunction) for conjunction in request)
        for entry in entries:
            self._place(entry)
        self._requests[id_] = entries
        self._in_use = None
        self._divided += len(entries) > 1

    def _place(self, entry: Entry) -> None:
        """Put a conjunction where it belongs."""
        asked = {predicate.operator for predicate in entry.conjunction}
        if _HAS in asked and self._keywords.offer(entry):
            entry.remove = self._remove_words
        elif (_EQ in asked or _IN in asked) and self._hashes.offer(entry):
            entry.remove = self._remove_hashed
        else:
            self._place_row(entry)

    def _place_row(self, entry: Entry) -> None:
        row = row_of(entry.conjunction, self._codes)
        common = self._rows.attributes
        rare = [attribute for attribute, _ in row.bounds if attribute not in common]
        if row.possible and row.bounds and not rare:
            self._rows.add(entry, row)
            entry.remove = self._remove_row
            return
        self._codes.release(row.texts)
        if not row.possible:
            # It can never hold, and lies nowhere.
            entry.remove = _nothing
        elif rare:
            entry.remove = self._remove_rare
            attribute = self._rare.add(entry, rare)
            if self._rare.is_common(attribute):
                self._make_rows(attribute)
        else:
            self._always[entry] = None
            entry.remove = self._always.__delitem__

    def _make_rows(self, attribute: str) -> None:
        """Columns for what the conjunctions of an attribute look at, and rows for all that look there."""
        attributes = [attribute]
        while attributes:
            for entry in self._rare.hand_over(attributes.pop()):
                row = row_of(entry.conjunction, self._codes)
                attributes += {name for name, _ in row.bounds if name not in self._rows.attributes}
                self._rows.add(entry, row)
                entry.remove = self._remove_row

    def remove(self, id_: int) -> None:
        """Forget a request."""
        placed = self._requests.pop(id_)
        self._divided -= len(placed) > 1
        for entry in placed:
            entry.remove(entry)
        self._in_use = None

    def match(self, event: Event) -> list[int]:
        """The ids of all requests that hold."""
        in_use = self._in_use
        if in_use is None:
            # Looked for after a change, not for each event.
            in_use = self._in_use = [index.match for index in self._indexes if index]
        asked, found = 0, list[int]()
        for match in in_use:
            asked += match(event, found)
        for entry in self._always:
            asked += 1
            if conjunction_holds(entry.conjunction, event):
                found.append(entry.id)
        self.evaluations += asked
        # A request of several conjunctions may have been found by more than one.
        return list(dict.fromkeys(found)) if self._divided else found

    def match_batch(self, events: Sequence[Event]) -> list[list[int]]:
        """The same for several events."""
        return [self.match(event) for event in events]

    def __len__(self) -> int:
        return len(self._requests)


def fast_kernel() -> Kernel:
    """The compiled kernel, ready to run, where numba is installed; else numpy's.

    Takes seconds where it has to compile, so a server calls it in a thread and sets the engine's `kernel`
    when it is back; the engine works with numpy's until then.
    """
    try:
        from hpwsn.matching.engine.compiled_kernel import match_compiled, warm_up

        warm_up()
    except (ImportError, OSError):
        # Not installed, or no room to keep what was compiled.
        return match_numpy
    return match_compiled
