"""Grids of cells whose side is a power of four, and the rows that lie in a cell, by their word.

A rectangle lies in the finest grid whose cells are at least twice as wide as it. The bounds of the rows of a
cell and a word stand side by side in memory, as they are compared.
"""

from __future__ import annotations

import math
from array import array
from itertools import product
from typing import NamedTuple

Place = tuple[float, float]
"""Column and row of a cell: whole numbers."""

Rectangle = tuple[float, float, float, float]
"""West, east, south and north."""

SPARSE = 2
"""The exponent of a cell's side is so much more than that of half a rectangle's at least, so that it is twice
as wide and four cells at most are touched."""

FINEST, COARSEST = -1000, 1022
"""Exponents of a side between which every coordinate can be divided by it; of the largest cells, all that
numbers reach is 64."""


class Word:
    """A word that somebody asks for, how many do, and its bit in signatures."""

    __slots__ = ("bit", "text", "uses")

    def __init__(self, text: str, bit: int) -> None:
        self.text = text
        self.bit = bit
        self.uses = 0


class Bucket(NamedTuple):
    """The bounds of rows with the same word in the same cell, and a code of each.

    Bounds are west, -east, south, -north: none is more than x, -x, y, -y where x, y is in the rectangle.
    """

    bounds: array[float]
    codes: array[int]


class Cell(dict[Word, Bucket]):
    """What lies in a cell, by word; words are found by identity, without a look at their letters."""

    __slots__ = ("column", "row", "size")

    def __init__(self, size: int, column: float, row: float) -> None:
        self.size = size
        self.column = column
        self.row = row

    # Each is itself, whatever lies in another.
    __eq__ = object.__eq__
    __hash__ = object.__hash__  # type: ignore[assignment]


class Grid:
    """The cells of one size that are in use."""

    __slots__ = ("cells", "scale", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.scale = 2.0**-size
        self.cells: dict[Place, Cell] = {}

    def touched_by(self, rectangle: Rectangle) -> list[Cell]:
        """The cells that the rectangle touches, made where they are not there."""
        west, east, south, north = (int(bound * self.scale // 1.0) for bound in rectangle)
        columns, rows = range(west, east + 1), range(south, north + 1)
        return [self.cell(float(column), float(row)) for column in columns for row in rows]

    def around(self, xs: list[float], ys: list[float]) -> list[Cell]:
        """The cells in use around all pairs of coordinates, or just all that there are if these are fewer."""
        columns, rows = {x * self.scale // 1.0 for x in xs}, {y * self.scale // 1.0 for y in ys}
        if len(columns) * len(rows) > len(self.cells):
            return list(self.cells.values())
        found = (self.cells.get(place) for place in product(columns, rows))
        return [cell for cell in found if cell is not None]

    def cell(self, column: float, row: float) -> Cell:
        """A cell, made where it is not there."""
        found = self.cells.get((column, row))
        if found is None:
            found = self.cells[column, row] = Cell(self.size, column, row)
        return found


def size_of(rectangle: Rectangle) -> int:
    """The exponent of the side of the cells; large enough that a double tells neighbouring cells apart."""
    west, east, south, north = rectangle
    # Half of the longer side, since the whole may be more than a double can be.
    _, half = math.frexp(max(east / 2 - west / 2, north / 2 - south / 2))
    _, reach = math.frexp(max(abs(west), abs(east), abs(south), abs(north)))
    size = min(max(half + SPARSE, reach - 40, FINEST), COARSEST)
    # Every second size: an event looks into a cell of each, and fewer of them cost less than wider ones.
    return size + (size & 1)
