"""Conjunctions with words of one attribute and a rectangle of two others: found by word and cell.

The bounds and a signature of the words stand in arrays, so that all that an event finds is compared at once;
only those that are left and ask for more than one word, or for more than words and a place, are asked.

Memory: 57 bytes of arrays for each conjunction, and one number for each cell that its rectangle touches.
"""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from hpwsn.matching.cells import NOWHERE, Cell, cell_at
from hpwsn.matching.entries import Entry
from hpwsn.matching.predicates import Event, conjunction_holds
from hpwsn.matching.segments import Rows

FIRST_ROWS = 64
"""For how many a new shelf has room."""

SPARE = 8
"""Arrays so many times larger than what is in use are given up for smaller ones."""

_ALL = (1 << 64) - 1


@dataclass(slots=True)
class Filed:
    """A conjunction, and where it lies."""

    entry: Entry
    words: frozenset[str]
    bounds: tuple[float, float, float, float]
    plain: bool
    """Whether words and rectangle are all of it."""
    shelf: Shelf
    word: str
    cells: list[Cell]
    row: int = 0
    places: list[int] = field(default_factory=list)
    """Where it stands in the list of each of its cells."""


class Shelf:
    """Conjunctions with words of the same attribute and a rectangle of the same two others, or none."""

    __slots__ = (
        "_bounds", "_exact", "_filed", "_free", "_ids", "_signatures", "attribute", "by_word", "sizes", "x",
        "y",
    )  # fmt: skip

    def __init__(self, attribute: str, x: str | None, y: str | None) -> None:
        self.attribute = attribute
        self.x = x
        self.y = y
        self.by_word: dict[str, dict[Cell, array[int]]] = {}
        self.sizes: Counter[int] = Counter()
        self._free: list[int] = []
        self._filed: list[Filed | None] = []
        self._allocate(FIRST_ROWS)

    def __len__(self) -> int:
        return len(self._filed) - len(self._free)

    @property
    def capacity(self) -> int:
        """For how many conjunctions there is memory."""
        return len(self._ids)

    def _allocate(self, rows: int) -> None:
        self._bounds = np.empty((rows, 4))
        self._signatures = np.empty(rows, np.uint64)
        self._ids = np.empty(rows, np.int64)
        self._exact = np.empty(rows, np.bool_)

    def _grow(self) -> None:
        """Arrays of twice the size, with what there is."""
        old = (self._bounds, self._signatures, self._ids, self._exact)
        self._allocate(2 * len(self._ids))
        for before, after in zip(old, (self._bounds, self._signatures, self._ids, self._exact), strict=True):
            after[: len(before)] = before

    def add(self, filed: Filed) -> None:
        """File a conjunction under its word and cells."""
        if self._free:
            row = self._free.pop()
            self._filed[row] = filed
        else:
            row = len(self._filed)
            if row == self.capacity:
                self._grow()
            self._filed.append(filed)
        filed.row = row
        self._bounds[row] = filed.bounds
        rest = filed.words - {filed.word}
        self._signatures[row] = signature(rest)
        self._ids[row] = filed.entry.id
        self._exact[row] = bool(rest) or not filed.plain
        self._enter(filed)

    def _enter(self, filed: Filed) -> None:
        by_cell = self.by_word.setdefault(filed.word, {})
        filed.places = []
        for cell in filed.cells:
            rows = by_cell.get(cell)
            if rows is None:
                rows = by_cell[cell] = array("q")
            filed.places.append(len(rows))
            rows.append(filed.row)
            self.sizes[cell[0]] += 1

    def remove(self, filed: Filed) -> None:
        """Forget a conjunction."""
        self._leave(filed)
        self._filed[filed.row] = None
        self._free.append(filed.row)
        if len(self) * SPARE < self.capacity and self.capacity > FIRST_ROWS * SPARE:
            self._compact()

    def _leave(self, filed: Filed) -> None:
        by_cell = self.by_word[filed.word]
        for cell, place in zip(filed.cells, filed.places, strict=True):
            # The last of the list takes the place, so that a word that many ask for costs no more.
            rows = by_cell[cell]
            last = rows.pop()
            if last != filed.row:
                rows[place] = last
                moved = cast(Filed, self._filed[last])
                moved.places[moved.cells.index(cell)] = place
            if not rows:
                del by_cell[cell]
            self.sizes[cell[0]] -= 1
            if not self.sizes[cell[0]]:
                del self.sizes[cell[0]]
        if not by_cell:
            del self.by_word[filed.word]

    def _compact(self) -> None:
        """Start anew with what is left, which is an eighth of what there was."""
        left = [filed for filed in self._filed if filed is not None]
        self.by_word.clear()
        self.sizes.clear()
        self._free.clear()
        self._filed.clear()
        self._allocate(max(FIRST_ROWS, 2 * len(left)))
        for filed in left:
            self.add(filed)

    def match(self, present: frozenset[str], x: float, y: float, event: Event, found: list[int]) -> int:
        """Append the ids of conjunctions that hold; how many were compared."""
        chunks: list[array[int]] = []
        by_word = self.by_word
        cells = [cell_at(size, x, y) for size in self.sizes] if self.x is not None else [NOWHERE]
        for word in present:
            by_cell = by_word.get(word)
            if by_cell is not None:
                chunks += [by_cell[cell] for cell in cells if cell in by_cell]
        if not chunks:
            return 0
        rows = np.frombuffer(b"".join(chunks), np.int64)
        left = self._inside(rows, x, y, signature(present))
        exact = self._exact[left]
        found += self._ids[left[~exact]].tolist()
        for row in left[exact].tolist():
            filed = cast(Filed, self._filed[row])
            if filed.words <= present and (filed.plain or conjunction_holds(filed.entry.conjunction, event)):
                found.append(filed.entry.id)
        return len(rows)

    def _inside(self, rows: Rows, x: float, y: float, present: int) -> Rows:
        """The rows whose rectangle is around the point and whose words can be among those present."""
        west, east, south, north = self._bounds[rows].T
        inside = (west <= x) & (x <= east) & (south <= y) & (y <= north)
        left = rows[inside]
        return cast(Rows, left[(self._signatures[left] & np.uint64(~present & _ALL)) == 0])

    def every(self, present: frozenset[str]) -> list[Entry]:
        """All conjunctions that are filed under one of the words, wherever they are."""
        rows = {
            row
            for word in present & self.by_word.keys()
            for several in self.by_word[word].values()
            for row in several
        }
        return [cast(Filed, self._filed[row]).entry for row in rows]


def signature(words: frozenset[str]) -> int:
    """A bit for each word; those of a subset are among those of the set."""
    bits = 0
    for word in words:
        bits |= 1 << (hash(word) & 63)
    return bits
