"""The default engine: each conjunction in the index that finds it with the least work.

Words and places go to hpwsn.matching.keywords, rare equalities to hashes, everything else that asks for an
interval to rows, and the few that ask for none (only negations) are asked each time. Add and remove work on
one conjunction and rebuild nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hpwsn.matching.entries import Entry
from hpwsn.matching.hashes import HashIndex
from hpwsn.matching.intervals import TextCodes, row_of
from hpwsn.matching.kernels import Kernel, match_numpy
from hpwsn.matching.keywords import KeywordIndex
from hpwsn.matching.predicates import Disjunction, Event, Operator, conjunction_holds
from hpwsn.matching.rows import RowIndex

Remove = Callable[[Entry], None]

# Members of an enumeration are slow to look up by name.
_HAS, _EQ = Operator.HAS, Operator.EQ


class IndexedEngine:
    """Requests in indexes by what they ask for."""

    def __init__(self, kernel: Kernel = match_numpy) -> None:
        self.evaluations = 0
        self.kernel = kernel
        self._codes = TextCodes()
        self._rows = RowIndex(self._codes, lambda: self.kernel)
        self._hashes = HashIndex()
        self._keywords = KeywordIndex()
        self._always: dict[Entry, None] = {}
        self._requests: dict[int, tuple[tuple[Entry, Remove], ...]] = {}
        self._divided = 0

    def add(self, id_: int, request: Disjunction) -> None:
        """Take a request."""
        if id_ in self._requests:
            raise ValueError(f"request {id_} is already there; remove it first")
        entries = [Entry(id_, conjunction) for conjunction in request]
        placed = [(entry, remove) for entry in entries if (remove := self._place(entry)) is not None]
        self._requests[id_] = tuple(placed)
        self._divided += len(placed) > 1

    def _place(self, entry: Entry) -> Remove | None:
        """Put a conjunction where it belongs; how to take it out again, or None if it can never hold."""
        asked = {predicate.operator for predicate in entry.conjunction}
        if _HAS in asked and self._keywords.offer(entry):
            return self._keywords.remove
        if _EQ in asked and self._hashes.offer(entry):
            return self._hashes.remove
        row = row_of(entry.conjunction, self._codes)
        if not row.possible:
            self._codes.release(row.texts)
            return None
        if row.bounds:
            self._rows.add(entry, row)
            return self._rows.remove
        self._always[entry] = None
        return self._always.__delitem__

    def remove(self, id_: int) -> None:
        """Forget a request."""
        placed = self._requests.pop(id_)
        self._divided -= len(placed) > 1
        for entry, remove in placed:
            remove(entry)

    def match(self, event: Event) -> list[int]:
        """The ids of all requests that hold."""
        return self.match_batch((event,))[0]

    def match_batch(self, events: Sequence[Event]) -> list[list[int]]:
        """The same for several events, whose values a kernel gets together."""
        found: list[list[int]] = [[] for _ in events]
        for event, ids in zip(events, found, strict=True):
            asked = self._keywords.match(event, ids) + self._hashes.match(event, ids)
            for entry in self._always:
                asked += 1
                if conjunction_holds(entry.conjunction, event):
                    ids.append(entry.id)
            self.evaluations += asked
        self.evaluations += self._rows.match(events, found)
        # A request of several conjunctions may have been found by more than one.
        return [list(dict.fromkeys(ids)) for ids in found] if self._divided else found

    def __len__(self) -> int:
        return len(self._requests)


def fast_kernel() -> Kernel:
    """The compiled kernel, ready to run, where numba is installed; else numpy's.

    Takes seconds where it has to compile, so a server calls it in a thread and sets the engine's `kernel`
    when it is back; the engine works with numpy's until then.
    """
    try:
        from hpwsn.matching.compiled import match_compiled, warm_up

        warm_up()
    except (ImportError, OSError):
        # Not installed, or no room to keep what was compiled.
        return match_numpy
    return match_compiled
