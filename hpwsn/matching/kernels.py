"""Which rows of a segment hold for the values of an event: in numpy, and compiled where numba is installed.

Both take one value for each column, NaN where the event has none. The first also takes several values for a
column, for which a row fails only if it fails for each; the caller then asks the conjunctions themselves.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from hpwsn.matching.segments import BUCKETS, DOUBT, FAIL, MISSING, Numbers, Rows, Segment, Words

Kernel = Callable[[Segment, Numbers], Rows]

FIRST = 8
"""Columns of a large segment that are joined over all words before the words that are left are picked out."""

LARGE = 256
"""Words of a large segment."""


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
    """The rows that hold, by operations on whole arrays, as few of them as there can be."""
    values = values[: segment.columns]
    rows = _young_rows(segment, values[:, None])
    if segment.sealed:
        buckets = np.array(buckets_of(segment, values.tolist()))
        left, at = _candidates(segment, buckets)
        if at.size:
            _clear_doubts(segment, left, at, buckets, values)
            rows = np.concatenate((_rows(left, at), rows))
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
    at = np.flatnonzero(~failed)
    return np.concatenate((_rows(~failed[at], at), _young_rows(segment, np.array(padded))))


def _candidates(segment: Segment, buckets: Rows) -> tuple[Words, Rows]:
    """The words in which some row does not fail, as the bits of those rows, and the words' places."""
    count, columns = segment.sealed >> 6, np.arange(segment.columns)
    fail, rest = segment.bits[FAIL], columns[:0]
    if count >= LARGE:
        columns = np.argsort(-segment.failing[columns, buckets])
        columns, rest = columns[:FIRST], columns[FIRST:]
    failed = np.bitwise_or.reduce(fail[columns, buckets[columns], :count], axis=0)
    failed |= segment.dead[:count]
    at = np.flatnonzero(~failed)
    left = ~failed[at]
    if rest.size and at.size:
        left &= ~np.bitwise_or.reduce(fail[rest[:, None], buckets[rest, None], at], axis=0)
        some = np.flatnonzero(left)
        left, at = left[some], at[some]
    return left, at


def _rows(words: Words, at: Rows) -> Rows:
    """The numbers of the bits that are set in words whose places are given."""
    bits = np.unpackbits(words.view(np.uint8), bitorder="little").view(np.bool_)
    places = np.flatnonzero(bits)
    return cast(Rows, at[places >> 6] * 64 + (places & 63))


def _clear_doubts(segment: Segment, left: Words, at: Rows, buckets: Rows, values: Numbers) -> None:
    """Compare each interval whose border lies in the bucket, and clear the rows that fail."""
    columns = np.arange(segment.columns)
    doubt = (segment.bits[DOUBT][columns[:, None], buckets[:, None], at] & left).reshape(-1)
    some = np.flatnonzero(doubt)
    if some.size:
        places = _rows(doubt[some], some)
        column, word = np.divmod(places >> 6, at.size)
        bit = places & 63
        low, high = segment.bounds.reshape(-1, 2)[column * segment.size + at[word] * 64 + bit].T
        value = values[column]
        wrong = np.flatnonzero((low > value) | (value > high))
        np.bitwise_and.at(left, word[wrong], ~_BIT[bit[wrong]])


def _young_rows(segment: Segment, values: Numbers) -> Rows:
    """Rows that are not packed yet, compared with the values, of which a column may have several."""
    start, stop = segment.sealed, segment.count
    if start == stop:
        return _NONE
    low, high = segment.bounds[:, start:stop, 0], segment.bounds[:, start:stop, 1]
    holds = np.zeros(low.shape, np.bool_)
    for value in values.T:
        holds |= (low <= value[:, None]) & (value[:, None] <= high)
    missing = np.isnan(values).all(1)
    holds[missing] = True
    absent = np.bitwise_or.reduce(_BIT[: segment.columns][missing])
    holds = holds.all(0) & ((segment.uses[start:stop] & absent) == 0)
    rows = np.flatnonzero(holds) + start
    dead = (segment.dead[rows >> 6] >> (rows & 63).astype(np.uint64)) & np.uint64(1)
    return cast(Rows, rows[dead == 0])


_NONE: Rows = np.empty(0, np.int64)
_BIT: Words = np.uint64(1) << np.arange(64, dtype=np.uint64)
