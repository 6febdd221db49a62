"""Rows of intervals as bitsets: for each column and bucket of values, the rows that fail and those in doubt.

New rows are unpacked: they are compared directly until there are enough to pack into machine words. A full
segment can grow: bits and bounds are copied, not computed again. A removed row is only marked; the segment is
dropped with its last live row.

Memory for each row: 16 bytes and two bits per bucket for each column, so about 32 bytes per column with 64
buckets, and 18 bytes for the row itself.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

BUCKETS = 64
"""Buckets of a column; one more stands for events without a value."""

MISSING = BUCKETS

PACK_ROWS = 256
"""Rows that are packed at once."""

CHUNK_ROWS = 16384
"""Rows whose bounds are compared in one operation."""

COLUMN_PADDING = 4104
"""Doubles added to each column of a large segment: columns a power of two apart would compete for the same
cache lines."""

WIDE_GAP_FRACTION = 16
"""A gap between bounds is wide if it covers more than 1/N of their range, so there are few."""

FAIL, DOUBT = 0, 1
"""The two bitsets of a bucket: rows that fail for all its values, and rows that must be compared."""

LOW, HIGH = 0, 1
"""The two bounds of a row. High bounds are stored negated: a row holds if its bounds are at most the value
and the negated value, which is one comparison of a whole array."""

Bits = NDArray[np.bool_]
Words = NDArray[np.uint64]
Floats = NDArray[np.float64]
RowNumbers = NDArray[np.int64]
Bounds = list[tuple[int, float, float]]
"""Column, low and high of each interval."""

_BIT: Words = np.uint64(1) << np.arange(64, dtype=np.uint64)


class Segment:
    """Rows whose intervals are compared as bitsets; at most 64 columns."""

    __slots__ = (
        "_bounds_view",
        "_dead_view",
        "_edge_lists",
        "_found",
        "_scratch",
        "bits",
        "bounds",
        "columns",
        "count",
        "dead",
        "dense",
        "edges",
        "failing",
        "has_edges",
        "live",
        "packed",
        "remainder",
        "remainders",
        "size",
        "unbounded",
        "uses",
    )  # fmt: skip

    def __init__(self, size: int, columns: int) -> None:
        self.columns = columns
        self.count = 0
        self.live = 0
        self.packed = 0
        self.remainders = 0
        self.unbounded = 0
        self.dense = False
        self.failing = np.zeros((columns, BUCKETS + 1), np.int64)
        self.edges: Floats = np.full((columns, BUCKETS - 1), np.inf)
        self.has_edges = np.zeros(columns, np.bool_)
        self._edge_lists: list[list[float]] | None = None
        self._allocate(size)
        self._reset_unpacked()

    def _allocate(self, size: int) -> None:
        """Allocate arrays for `size` rows; the memory is committed only when it is written to."""
        words = size // 64
        self.size = size
        self._scratch: tuple[Bits, Bits] | None = None
        self._found: RowNumbers | None = None
        padding = COLUMN_PADDING if size >= CHUNK_ROWS else 8
        self.bounds: Floats = np.zeros((2, self.columns, size + padding))
        # One extra cache line: rows of bits a power of two apart would compete for the same lines.
        self.bits: Words = np.zeros((2, self.columns, BUCKETS + 1, words + 8), np.uint64)
        self.dead: Words = np.zeros(words, np.uint64)
        self.uses: Words = np.zeros(size, np.uint64)
        self.remainder = np.zeros(size, np.bool_)
        # Single elements are read and written faster through a memoryview than through numpy.
        self._bounds_view: Any = memoryview(self.bounds.reshape(-1))  # type: ignore[arg-type]
        self._dead_view: Any = memoryview(self.dead)  # type: ignore[arg-type]

    def grow(self, size: int) -> None:
        """Enlarge a full segment; rows keep their numbers."""
        rows, words = slice(0, self.size), slice(0, self.size >> 6)
        bounds, bits, dead, uses, remainder = self.bounds, self.bits, self.dead, self.uses, self.remainder
        self._allocate(size)
        self.bounds[:, :, rows] = bounds[:, :, rows]
        self.bits[..., words] = bits[..., words]
        self.dead[words] = dead
        self.uses[rows] = uses
        self.remainder[rows] = remainder
        self._reset_unpacked()

    def use_codes(self, column: int) -> None:
        """Treat the column's values as codes without an order."""
        self.edges[column] = np.nan
        self._edge_lists = None

    @property
    def full(self) -> bool:
        """Whether the segment takes no more rows."""
        return self.count == self.size

    @property
    def holes(self) -> int:
        """The number of removed rows."""
        return self.count - self.live

    def add(self, bounds: Bounds, remainder: bool) -> int:
        """Append a row and return its number; `remainder` says that intervals do not express all of it."""
        row, cells, width, uses = self.count, self._bounds_view, self.bounds.shape[2], 0
        highs = self.columns * width
        for column, low, high in bounds:
            place = column * width + row
            cells[place], cells[place + highs] = low, -high
            uses |= 1 << column
            if low == -math.inf and high == math.inf:
                self.unbounded |= 1 << column
        self.uses[row] = uses
        if remainder:
            self.remainder[row] = True
            self.remainders += 1
        self._count_added(1)
        return row

    def take(self, other: Segment, rows: RowNumbers) -> int:
        """Append rows of another segment, up to the end of the current pack; return how many."""
        start = self.count
        rows = rows[: self.packed + PACK_ROWS - start]
        mine = slice(start, start + len(rows))
        self.bounds[:, : other.columns, mine] = other.bounds[:, :, rows]
        self.uses[mine] = other.uses[rows]
        self.remainder[mine] = other.remainder[rows]
        self.remainders += int(self.remainder[mine].sum())
        self.unbounded |= other.unbounded
        self._count_added(len(rows))
        return len(rows)

    def _count_added(self, rows: int) -> None:
        self.count += rows
        self.live += rows
        if self.count - self.packed == PACK_ROWS:
            self._pack_rows()

    def edge_lists(self) -> list[list[float]]:
        """Return the bucket edges of each column as lists, for bisect."""
        if self._edge_lists is None:
            self._edge_lists = self.edges.tolist()
        return self._edge_lists

    def scratch(self) -> tuple[Bits, Bits]:
        """Return buffers for an event's comparisons, by bound and by row.

        They are kept, since fresh memory for each event costs as much as the comparisons.
        """
        if self._scratch is None:
            rows = min(CHUNK_ROWS, self.size)
            self._scratch = np.empty((2 * self.columns, rows), np.bool_), np.empty(self.size, np.bool_)
        return self._scratch

    def found(self) -> RowNumbers:
        """Return a buffer for the rows that match an event, kept for the same reason."""
        if self._found is None:
            self._found = np.empty(self.size, np.int64)
        return self._found

    def remove(self, row: int) -> None:
        """Mark a row as dead, so that no event finds it."""
        self._dead_view[row >> 6] |= 1 << (row & 63)
        # No value reaches both infinite bounds, so direct comparison skips the row too.
        self._bounds_view[row] = self._bounds_view[self.columns * self.bounds.shape[2] + row] = math.inf
        self.live -= 1

    def _reset_unpacked(self) -> None:
        """Open all bounds of the unpacked rows, so that an unused column accepts every value."""
        unpacked = slice(self.packed, self.packed + PACK_ROWS)
        self.bounds[:, :, unpacked] = -math.inf

    # nextafter and differences of the largest doubles overflow.
    @np.errstate(over="ignore")
    def _pack_rows(self) -> None:
        """Pack the unpacked rows into the bitsets of each column they use."""
        rows, words = slice(self.packed, self.count), slice(self.packed >> 6, self.count >> 6)
        used = (self.uses[rows] & _BIT[: self.columns, None]) != 0
        columns = np.flatnonzero(used.any(1))
        used, bounds = used[columns], self.bounds[:, columns, rows].transpose(1, 2, 0)
        np.negative(bounds[..., HIGH], out=bounds[..., HIGH])
        buckets = np.stack([self._bucket_span(*each) for each in zip(columns, bounds, used, strict=True)])
        first, last = _one_hot(buckets[..., 0]), _one_hot(buckets[..., 1])
        begun, ended = np.bitwise_or.accumulate(first, 1), np.bitwise_or.accumulate(last, 1)
        fail = ~begun
        fail[:, 1:] |= ended[:, :-1]
        low, high = (_pack_bits(each) for each in self._doubtful(columns, bounds, buckets))
        self.bits[FAIL, columns, :BUCKETS, words] = fail
        self.bits[DOUBT, columns, :BUCKETS, words] = (first & low) | (last & high)
        self.bits[FAIL, columns, MISSING, words] = _pack_bits(used)[:, 0]
        self.failing[columns, :BUCKETS] += np.bitwise_count(fail).sum(2, dtype=np.int64)
        self.failing[columns, MISSING] += used.sum(1)
        self.packed = self.count
        if not self.full:
            self._reset_unpacked()

    def _bucket_span(self, column: np.int64, bounds: Floats, used: NDArray[np.bool_]) -> RowNumbers:
        """Return the buckets where each interval begins and ends; a code has one bucket."""
        if np.isnan(self.edges[column, 0]):
            single = bounds[:, 0] == bounds[:, 1]
            codes = np.where(single, bounds[:, 0], 0).astype(np.int64) % BUCKETS
            return np.where(single[:, None], codes[:, None], (0, BUCKETS - 1))
        if not self.has_edges[column]:
            self._choose_edges(column, *bounds[used].T)
        return np.asarray(self.edges[column].searchsorted(bounds, side="right"))

    def _doubtful(
        self, columns: RowNumbers, bounds: Floats, buckets: RowNumbers
    ) -> tuple[NDArray[np.bool_], ...]:
        """Return which rows must be compared in their first bucket, and which in their last."""
        edges, infinite = self.edges[columns], np.full((len(columns), 1), np.inf)
        starts = np.concatenate((-infinite, edges), 1)
        ends = np.concatenate((np.nextafter(edges, -np.inf), infinite), 1)
        low, high = bounds[..., 0], bounds[..., 1]
        coded = np.isnan(edges[:, :1]) & (low == high)
        return (
            coded | (low > np.take_along_axis(starts, buckets[..., 0], 1)),
            coded | (high < np.take_along_axis(ends, buckets[..., 1], 1)),
        )

    def _choose_edges(self, column: np.int64, low: Floats, high: Floats) -> None:
        """Choose bucket edges among the bounds, evenly by count, and around wide gaps between them.

        Values in a gap, which are common where intervals are wide, then share a bucket with no bound.
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
        self.has_edges[column] = True
        self._edge_lists = None


def _gap_edges(borders: Floats) -> Floats:
    """Return edges slightly inside wide gaps, since later bounds can reach into them."""
    gaps = np.diff(borders)
    wide = np.flatnonzero(gaps * WIDE_GAP_FRACTION > gaps.sum())
    inside = gaps[wide] / WIDE_GAP_FRACTION
    return np.concatenate((borders[wide] + inside, borders[wide + 1] - inside))


def _one_hot(buckets: RowNumbers) -> Words:
    """Return, for each column and bucket, a bitset of the rows in that bucket."""
    columns, rows = buckets.shape
    index = np.arange(rows)
    words = np.zeros((columns, BUCKETS, rows >> 6), np.uint64)
    flat = (np.arange(columns)[:, None] * BUCKETS + buckets) * (rows >> 6) + (index >> 6)
    np.bitwise_or.at(words.reshape(-1), flat.reshape(-1), np.tile(_BIT[index & 63], columns))
    return words


def _pack_bits(bits: NDArray[np.bool_]) -> Words:
    """Pack one bit per row into words, with an axis for buckets."""
    return np.packbits(bits, axis=1, bitorder="little").view(np.uint64)[:, None]
