"""Conjunctions with words of one attribute and a rectangle of two others: found by cell and word.

All that an event finds is compared at once: the bounds in each bucket lie as they are needed, so buckets are
only joined. Those that are around the point and ask for more than one word, or for more than words and a
place, are asked, unless a signature of their further words says that these cannot all be there.

Memory: 40 bytes for each cell that a rectangle touches, about 300 for each word that is asked for in a cell,
and 8 bytes and some small objects for each conjunction.
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
from hpwsn.matching.engine.segments import Rows
from hpwsn.matching.language.predicates import Event, conjunction_holds

FIRST_ROWS = 64
"""For how many a new shelf has room."""

SPARE = 8
"""Arrays so many times larger than what is in use are given up for smaller ones."""

FEW = 24
"""Rows that are sooner compared one by one than by numpy, which takes as long for a hundred."""

FIRST_BIT, SIGNATURE = 1 << 32, 30
"""The first bit of a signature, and how many there are."""

_ROW = FIRST_BIT - 1
"""The bits of a code that are the number of a row; those above are the signature of its further words."""

_ASKED = 1 << 62
"""The bit of a code whose row is more than a word and a rectangle."""

_SIGNATURES = _ASKED - 1 - _ROW
_CODE = np.dtype(np.int64)
_NOTHING, _LAST_ROW = np.array(0, _CODE), np.array(_ROW, _CODE)
_FOUR, _FOUR_HOLD = np.dtype(np.uint32), np.array(0x01010101, np.uint32)
"""Four comparisons as one number, and the one of four that hold."""

_pack_bounds = Struct("4d").pack
_EVERYWHERE = _pack_bounds(-np.inf, -np.inf, -np.inf, -np.inf)


@dataclass(slots=True)
class Filed:
    """A conjunction, and where it lies."""

    entry: Entry
    word: Word
    others: tuple[Word, ...]
    plain: bool
    """Whether words and rectangle are all of it."""
    shelf: Shelf
    code: int = 0
    cells: list[Cell] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    """Where it stands in its bucket of each of its cells."""


class Shelf:
    """Conjunctions with words of the same attribute and a rectangle of the same two others, or none."""

    __slots__ = ("_filed", "_free", "_grids", "_ids", "attribute", "x", "y")

    def __init__(self, attribute: str, x: str | None, y: str | None) -> None:
        self.attribute = attribute
        self.x = x
        self.y = y
        self._grids: dict[int, Grid] = {}
        self._free: list[int] = []
        self._filed: list[Any] = []
        self._ids: Rows = np.empty(FIRST_ROWS, np.int64)

    def __len__(self) -> int:
        return len(self._filed) - len(self._free)

    @property
    def capacity(self) -> int:
        """For how many conjunctions there is memory."""
        return len(self._ids)

    def add(self, filed: Filed, rectangle: Rectangle | None) -> None:
        """File a conjunction under its cells and its word."""
        if self._free:
            row = self._free.pop()
            self._filed[row] = filed
        else:
            row = len(self._filed)
            self._filed.append(filed)
            if row == self.capacity:
                self._ids = np.resize(self._ids, 2 * row)
        self._ids[row] = filed.entry.id
        filed.code = row
        if filed.others or not filed.plain:
            filed.code |= _ASKED | _signature(filed.others)
        self._enter(filed, rectangle)

    def _enter(self, filed: Filed, rectangle: Rectangle | None) -> None:
        size = size_of(rectangle) if rectangle else 0
        grid = self._grids.get(size)
        if grid is None:
            grid = self._grids[size] = Grid(size)
        if rectangle is None:
            filed.cells, bounds = [grid.cell(0.0, 0.0)], _EVERYWHERE
        else:
            west, east, south, north = rectangle
            filed.cells, bounds = grid.touched_by(rectangle), _pack_bounds(west, -east, south, -north)
        for cell in filed.cells:
            bucket = cell.get(filed.word)
            if bucket is None:
                bucket = cell[filed.word] = Bucket(array("d"), array("q"))
            filed.places.append(len(bucket.codes))
            bucket.bounds.frombytes(bounds)
            bucket.codes.append(filed.code)

    def remove(self, filed: Filed) -> None:
        """Forget a conjunction."""
        for cell, place in zip(filed.cells, filed.places, strict=True):
            self._leave(filed, cell, place)
        row = filed.code & _ROW
        self._filed[row] = None
        self._free.append(row)
        if len(self) * SPARE < self.capacity and self.capacity > FIRST_ROWS * SPARE:
            self._compact()

    def _leave(self, filed: Filed, cell: Cell, place: int) -> None:
        bounds, codes = cell[filed.word]
        last = codes.pop()
        if last != filed.code:
            # The last of the bucket takes the place, so that a word that many ask for costs no more.
            codes[place] = last
            bounds[4 * place : 4 * place + 4] = bounds[-4:]
            moved: Filed = self._filed[last & _ROW]
            moved.places[moved.cells.index(cell)] = place
        del bounds[-4:]
        if not codes:
            del cell[filed.word]
            if not cell:
                self._give_up(cell)

    def _give_up(self, cell: Cell) -> None:
        grid = self._grids[cell.size]
        del grid.cells[cell.column, cell.row]
        if not grid.cells:
            del self._grids[cell.size]

    def _compact(self) -> None:
        """Number the rows that are left anew, an eighth of what there was."""
        left: list[Filed] = [filed for filed in self._filed if filed is not None]
        rows = [filed.code & _ROW for filed in left]
        self._ids = np.resize(self._ids[rows], max(FIRST_ROWS, 2 * len(left)))
        for row, filed in enumerate(left):
            filed.code += row - (filed.code & _ROW)
            for cell, place in zip(filed.cells, filed.places, strict=True):
                cell[filed.word].codes[place] = filed.code
        self._filed[:] = left
        self._free.clear()

    def match(
        self, present: frozenset[Word], event: Event, found: list[int], x: float = 0.0, y: float = 0.0
    ) -> int:
        """Append the ids of conjunctions that hold; how many were compared."""
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
        if compared <= FEW:
            asked = self._list_few(buckets, x, y, found)
        else:
            asked = self._list_many(_around(bounds, codes, compared, x, y), present, found)
        if asked:
            self._ask(asked, present, event, found)
        return compared

    def _ask(self, codes: list[int], present: frozenset[Word], event: Event, found: list[int]) -> None:
        """Append the ids of those that hold, all of which are around the point."""
        for code in codes:
            filed: Filed = self._filed[code & _ROW]
            if present.issuperset(filed.others) and (
                filed.plain or conjunction_holds(filed.entry.conjunction, event)
            ):
                found.append(filed.entry.id)

    def _list_few(self, buckets: list[Bucket], x: float, y: float, found: list[int]) -> list[int]:
        """Append the ids of those around the point that are decided; the codes of those to be asked."""
        asked: list[int] = []
        for bounds, codes in buckets:
            each = iter(bounds)
            for west, east, south, north, code in zip(each, each, each, each, codes, strict=False):
                if west <= x and east <= -x and south <= y and north <= -y:
                    if code <= _ROW:
                        found.append(self._filed[code].entry.id)
                    else:
                        asked.append(code)
        return asked

    def _list_many(self, around: Rows, present: frozenset[Word], found: list[int]) -> list[int]:
        """The same of codes that are all around the point, without those whose words cannot be there."""
        absent = _SIGNATURES & ~_signature(present)
        around = around[(around & absent) == _NOTHING]
        asked: list[int] = around[around > _LAST_ROW].tolist()
        if asked:
            around = around[around <= _LAST_ROW]
        found += self._ids[around].tolist()
        return asked

    def every(self, present: frozenset[Word], xs: list[float], ys: list[float]) -> list[Entry]:
        """All conjunctions that are filed under one of the words, in the cells of all these places."""
        cells = [cell for grid in self._grids.values() for cell in grid.around(xs, ys)]
        codes = {code for cell in cells for word in present if word in cell for code in cell[word].codes}
        return [self._filed[code & _ROW].entry for code in codes]


def _around(
    bounds: Iterable[array[float]], codes: Iterable[array[int]], count: int, x: float, y: float
) -> Rows:
    """The codes of rows whose rectangle is around the point.

    The point is repeated, which takes less time than numpy's broadcasting of four numbers.
    """
    point = np.frombuffer(_pack_bounds(x, -x, y, -y) * count)
    holding = np.frombuffer(b"".join(bounds)) <= point
    around: Rows = np.frombuffer(b"".join(codes), _CODE)[holding.view(_FOUR) == _FOUR_HOLD]
    return around


def _signature(words: Iterable[Word]) -> int:
    """The bits of words; those of a subset are among those of the set."""
    bits = 0
    for word in words:
        bits |= word.bit
    return bits
