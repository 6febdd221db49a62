"""Grids of square cells whose side is a power of four, and the rectangles stored in each cell by word.

A rectangle is stored in the finest grid whose cells are at least twice as wide as the rectangle. The bounds
of one cell and word are contiguous in memory, in the order of the comparison.
"""

from __future__ import annotations

import math
from array import array
from itertools import product
from typing import NamedTuple

CellKey = tuple[float, float]
"""A cell's column and row, both whole numbers."""

Rectangle = tuple[float, float, float, float]
"""West, east, south and north."""

SIZE_MARGIN = 2
"""Minimum difference between the exponents of a cell's side and of half the rectangle's side: a cell is then
at least twice as wide, and a rectangle touches at most four cells."""

FINEST, COARSEST = -1000, 1022
"""Limits of a side's exponent: every finite coordinate can be divided by such a side, and 64 of the largest
cells cover all doubles."""


class Word:
    """A word in some conjunction, its number of uses, and its signature bit."""

    __slots__ = ("bit", "text", "uses")

    def __init__(self, text: str, bit: int) -> None:
        self.text = text
        self.bit = bit
        self.uses = 0


class Bucket(NamedTuple):
    """The bounds and codes of the rectangles stored under one word in one cell.

    Bounds are west, -east, south, -north. A rectangle contains the point x, y if its bounds are at most x,
    -x, y and -y.
    """

    bounds: array[float]
    codes: array[int]


class Cell(dict[Word, Bucket]):
    """The buckets of a cell by word; words are compared by identity, not by text."""

    __slots__ = ("column", "row", "size")

    def __init__(self, size: int, column: float, row: float) -> None:
        self.size = size
        self.column = column
        self.row = row

    # Compared by identity: two cells with equal content are different cells.
    __eq__ = object.__eq__
    __hash__ = object.__hash__  # type: ignore[assignment]


class Grid:
    """The non-empty cells of one size."""

    __slots__ = ("cells", "scale", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.scale = 2.0**-size
        self.cells: dict[CellKey, Cell] = {}

    def touched_by(self, rectangle: Rectangle) -> list[Cell]:
        """Return the cells that the rectangle touches; create the missing ones."""
        west, east, south, north = (int(bound * self.scale // 1.0) for bound in rectangle)
        columns, rows = range(west, east + 1), range(south, north + 1)
        return [self.cell(float(column), float(row)) for column in columns for row in rows]

    def containing(self, xs: list[float], ys: list[float]) -> list[Cell]:
        """Return the existing cells that contain a coordinate pair, or all cells if those are fewer."""
        columns, rows = {x * self.scale // 1.0 for x in xs}, {y * self.scale // 1.0 for y in ys}
        if len(columns) * len(rows) > len(self.cells):
            return list(self.cells.values())
        found = (self.cells.get(place) for place in product(columns, rows))
        return [cell for cell in found if cell is not None]

    def cell(self, column: float, row: float) -> Cell:
        """Return a cell; create it if it is missing."""
        found = self.cells.get((column, row))
        if found is None:
            found = self.cells[column, row] = Cell(self.size, column, row)
        return found


def size_of(rectangle: Rectangle) -> int:
    """Return the exponent of the cell side for a rectangle; doubles can tell neighbouring cells apart."""
    west, east, south, north = rectangle
    # Half of the longer side, since the whole can overflow a double.
    _, half = math.frexp(max(east / 2 - west / 2, north / 2 - south / 2))
    _, reach = math.frexp(max(abs(west), abs(east), abs(south), abs(north)))
    size = min(max(half + SIZE_MARGIN, reach - 40, FINEST), COARSEST)
    # Even exponents only: an event looks up one cell per size, so fewer sizes cost less than tighter cells.
    return size + (size & 1)
