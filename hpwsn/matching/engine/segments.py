"""Rows of intervals as bitsets: for each column and bucket of values, the rows that fail and those in doubt.

A segment that is full can be made larger as it is: bits and bounds are copied, nothing is worked out again.
The newest rows are young: they are compared one by one until there are enough of them to be packed into
words. A row that is removed is only marked; its segment goes when its last row does.

Memory for each row: 16 bytes and two bits per bucket for each column of the segment, so about 32 bytes a
column with 64 buckets, and 18 bytes for the row itself.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

BUCKETS = 64
"""Buckets of a column; one more stands for events in which it is missing."""

MISSING = BUCKETS

YOUNG = 256
"""Rows that are packed together."""

PIECE = 16384
"""Rows whose bounds are compared at once."""

APART = 4104
"""Numbers between the bounds of two columns in large segments: a power of two apart, they would compete for
the same part of a cache."""

WIDE = 16
"""A gap between bounds is wide if it takes this part of the range in which they lie; so few are."""

FAIL, DOUBT = 0, 1
"""Which bits of a column: the rows that fail in a bucket, and those that must be compared there."""

LOW, HIGH = 0, 1
"""Which bound of a row. High ones are kept with the opposite sign, so that all bounds of a row that holds are
at most the value, or its opposite, and one comparison of a whole array says so."""

Bits = NDArray[np.bool_]
Words = NDArray[np.uint64]
Numbers = NDArray[np.float64]
Rows = NDArray[np.int64]
Bounds = list[tuple[int, float, float]]
"""Column, low and high of each interval."""

_BIT: Words = np.uint64(1) << np.arange(64, dtype=np.uint64)


class Segment:
    """Rows whose intervals are compared as words of bits; at most 64 columns."""

    __slots__ = (
        "_cells", "_dead_words", "_edge_lists", "_found", "_scratch", "bits", "bounds", "columns", "count",
        "dead", "dense", "edges", "failing", "learned", "live", "remainder", "remainders", "sealed", "size",
        "uses", "wide",
    )  # fmt: skip

    def __init__(self, size: int, columns: int) -> None:
        self.columns = columns
        self.count = 0
        self.live = 0
        self.sealed = 0
        self.remainders = 0
        self.wide = 0
        self.dense = False
        self.failing = np.zeros((columns, BUCKETS + 1), np.int64)
        self.edges: Numbers = np.full((columns, BUCKETS - 1), np.inf)
        self.learned = np.zeros(columns, np.bool_)
        self._edge_lists: list[list[float]] | None = None
        self._make_room(size)
        self._open_young()

    def _make_room(self, size: int) -> None:
        """Arrays for so many rows; memory that is not written to yet costs nothing, so little is written."""
        words = size // 64
        self.size = size
        self._scratch: tuple[Bits, Bits] | None = None
        self._found: Rows | None = None
        apart = APART if size >= PIECE else 8
        self.bounds: Numbers = np.zeros((2, self.columns, size + apart))
        # One cache line more than needed: rows of bits a power of two apart would compete for the same lines.
        self.bits: Words = np.zeros((2, self.columns, BUCKETS + 1, words + 8), np.uint64)
        self.dead: Words = np.zeros(words, np.uint64)
        self.uses: Words = np.zeros(size, np.uint64)
        self.remainder = np.zeros(size, np.bool_)
        # Single numbers are read and written sooner than by numpy.
        self._cells: Any = memoryview(self.bounds.reshape(-1))  # type: ignore[arg-type]
        self._dead_words: Any = memoryview(self.dead)  # type: ignore[arg-type]

    def grow(self, size: int) -> None:
        """Make room for more rows where it is full; those that are there keep their places."""
        rows, words = slice(0, self.size), slice(0, self.size >> 6)
        bounds, bits, dead, uses, remainder = self.bounds, self.bits, self.dead, self.uses, self.remainder
        self._make_room(size)
        self.bounds[:, :, rows] = bounds[:, :, rows]
        self.bits[..., words] = bits[..., words]
        self.dead[words] = dead
        self.uses[rows] = uses
        self.remainder[rows] = remainder
        self._open_young()

    def look_up(self, column: int) -> None:
        """Treat the column's values as codes to look up, not as numbers in order."""
        self.edges[column] = np.nan
        self._edge_lists = None

    @property
    def full(self) -> bool:
        """Whether it takes no more rows."""
        return self.count == self.size

    @property
    def holes(self) -> int:
        """Rows that were removed."""
        return self.count - self.live

    def add(self, bounds: Bounds, remainder: bool) -> int:
        """Append a row; its place."""
        row, cells, width, uses = self.count, self._cells, self.bounds.shape[2], 0
        highs = self.columns * width
        for column, low, high in bounds:
            place = column * width + row
            cells[place], cells[place + highs] = low, -high
            uses |= 1 << column
            if low == -math.inf and high == math.inf:
                self.wide |= 1 << column
        self.uses[row] = uses
        if remainder:
            self.remainder[row] = True
            self.remainders += 1
        self._grown(1)
        return row

    def take(self, other: Segment, rows: Rows) -> int:
        """Append rows of another segment, as many as are packed together at once; how many."""
        start = self.count
        rows = rows[: self.sealed + YOUNG - start]
        mine = slice(start, start + len(rows))
        self.bounds[:, : other.columns, mine] = other.bounds[:, :, rows]
        self.uses[mine] = other.uses[rows]
        self.remainder[mine] = other.remainder[rows]
        self.remainders += int(self.remainder[mine].sum())
        self.wide |= other.wide
        self._grown(len(rows))
        return len(rows)

    def _grown(self, rows: int) -> None:
        self.count += rows
        self.live += rows
        if self.count - self.sealed == YOUNG:
            self._seal()

    def edge_lists(self) -> list[list[float]]:
        """The edges of each column, as a search in Python wants them."""
        if self._edge_lists is None:
            self._edge_lists = self.edges.tolist()
        return self._edge_lists

    def scratch(self) -> tuple[Bits, Bits]:
        """Room for what one event's comparisons say, of each bound and of each row.

        Kept, since memory that is fresh for each event costs as much as the comparisons.
        """
        if self._scratch is None:
            piece = min(PIECE, self.size)
            self._scratch = np.empty((2 * self.columns, piece), np.bool_), np.empty(self.size, np.bool_)
        return self._scratch

    def found(self) -> Rows:
        """Room for what holds for one event, kept for the same reason."""
        if self._found is None:
            self._found = np.empty(self.size, np.int64)
        return self._found

    def remove(self, row: int) -> None:
        """Mark a row so that it is found no more."""
        self._dead_words[row >> 6] |= 1 << (row & 63)
        # No value is so large, nor its opposite: what compares all bounds finds it no more.
        self._cells[row] = self._cells[self.columns * self.bounds.shape[2] + row] = math.inf
        self.live -= 1

    def _open_young(self) -> None:
        """A row that does not look at a column is content with every value there."""
        young = slice(self.sealed, self.sealed + YOUNG)
        self.bounds[:, :, young] = -math.inf

    # The largest numbers have no next one, and no finite distance from the least.
    @np.errstate(over="ignore")
    def _seal(self) -> None:
        """Pack the young rows: for each column where intervals begin and end, as bits, then the rest."""
        rows, words = slice(self.sealed, self.count), slice(self.sealed >> 6, self.count >> 6)
        used = (self.uses[rows] & _BIT[: self.columns, None]) != 0
        columns = np.flatnonzero(used.any(1))
        used, bounds = used[columns], self.bounds[:, columns, rows].transpose(1, 2, 0)
        np.negative(bounds[..., HIGH], out=bounds[..., HIGH])
        places = np.stack([self._places(*each) for each in zip(columns, bounds, used, strict=True)])
        first, last = _one_hot(places[..., 0]), _one_hot(places[..., 1])
        begun, ended = np.bitwise_or.accumulate(first, 1), np.bitwise_or.accumulate(last, 1)
        fail = ~begun
        fail[:, 1:] |= ended[:, :-1]
        low, high = (_packed(each) for each in self._divided(columns, bounds, places))
        self.bits[FAIL, columns, :BUCKETS, words] = fail
        self.bits[DOUBT, columns, :BUCKETS, words] = (first & low) | (last & high)
        self.bits[FAIL, columns, MISSING, words] = _packed(used)[:, 0]
        self.failing[columns, :BUCKETS] += np.bitwise_count(fail).sum(2, dtype=np.int64)
        self.failing[columns, MISSING] += used.sum(1)
        self.sealed = self.count
        if not self.full:
            self._open_young()

    def _places(self, column: np.int64, bounds: Numbers, used: NDArray[np.bool_]) -> Rows:
        """The buckets in which each interval begins and ends; that of a code is a bucket of its own."""
        if np.isnan(self.edges[column, 0]):
            single = bounds[:, 0] == bounds[:, 1]
            codes = np.where(single, bounds[:, 0], 0).astype(np.int64) % BUCKETS
            return np.where(single[:, None], codes[:, None], (0, BUCKETS - 1))
        if not self.learned[column]:
            self._learn(column, *bounds[used].T)
        return np.asarray(self.edges[column].searchsorted(bounds, side="right"))

    def _divided(self, columns: Rows, bounds: Numbers, places: Rows) -> tuple[NDArray[np.bool_], ...]:
        """Which rows are in doubt in the bucket where they begin, and which in the one where they end."""
        edges, infinite = self.edges[columns], np.full((len(columns), 1), np.inf)
        starts = np.concatenate((-infinite, edges), 1)
        ends = np.concatenate((np.nextafter(edges, -np.inf), infinite), 1)
        low, high = bounds[..., 0], bounds[..., 1]
        coded = np.isnan(edges[:, :1]) & (low == high)
        return (
            coded | (low > np.take_along_axis(starts, places[..., 0], 1)),
            coded | (high < np.take_along_axis(ends, places[..., 1], 1)),
        )

    def _learn(self, column: np.int64, low: Numbers, high: Numbers) -> None:
        """Edges where the bounds are, as many to each bucket, and around wide gaps between them.

        Values in a gap, which are many where intervals are wide, then share a bucket with no bound.
        """
        borders = np.concatenate((low, np.nextafter(high[np.isfinite(high)], np.inf)))
        borders = np.unique(borders[np.isfinite(borders)])
        gaps = _gap_edges(borders)
        room = BUCKETS - 1 - len(gaps)
        if len(borders) > room:
            steps = np.linspace(0, len(borders) - 1, room + 2)[1:-1]
            borders = borders[steps.astype(np.int64)]
        borders = np.unique(np.concatenate((borders, gaps)))
        self.edges[column, : len(borders)] = borders
        self.learned[column] = True
        self._edge_lists = None


def _gap_edges(borders: Numbers) -> Numbers:
    """Where wide gaps begin and end, a little inside: what comes later may reach into them."""
    gaps = np.diff(borders)
    wide = np.flatnonzero(gaps * WIDE > gaps.sum())
    inside = gaps[wide] / WIDE
    return np.concatenate((borders[wide] + inside, borders[wide + 1] - inside))


def _one_hot(places: Rows) -> Words:
    """For each column and bucket the bits of the rows that have their place there."""
    columns, rows = places.shape
    index = np.arange(rows)
    words = np.zeros((columns, BUCKETS, rows >> 6), np.uint64)
    flat = (np.arange(columns)[:, None] * BUCKETS + places) * (rows >> 6) + (index >> 6)
    np.bitwise_or.at(words.reshape(-1), flat.reshape(-1), np.tile(_BIT[index & 63], columns))
    return words


def _packed(bits: NDArray[np.bool_]) -> Words:
    """One bit for each row, with a place for buckets."""
    return np.packbits(bits, axis=1, bitorder="little").view(np.uint64)[:, None]
