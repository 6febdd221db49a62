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
from numpy.typing import NDArray

from hpwsn.matching.segments import BUCKETS, DOUBT, FAIL, MISSING, Numbers, Rows, Segment, Words

Kernel = Callable[[Segment, Numbers], list[Rows]]
"""From a segment and the values of some events, a row for each, to the rows that hold for each."""

FIRST = 8
"""Columns of a large segment that are joined over all words before the words that are left are picked out."""

LARGE = 256
"""Words of a large segment."""

DENSE = 4
"""Words are picked out where less than this part of them is left, else taken as they are."""

SMALL = 2048
"""Rows that are compared one by one sooner than their bits are joined."""

MANY = 32
"""A doubt costs as much as so many comparisons of all rows with a value."""

PIECE = 16384
"""Rows that are compared at once."""

Bits = NDArray[np.bool_]


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


def match_numpy(segment: Segment, values: Numbers) -> list[Rows]:
    """By operations on whole arrays, as few of them as there can be."""
    return [_match(segment, each) for each in values[:, : segment.columns]]


def _match(segment: Segment, values: Numbers) -> Rows:
    if segment.count <= SMALL:
        return _compared_rows(segment, values, 0)
    rows = _packed_rows(segment, values)
    if segment.count > segment.sealed:
        rows = np.concatenate((rows, _compared_rows(segment, values, segment.sealed)))
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


def _packed_rows(segment: Segment, values: Numbers) -> Rows:
    """The rows that hold, of those that are packed into words."""
    buckets = np.array(buckets_of(segment, values.tolist()))
    left, at = _candidates(segment, buckets)
    if not left.size:
        return _NONE
    holds = _bits(left)
    _clear_doubts(segment, holds, left, at, buckets, values)
    rows = np.flatnonzero(holds)
    return rows if at is None else cast(Rows, at[rows >> 6] * 64 + (rows & 63))


def _candidates(segment: Segment, buckets: Rows) -> tuple[Words, Rows | None]:
    """Words with the bits of the rows that do not fail; their places, or None where that is all of them."""
    count, columns = segment.sealed >> 6, np.arange(segment.columns)
    # One row of bits for each column and bucket: whole rows are copied faster than words are picked.
    fail = segment.bits[FAIL].reshape(-1, segment.bits.shape[-1])
    chosen = columns * (BUCKETS + 1) + buckets
    rest = chosen[:0]
    if count >= LARGE:
        chosen = chosen[np.argsort(-segment.failing[columns, buckets])]
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
) -> None:
    """Compare each interval whose border lies in the bucket, and clear the rows that fail."""
    doubt = segment.bits[DOUBT].reshape(-1, segment.bits.shape[-1])
    chosen = np.arange(segment.columns) * (BUCKETS + 1) + buckets
    words = doubt.take(chosen, axis=0)[:, : left.size] if at is None else doubt[chosen[:, None], at]
    words = (words & left).reshape(-1)
    some = np.flatnonzero(words != 0)
    places = np.flatnonzero(_bits(words[some]))
    if at is None and places.size * MANY > holds.size * segment.columns:
        holds &= ~_failing(segment, values, slice(0, segment.sealed))
        return
    word, bit = some[places >> 6], places & 63
    column = word // left.size
    word -= column * left.size
    cells = column * segment.size + (word if at is None else at[word]) * 64 + bit
    low, high = segment.bounds.reshape(2, -1).take(cells, axis=1)
    value = values[column]
    wrong = (low > value) | (value > high)
    holds[(word * 64 + bit)[wrong]] = False


def _failing(segment: Segment, values: Numbers, rows: slice) -> Bits:
    """Whether an interval of each row fails, all of them compared, a piece at a time that a cache holds."""
    pieces = []
    for start in range(rows.start, rows.stop, PIECE):
        low, high = segment.bounds[:, :, start : min(start + PIECE, rows.stop)]
        fails = low > values[:, None]
        fails |= high < values[:, None]
        # What the method of an array does with a detour through Python.
        pieces.append(np.logical_or.reduce(fails, axis=0))
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def _compared_rows(segment: Segment, values: Numbers, start: int) -> Rows:
    """Rows from one on, each interval compared with its value."""
    # NaN, which stands for what the event lacks, compares with nothing: who asks for it fails by that.
    rows = np.flatnonzero(~_failing(segment, values, slice(start, segment.count))) + start
    return _without_dead(segment, rows, cast(Bits, np.isnan(values))) if rows.size else rows


def _young_rows_of_several(segment: Segment, values: Numbers) -> Rows:
    """Rows that are not packed yet, compared with values of which a column has several."""
    start, stop = segment.sealed, segment.count
    low, high = segment.bounds[:, :, start:stop]
    holds = np.zeros(low.shape, np.bool_)
    for value in values.T:
        holds |= (low <= value[:, None]) & (value[:, None] <= high)
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
