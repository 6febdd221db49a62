"""Conjunctions with words of one attribute and a rectangle over two others, found by cell and word.

The candidates of an event are compared in one numpy operation: bounds are stored as the comparison needs
them, so buckets are only concatenated. A conjunction with several words, or with more predicates than words
and rectangle, is inexact: if its rectangle contains the point it is also evaluated. A signature of its other
words rules most of these out first.

Memory: 40 bytes for each cell that a rectangle touches, about 300 for each distinct word in a cell, and 8
bytes plus some small objects for each conjunction.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from struct import Struct
from typing import Any

import numpy as np

from hpwsn.matching.engine.cells import Bucket, Cell, Grid, Rectangle, Word, size_of
from hpwsn.matching.engine.conjunction_index import Entry
from hpwsn.matching.engine.segments import RowNumbers
from hpwsn.matching.language.predicates import Event, conjunction_holds

FIRST_ROWS = 64
"""Initial capacity, in conjunctions."""

SHRINK_RATIO = 8
"""Arrays are compacted when their capacity exceeds the live conjunctions by this factor."""

SCALAR_LIMIT = 24
"""Up to this many candidates a Python loop is faster than numpy."""

FIRST_BIT, SIGNATURE_BITS = 1 << 32, 30
"""The first bit of a signature, and the number of signature bits."""

_ROW_MASK = FIRST_BIT - 1
"""The bits of a code that hold the row number; the bits above hold the signature of the other words."""

_INEXACT = 1 << 62
"""The bit of a code whose conjunction is more than one word and a rectangle."""

_SIGNATURE_MASK = _INEXACT - 1 - _ROW_MASK
_CODE = np.dtype(np.int64)
_ZERO, _LAST_ROW = np.array(0, _CODE), np.array(_ROW_MASK, _CODE)
_FOUR_BOOLS, _FOUR_TRUE = np.dtype(np.uint32), np.array(0x01010101, np.uint32)
"""Four comparison results read as one number, and that number if all four are true."""

_pack_bounds = Struct("4d").pack
_EVERYWHERE = _pack_bounds(-np.inf, -np.inf, -np.inf, -np.inf)


@dataclass(slots=True)
class CellEntry:
    """A conjunction and where it is stored."""

    entry: Entry
    word: Word
    other_words: tuple[Word, ...]
    exact: bool
    """Whether the conjunction consists of words and rectangle only."""
    word_cells: WordCells
    code: int = 0
    cells: list[Cell] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    """Its position in the bucket of each of its cells."""


class WordCells:
    """Conjunctions with words of the same attribute and a rectangle over the same two attributes, or none."""

    __slots__ = ("_entries", "_free", "_grids", "_ids", "attribute", "x", "y")

    def __init__(self, attribute: str, x: str | None, y: str | None) -> None:
        self.attribute = attribute
        self.x = x
        self.y = y
        self._grids: dict[int, Grid] = {}
        self._free: list[int] = []
        self._entries: list[Any] = []
        self._ids: RowNumbers = np.empty(FIRST_ROWS, np.int64)

    def __len__(self) -> int:
        return len(self._entries) - len(self._free)

    @property
    def capacity(self) -> int:
        """The number of conjunctions that memory is allocated for."""
        return len(self._ids)

    def add(self, cell_entry: CellEntry, rectangle: Rectangle | None) -> None:
        """Add a conjunction under its word, in the cells of its rectangle."""
        if self._free:
            row = self._free.pop()
            self._entries[row] = cell_entry
        else:
            row = len(self._entries)
            self._entries.append(cell_entry)
            if row == self.capacity:
                self._ids = np.resize(self._ids, 2 * row)
        self._ids[row] = cell_entry.entry.id
        cell_entry.code = row
        if cell_entry.other_words or not cell_entry.exact:
            cell_entry.code |= _INEXACT | _signature(cell_entry.other_words)
        self._insert(cell_entry, rectangle)

    def _insert(self, cell_entry: CellEntry, rectangle: Rectangle | None) -> None:
        size = size_of(rectangle) if rectangle else 0
        grid = self._grids.get(size)
        if grid is None:
            grid = self._grids[size] = Grid(size)
        if rectangle is None:
            cell_entry.cells, bounds = [grid.cell(0.0, 0.0)], _EVERYWHERE
        else:
            west, east, south, north = rectangle
            cell_entry.cells, bounds = grid.touched_by(rectangle), _pack_bounds(west, -east, south, -north)
        for cell in cell_entry.cells:
            bucket = cell.get(cell_entry.word)
            if bucket is None:
                bucket = cell[cell_entry.word] = Bucket(array("d"), array("q"))
            cell_entry.positions.append(len(bucket.codes))
            bucket.bounds.frombytes(bounds)
            bucket.codes.append(cell_entry.code)

    def remove(self, cell_entry: CellEntry) -> None:
        """Remove a conjunction."""
        for cell, position in zip(cell_entry.cells, cell_entry.positions, strict=True):
            self._delete(cell_entry, cell, position)
        row = cell_entry.code & _ROW_MASK
        self._entries[row] = None
        self._free.append(row)
        if len(self) * SHRINK_RATIO < self.capacity and self.capacity > FIRST_ROWS * SHRINK_RATIO:
            self._compact()

    def _delete(self, cell_entry: CellEntry, cell: Cell, position: int) -> None:
        bounds, codes = cell[cell_entry.word]
        last = codes.pop()
        if last != cell_entry.code:
            # The last element fills the gap, so removal from a large bucket takes constant time.
            codes[position] = last
            bounds[4 * position : 4 * position + 4] = bounds[-4:]
            moved: CellEntry = self._entries[last & _ROW_MASK]
            moved.positions[moved.cells.index(cell)] = position
        del bounds[-4:]
        if not codes:
            del cell[cell_entry.word]
            if not cell:
                self._drop_cell(cell)

    def _drop_cell(self, cell: Cell) -> None:
        grid = self._grids[cell.size]
        del grid.cells[cell.column, cell.row]
        if not grid.cells:
            del self._grids[cell.size]

    def _compact(self) -> None:
        """Renumber the remaining rows into smaller arrays."""
        left: list[CellEntry] = [cell_entry for cell_entry in self._entries if cell_entry is not None]
        rows = [cell_entry.code & _ROW_MASK for cell_entry in left]
        self._ids = np.resize(self._ids[rows], max(FIRST_ROWS, 2 * len(left)))
        for row, cell_entry in enumerate(left):
            cell_entry.code += row - (cell_entry.code & _ROW_MASK)
            for cell, position in zip(cell_entry.cells, cell_entry.positions, strict=True):
                cell[cell_entry.word].codes[position] = cell_entry.code
        self._entries[:] = left
        self._free.clear()

    def match(
        self, present: frozenset[Word], event: Event, found: list[int], x: float = 0.0, y: float = 0.0
    ) -> int:
        """Append the ids of conjunctions that match; return how many were compared."""
        buckets: list[Bucket] = []
        for grid in self._grids.values():
            scale = grid.scale
            cell = grid.cells.get((x * scale // 1.0, y * scale // 1.0))
            if cell is not None:
                buckets += filter(None, map(cell.get, present))
        if not buckets:
            return 0
        bounds, codes = zip(*buckets, strict=True)
        compared = sum(map(len, codes))
        if compared <= SCALAR_LIMIT:
            inexact = self._scan(buckets, x, y, found)
        else:
            inexact = self._scan_arrays(_containing(bounds, codes, compared, x, y), present, found)
        if inexact:
            self._evaluate(inexact, present, event, found)
        return compared

    def _evaluate(self, codes: list[int], present: frozenset[Word], event: Event, found: list[int]) -> None:
        """Append the ids of inexact conjunctions that match; their rectangles contain the point."""
        for code in codes:
            cell_entry: CellEntry = self._entries[code & _ROW_MASK]
            if present.issuperset(cell_entry.other_words) and (
                cell_entry.exact or conjunction_holds(cell_entry.entry.conjunction, event)
            ):
                found.append(cell_entry.entry.id)

    def _scan(self, buckets: list[Bucket], x: float, y: float, found: list[int]) -> list[int]:
        """Append the ids of exact conjunctions that match; return the codes of inexact candidates."""
        inexact: list[int] = []
        for bounds, codes in buckets:
            each = iter(bounds)
            for west, east, south, north, code in zip(each, each, each, each, codes, strict=False):
                if west <= x and east <= -x and south <= y and north <= -y:
                    if code <= _ROW_MASK:
                        found.append(self._entries[code].entry.id)
                    else:
                        inexact.append(code)
        return inexact

    def _scan_arrays(self, containing: RowNumbers, present: frozenset[Word], found: list[int]) -> list[int]:
        """Do the same for codes whose rectangles contain the point, ruling out others by signature."""
        absent = _SIGNATURE_MASK & ~_signature(present)
        containing = containing[(containing & absent) == _ZERO]
        inexact: list[int] = containing[containing > _LAST_ROW].tolist()
        if inexact:
            containing = containing[containing <= _LAST_ROW]
        found += self._ids[containing].tolist()
        return inexact

    def candidates(self, present: frozenset[Word], xs: list[float], ys: list[float]) -> list[Entry]:
        """Return all conjunctions under one of the words in cells that contain a pair of the coordinates."""
        cells = [cell for grid in self._grids.values() for cell in grid.containing(xs, ys)]
        codes = {code for cell in cells for word in present if word in cell for code in cell[word].codes}
        return [self._entries[code & _ROW_MASK].entry for code in codes]


def _containing(
    bounds: Iterable[array[float]], codes: Iterable[array[int]], count: int, x: float, y: float
) -> RowNumbers:
    """Return the codes of rows whose rectangle contains the point.

    The point is repeated for each row, which is faster than numpy's broadcasting of four numbers.
    """
    point = np.frombuffer(_pack_bounds(x, -x, y, -y) * count)
    holding = np.frombuffer(b"".join(bounds)) <= point
    containing: RowNumbers = np.frombuffer(b"".join(codes), _CODE)[holding.view(_FOUR_BOOLS) == _FOUR_TRUE]
    return containing


def _signature(words: Iterable[Word]) -> int:
    """Return the union of the words' bits; the signature of a subset is a subset of the bits."""
    bits = 0
    for word in words:
        bits |= word.bit
    return bits
