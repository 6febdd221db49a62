"""Kernels find the rows of a segment that match an event's values; this one uses numpy.

A kernel takes one value per column, NaN if the event has none. `match_repeated` takes several values per
column. A row then fails only if it fails for each of them, and the caller evaluates the conjunctions of the
rest. The numpy kernel compares all rows directly where bitsets would cost more: in small segments, and where
many rows are in doubt.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from hpwsn.matching.engine.segments import (
    BUCKETS,
    CHUNK_ROWS,
    DOUBT,
    FAIL,
    MISSING,
    Bits,
    Floats,
    RowNumbers,
    Segment,
    Words,
)

Kernel = Callable[[Segment, Floats], RowNumbers]
"""Maps a segment and an event's values to the rows that match; the next call can overwrite the result."""

FIRST_COLUMNS = 8
"""Columns of a large segment that are combined over all words, the others only over what remains."""

LARGE_WORDS = 256
"""Words from which a segment is large."""

DENSE_FRACTION = 4
"""Remaining words are gathered if they are less than 1/N of all."""

JOIN_COST, FIND_COST, ROW_COST = 60_000, 120_000, 30
"""Cost of combining bitsets, of finding the remaining bits, and of each remaining row. The unit is one
comparison of a row with a value in an array operation. Measured with 1,000 to 65,000 rows of twenty
columns."""

ESTIMATE_OVERHEAD = 1.1
"""Factor by which estimating the cost of bitsets increases it."""

DOUBT_COST = 64
"""Cost of a row in doubt, in the same unit."""

DIRECT_ROWS = 256
"""Up to this many remaining rows, comparing all bounds is faster than finding those in doubt."""

BUFFERED_FROM, BUFFERED_TO = 800, 2752
"""Between these numbers of rows numpy copies its operands through a buffer of 8,192 elements, which takes
longer than comparing the larger number of rows."""


def buckets_of(segment: Segment, values: Sequence[float]) -> list[int]:
    """Return the bucket of each column's value."""
    return [
        MISSING
        if value != value
        else int(value) % BUCKETS
        if edges[0] != edges[0]
        else bisect_right(edges, value)
        for value, edges in zip(values, segment.edge_lists(), strict=False)
    ]


def match_numpy(segment: Segment, values: Floats) -> RowNumbers:
    """Find matching rows with few operations on whole arrays."""
    values = values[: segment.columns]
    rows, work = None, segment.packed * segment.columns
    if work > JOIN_COST and not segment.dense:
        rows = _match_packed(segment, values)
    if rows is None:
        rows = _match_compared(segment, values, 0)
    elif segment.count > segment.packed:
        rows = np.concatenate((rows, _match_compared(segment, values, segment.packed)))
    # After an event with many matches, the next one is compared directly.
    segment.dense = _cost_of_bits(rows.size) * ESTIMATE_OVERHEAD > work
    return rows


def match_repeated(segment: Segment, values: Sequence[tuple[float, ...]]) -> RowNumbers:
    """Return rows whose intervals all hold for one of their column's values: a superset of the matches."""
    most = max(map(len, values))
    padded = [several + several[-1:] * (most - len(several)) for several in values]
    failed = segment.dead[: segment.packed >> 6].copy()
    buckets = [buckets_of(segment, each) for each in zip(*padded, strict=True)]
    for column, several in enumerate(zip(*buckets, strict=True)):
        fails = [segment.bits[FAIL, column, bucket, : len(failed)] for bucket in set(several)]
        failed |= np.bitwise_and.reduce(fails)
    unpacked = _match_unpacked_repeated(segment, np.array(padded))
    return np.concatenate((np.flatnonzero(_bits(~failed)), unpacked))


def _match_packed(segment: Segment, values: Floats) -> RowNumbers | None:
    """Return the packed rows that match; None if comparing all rows is cheaper."""
    buckets = np.array(buckets_of(segment, values.tolist()))
    failing = segment.failing[_COLUMNS[: segment.columns], buckets]
    if not _bits_pay(segment, failing):
        return None
    left, at = _candidates(segment, buckets, failing)
    if not left.size:
        return _NONE
    holds = _bits(left)
    rows = _row_numbers(holds, at)
    if rows.size <= DIRECT_ROWS:
        return _filter_by_bounds(segment, rows, values)
    return _row_numbers(holds, at) if _resolve_doubts(segment, holds, left, at, buckets, values) else None


def _row_numbers(holds: Bits, at: RowNumbers | None) -> RowNumbers:
    """Return the rows of the set bits; `at` are the numbers of the words."""
    rows = np.flatnonzero(holds)
    return rows if at is None else cast(RowNumbers, at[rows >> 6] * 64 + (rows & 63))


def _filter_by_bounds(segment: Segment, rows: RowNumbers, values: Floats) -> RowNumbers:
    """Return those rows that match by their bounds; none of them lacks a value."""
    limits = np.concatenate((values, -values))[:, None]
    fails = segment.bounds.reshape(2 * segment.columns, -1).take(rows, axis=1) > limits
    return cast(RowNumbers, rows[~np.logical_or.reduce(fails, axis=0)])


def _bits_pay(segment: Segment, failing: RowNumbers) -> bool:
    """Whether bitsets cost less than comparing all rows, if columns fail independently."""
    left = float(segment.packed)
    for each in failing.tolist():
        left *= 1 - each / segment.packed
    return _cost_of_bits(left) < segment.packed * segment.columns


def _cost_of_bits(left: float) -> float:
    return JOIN_COST + FIND_COST * min(left, 1) + ROW_COST * left


def _candidates(
    segment: Segment, buckets: RowNumbers, failing: RowNumbers
) -> tuple[Words, RowNumbers | None]:
    """Return words with the bits of rows that do not fail, and their numbers; None means all words."""
    count = segment.packed >> 6
    # One row of bits per column and bucket: copying whole rows is faster than picking words.
    fail = segment.bits[FAIL].reshape(-1, segment.bits.shape[-1])
    chosen = _COLUMNS[: segment.columns] * (BUCKETS + 1) + buckets
    rest = chosen[:0]
    if count >= LARGE_WORDS:
        chosen = chosen[np.argsort(-failing)]
        chosen, rest = chosen[:FIRST_COLUMNS], chosen[FIRST_COLUMNS:]
    failed = _joined(fail, chosen, count)
    failed |= segment.dead[:count]
    at = np.flatnonzero(failed != _ALL)
    if at.size * DENSE_FRACTION > count:
        if rest.size:
            failed |= _joined(fail, rest, count)
        return ~failed, None
    left = ~failed[at]
    if rest.size and at.size:
        left &= ~np.bitwise_or.reduce(fail[rest[:, None], at], axis=0)
        some = np.flatnonzero(left != 0)
        left, at = left[some], at[some]
    return left, at


def _joined(bits: Words, chosen: RowNumbers, count: int) -> Words:
    return cast(Words, np.bitwise_or.reduce(bits.take(chosen, axis=0), axis=0)[:count])


def _bits(words: Words) -> Bits:
    """Return the bits of the words as one array of booleans."""
    return np.unpackbits(words.view(np.uint8), bitorder="little").view(np.bool_)


def _resolve_doubts(
    segment: Segment, holds: Bits, left: Words, at: RowNumbers | None, buckets: RowNumbers, values: Floats
) -> bool:
    """Compare each interval that ends within its bucket; clear rows that fail. False if there are many."""
    doubt = segment.bits[DOUBT].reshape(-1, segment.bits.shape[-1])
    chosen = _COLUMNS[: segment.columns] * (BUCKETS + 1) + buckets
    words = doubt.take(chosen, axis=0)[:, : left.size] if at is None else doubt[chosen[:, None], at]
    words = (words & left).reshape(-1)
    some = np.flatnonzero(words != 0)
    bits = np.flatnonzero(_bits(words[some]))
    if bits.size * DOUBT_COST > segment.packed * segment.columns:
        return False
    word, bit = some[bits >> 6], bits & 63
    column = word // left.size
    word -= column * left.size
    cells = column * segment.bounds.shape[2] + (word if at is None else at[word]) * 64 + bit
    low, high = segment.bounds.reshape(2, -1).take(cells, axis=1)
    value = values[column]
    wrong = (low > value) | (high > -value)
    holds[(word * 64 + bit)[wrong]] = False
    return True


def _match_compared(segment: Segment, values: Floats, start: int) -> RowNumbers:
    """Compare all bounds from row `start` on, in chunks that fit a cache."""
    bounds, count = segment.bounds.reshape(2 * segment.columns, -1), segment.count
    scratch, holds = segment.scratch()
    limits = np.concatenate((values, -values))[:, None]
    missing = np.isnan(limits)
    # If a value is missing, only rows that do not use the column hold: their bounds are -inf.
    limits[missing] = -np.inf
    for first in range(start, count, CHUNK_ROWS):
        # Where it is faster, rows beyond the last one are compared too, and ignored.
        least = first + BUFFERED_TO if count - first > BUFFERED_FROM else count
        last = min(max(least, count), first + CHUNK_ROWS, segment.size)
        compared = np.less_equal(bounds[:, first:last], limits, scratch[:, : last - first])
        # The array method does the same, with a detour through Python.
        np.logical_and.reduce(compared, axis=0, out=holds[first:last])
    rows = np.flatnonzero(holds[start:count])
    if start:
        rows += start
    return _drop_missing(segment, rows, missing[: segment.columns, 0]) if segment.unbounded else rows


def _drop_missing(segment: Segment, rows: RowNumbers, missing: Bits) -> RowNumbers:
    """Drop rows that need a value the event lacks, even if any value would do."""
    absent = np.bitwise_or.reduce(_BIT[: segment.columns][missing], initial=np.uint64(0))
    return cast(RowNumbers, rows[(segment.uses[rows] & absent) == 0])


def _match_unpacked_repeated(segment: Segment, values: Floats) -> RowNumbers:
    """Compare the unpacked rows with several values per column."""
    start, stop = segment.packed, segment.count
    low, high = segment.bounds[:, :, start:stop]
    holds = np.zeros(low.shape, np.bool_)
    for value in values.T:
        holds |= (low <= value[:, None]) & (high <= -value[:, None])
    missing = cast(Bits, np.isnan(values).all(1))
    holds[missing] = True
    return _drop_dead_or_missing(segment, np.flatnonzero(holds.all(0)) + start, missing)


def _drop_dead_or_missing(segment: Segment, rows: RowNumbers, missing: Bits) -> RowNumbers:
    """Drop rows that are dead or need a value the event lacks."""
    gone = (segment.dead[rows >> 6] >> (rows & 63).astype(np.uint64)) & np.uint64(1)
    if missing.any():
        gone |= segment.uses[rows] & np.bitwise_or.reduce(_BIT[: segment.columns][missing])
    return cast(RowNumbers, rows[gone == 0])


_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_NONE: RowNumbers = np.empty(0, np.int64)
_BIT: Words = np.uint64(1) << np.arange(64, dtype=np.uint64)
_COLUMNS: RowNumbers = np.arange(64)
