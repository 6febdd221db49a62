"""Cells of a grid whose side is a power of two, as large as a rectangle needs them."""

from __future__ import annotations

import math

Cell = tuple[int, int, int]
"""Exponent of the side, column and row."""

NOWHERE: Cell = (0, 0, 0)

SPARSE = 2
"""How many times a rectangle's longer side fits a cell's at least; none touches more than four cells."""


def cells_of(west: float, east: float, south: float, north: float) -> list[Cell]:
    """The cells that the rectangle touches."""
    size = _size(west, east, south, north)
    _, first, bottom = cell_at(size, west, south)
    _, last, top = cell_at(size, east, north)
    return [(size, x, y) for x in range(first, last + 1) for y in range(bottom, top + 1)]


def _size(west: float, east: float, south: float, north: float) -> int:
    """The exponent of the cells' side; large enough that a double tells neighbouring cells apart."""
    _, spread = math.frexp(max(east - west, north - south) * SPARSE)
    _, reach = math.frexp(max(abs(west), abs(east), abs(south), abs(north)))
    return min(max(spread, reach - 40), 1000)


def cell_at(size: int, x: float, y: float) -> Cell:
    """The cell of that size around a point."""
    try:
        return size, math.floor(math.ldexp(x, -size)), math.floor(math.ldexp(y, -size))
    except OverflowError:
        # Farther away than any rectangle of this size was filed.
        return NOWHERE
