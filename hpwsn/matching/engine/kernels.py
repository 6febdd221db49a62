"""Which rows of a segment hold for the values of events: in numpy, and compiled where numba is installed.

Both take one value for each column, NaN where an event has none. numpy's also takes several values for a
column, for which a row fails only if it fails for each; the caller then asks the conjunctions themselves.
Where bits would cost more than they save, in small segments and where much is in doubt, it compares all rows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from hpwsn.matching.engine.segments import (
    BUCKETS,
    DOUBT,
    FAIL,
    MISSING,
    PIECE,
    Bits,
    Numbers,
    Rows,
    Segment,
    Words,
)

Kernel = Callable[[Segment, Numbers], Rows]
"""From a segment and an event's values to the rows that hold, to be looked at before the next call."""

FIRST = 8
"""Columns of a large segment that are joined over all words before the words that are left are picked out."""

LARGE = 256
"""Words of a large segment."""

DENSE = 4
"""Words are picked out where less than this part of them is left, else taken as they are."""

JOINING, FINDING, LEFT = 60_000, 120_000, 30
"""What it costs to join bits, to find what is left of them, and each row that is left, in comparisons of a
row with a value in an array of all: measured with 1,000 to 65,000 rows of twenty columns."""

LOOKING = 1.1
"""How much the look at what bits will cost adds to it."""

MANY = 64
"""What a doubt costs, in the same unit."""

SEVERAL = 256
"""Rows that are compared with all values sooner than their doubts are looked for."""

FEW, UNBUFFERED = 800, 2752
"""Of more rows than the first and fewer than the second numpy makes copies in a buffer of 8,192 elements, of
the value one for each row, which takes longer than to compare the second number of rows."""


def buckets_of(segment: Segment, values: Sequence[float]) -> list[int]:
    """The bucket of each column that its value falls into."""
    return [
        MISSING
        if value != value
        else int(value) % BUCKETS
        if edges[0] != edges[0]
        else bisect_right(edges, value)
        for value, edges in zip(values, segment.edge_lists(), strict=False)
    ]


def match_numpy(segment: Segment, values: Numbers) -> Rows:
    """By operations on whole arrays, as few of them as there can be."""
    values = values[: segment.columns]
    rows, work = None, segment.sealed * segment.columns
    if work > JOINING and not segment.dense:
        rows = _packed_rows(segment, values)
    if rows is None:
        rows = _compared_rows(segment, values, 0)
    elif segment.count > segment.sealed:
        rows = np.concatenate((rows, _compared_rows(segment, values, segment.sealed)))
    # What held for one event is foreseen for the next, which is then compared without a look.
    segment.dense = _cost_of_bits(rows.size) * LOOKING > work
    return rows


def match_repeated(segment: Segment, values: Sequence[tuple[float, ...]]) -> Rows:
    """Rows of which every interval holds for one of its column's values; perhaps too many."""
    most = max(map(len, values))
    padded = [several + several[-1:] * (most - len(several)) for several in values]
    failed = segment.dead[: segment.sealed >> 6].copy()
    buckets = [buckets_of(segment, each) for each in zip(*padded, strict=True)]
    for column, several in enumerate(zip(*buckets, strict=True)):
        fails = [segment.bits[FAIL, column, bucket, : len(failed)] for bucket in set(several)]
        failed |= np.bitwise_and.reduce(fails)
    young = _young_rows_of_several(segment, np.array(padded))
    return np.concatenate((np.flatnonzero(_bits(~failed)), young))


def _packed_rows(segment: Segment, values: Numbers) -> Rows | None:
    """The rows that hold, of those that are packed into words; None where all are better compared."""
    buckets = np.array(buckets_of(segment, values.tolist()))
    failing = segment.failing[_PLACES[: segment.columns], buckets]
    if not _bits_pay(segment, failing):
        return None
    left, at = _candidates(segment, buckets, failing)
    if not left.size:
        return _NONE
    holds = _bits(left)
    rows = _numbers(holds, at)
    if rows.size <= SEVERAL:
        return _holding(segment, rows, values)
    return _numbers(holds, at) if _clear_doubts(segment, holds, left, at, buckets, values) else None


def _numbers(holds: Bits, at: Rows | None) -> Rows:
    """The rows of bits that are set, in words at these places."""
    rows = np.flatnonzero(holds)
    return rows if at is None else cast(Rows, at[rows >> 6] * 64 + (rows & 63))


def _holding(segment: Segment, rows: Rows, values: Numbers) -> Rows:
    """Those of some rows that hold, by all their bounds; rows that miss a value were left out before."""
    asked = np.concatenate((values, -values))[:, None]
    fails = segment.bounds.reshape(2 * segment.columns, -1).take(rows, axis=1) > asked
    return cast(Rows, rows[~np.logical_or.reduce(fails, axis=0)])


def _bits_pay(segment: Segment, failing: Rows) -> bool:
    """Whether joining bits is less work than comparing all rows, if columns fail independently."""
    left = float(segment.sealed)
    for each in failing.tolist():
        left *= 1 - each / segment.sealed
    return _cost_of_bits(left) < segment.sealed * segment.columns


def _cost_of_bits(left: float) -> float:
    return JOINING + FINDING * min(left, 1) + LEFT * left


def _candidates(segment: Segment, buckets: Rows, failing: Rows) -> tuple[Words, Rows | None]:
    """Words with the bits of the rows that do not fail; their places, or None where that is all of them."""
    count = segment.sealed >> 6
    # One row of bits for each column and bucket: whole rows are copied faster than words are picked.
    fail = segment.bits[FAIL].reshape(-1, segment.bits.shape[-1])
    chosen = _PLACES[: segment.columns] * (BUCKETS + 1) + buckets
    rest = chosen[:0]
    if count >= LARGE:
        chosen = chosen[np.argsort(-failing)]
        chosen, rest = chosen[:FIRST], chosen[FIRST:]
    failed = _joined(fail, chosen, count)
    failed |= segment.dead[:count]
    at = np.flatnonzero(failed != _ALL)
    if at.size * DENSE > count:
        if rest.size:
            failed |= _joined(fail, rest, count)
        return ~failed, None
    left = ~failed[at]
    if rest.size and at.size:
        left &= ~np.bitwise_or.reduce(fail[rest[:, None], at], axis=0)
        some = np.flatnonzero(left != 0)
        left, at = left[some], at[some]
    return left, at


def _joined(bits: Words, chosen: Rows, count: int) -> Words:
    return cast(Words, np.bitwise_or.reduce(bits.take(chosen, axis=0), axis=0)[:count])


def _bits(words: Words) -> Bits:
    """The bits of words, one after another."""
    return np.unpackbits(words.view(np.uint8), bitorder="little").view(np.bool_)


def _clear_doubts(
    segment: Segment, holds: Bits, left: Words, at: Rows | None, buckets: Rows, values: Numbers
) -> bool:
    """Compare each interval whose border lies in the bucket, and clear what fails; False if they are many."""
    doubt = segment.bits[DOUBT].reshape(-1, segment.bits.shape[-1])
    chosen = _PLACES[: segment.columns] * (BUCKETS + 1) + buckets
    words = doubt.take(chosen, axis=0)[:, : left.size] if at is None else doubt[chosen[:, None], at]
    words = (words & left).reshape(-1)
    some = np.flatnonzero(words != 0)
    places = np.flatnonzero(_bits(words[some]))
    if places.size * MANY > segment.sealed * segment.columns:
        return False
    word, bit = some[places >> 6], places & 63
    column = word // left.size
    word -= column * left.size
    cells = column * segment.bounds.shape[2] + (word if at is None else at[word]) * 64 + bit
    low, high = segment.bounds.reshape(2, -1).take(cells, axis=1)
    value = values[column]
    wrong = (low > value) | (high > -value)
    holds[(word * 64 + bit)[wrong]] = False
    return True


def _compared_rows(segment: Segment, values: Numbers, start: int) -> Rows:
    """Rows from one on, all bounds compared, a piece at a time that a cache holds."""
    bounds, count = segment.bounds.reshape(2 * segment.columns, -1), segment.count
    scratch, holds = segment.scratch()
    asked = np.concatenate((values, -values))[:, None]
    missing = np.isnan(asked)
    # Where a value is missing, only who asks for none holds: such bounds are as low as can be.
    asked[missing] = -np.inf
    for first in range(start, count, PIECE):
        # What lies behind the last row is compared too where that is faster; nobody looks at it.
        least = first + UNBUFFERED if count - first > FEW else count
        last = min(max(least, count), first + PIECE, segment.size)
        compared = np.less_equal(bounds[:, first:last], asked, scratch[:, : last - first])
        # What the method of an array does with a detour through Python.
        np.logical_and.reduce(compared, axis=0, out=holds[first:last])
    rows = np.flatnonzero(holds[start:count])
    if start:
        rows += start
    return _without_wide(segment, rows, missing[: segment.columns, 0]) if segment.wide else rows


def _without_wide(segment: Segment, rows: Rows, missing: Bits) -> Rows:
    """The rows that ask for nothing that is missing, not even that it be there."""
    absent = np.bitwise_or.reduce(_BIT[: segment.columns][missing], initial=np.uint64(0))
    return cast(Rows, rows[(segment.uses[rows] & absent) == 0])


def _young_rows_of_several(segment: Segment, values: Numbers) -> Rows:
    """Rows that are not packed yet, compared with values of which a column has several."""
    start, stop = segment.sealed, segment.count
    low, high = segment.bounds[:, :, start:stop]
    holds = np.zeros(low.shape, np.bool_)
    for value in values.T:
        holds |= (low <= value[:, None]) & (high <= -value[:, None])
    missing = cast(Bits, np.isnan(values).all(1))
    holds[missing] = True
    return _without_dead(segment, np.flatnonzero(holds.all(0)) + start, missing)


def _without_dead(segment: Segment, rows: Rows, missing: Bits) -> Rows:
    """The rows that are in use and ask for nothing that is missing."""
    gone = (segment.dead[rows >> 6] >> (rows & 63).astype(np.uint64)) & np.uint64(1)
    if missing.any():
        gone |= segment.uses[rows] & np.bitwise_or.reduce(_BIT[: segment.columns][missing])
    return cast(Rows, rows[gone == 0])


_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_NONE: Rows = np.empty(0, np.int64)
_BIT: Words = np.uint64(1) << np.arange(64, dtype=np.uint64)
_PLACES: Rows = np.arange(64)
