"""The kernel compiled by numba: combines columns until few rows of a machine word are left.

Loaded only if numba is installed (the extra `fast`). The first call compiles, which takes seconds. The result
is kept on disk if the installation or the user's cache is writable.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from hpwsn.matching.engine.segments import BUCKETS, MISSING, Floats, RowNumbers, Segment

_BUCKETS = BUCKETS
_MISSING = MISSING


def compiled(function: Any) -> Any:
    """Compile the function at its first call; the result is cached on disk if possible."""
    try:
        return njit(cache=True, nogil=True)(function)
    except RuntimeError:
        # numba can write neither beside the file nor to the user's cache.
        return njit(nogil=True)(function)


def match_compiled(segment: Segment, values: Floats) -> RowNumbers:
    """Find matching rows in one loop over the words; returns a view of the segment's buffer."""
    found = segment.found()
    n = _match(
        values,
        segment.edges,
        segment.failing,
        segment.bits,
        segment.bounds,
        segment.dead,
        segment.uses,
        segment.packed,
        segment.count,
        found,
    )
    return found[:n]


def warm_up() -> None:
    """Compile now, with one pack of rows and one unpacked row."""
    segment = Segment(512, 4)
    for number in range(257):
        segment.add([(0, float(number), float(number + 1))], False)
    match_compiled(segment, np.array([1.0, np.nan, np.nan, np.nan]))


@compiled
def _match(
    values: Any,
    edges: Any,
    failing: Any,
    bits: Any,
    bounds: Any,
    dead: Any,
    uses: Any,
    packed: int,
    count: int,
    found: Any,
) -> Any:
    """Write the matching rows to `found`; return how many."""
    n = 0
    columns = edges.shape[0]
    buckets, order, joined = _choose(values, edges, failing, packed)
    failed = _join(bits, buckets, order, joined, dead, packed >> 6)
    for word in range(failed.size):
        left = ~failed[word]
        if left == 0:
            continue
        for i in range(joined, columns):
            left &= ~bits[0, order[i], buckets[order[i]], word]
            if left == 0:
                break
        if left == 0:
            continue
        for column in range(columns):
            doubtful = left & bits[1, column, buckets[column], word]
            while doubtful:
                one = doubtful & (~doubtful + np.uint64(1))
                row = word * 64 + _bit_position(one)
                if not (bounds[0, column, row] <= values[column] <= -bounds[1, column, row]):
                    left ^= one
                doubtful ^= one
        while left:
            one = left & (~left + np.uint64(1))
            found[n] = word * 64 + _bit_position(one)
            n += 1
            left ^= one
    missing = _missing(values, columns)
    for row in range(packed, count):
        if dead[row >> 6] >> np.uint64(row & 63) & np.uint64(1) or uses[row] & missing:
            continue
        if _holds(values, bounds, row):
            found[n] = row
            n += 1
    return n


@compiled
def _choose(values: Any, edges: Any, failing: Any, packed: int) -> Any:
    """Return the bucket of each column, the columns ordered by failing rows, and how many to combine.

    The number is a multiple of four, chosen to leave less than one row in every second word.
    """
    columns = edges.shape[0]
    buckets = np.empty(columns, np.int64)
    order = np.empty(columns, np.int64)
    for column in range(columns):
        value = values[column]
        if value != value:
            bucket = _MISSING
        elif edges[column, 0] != edges[column, 0]:
            bucket = int(value) % _BUCKETS
        else:
            bucket = int(np.searchsorted(edges[column], value, side="right"))
        buckets[column] = bucket
        failures = failing[column, bucket]
        position = column
        while position > 0 and failing[order[position - 1], buckets[order[position - 1]]] < failures:
            order[position] = order[position - 1]
            position -= 1
        order[position] = column
    left, joined = 64.0, 0
    while joined < columns and left > 0.5 and packed:
        for i in range(joined, joined + 4):
            left *= 1.0 - failing[order[i], buckets[order[i]]] / packed
        joined += 4
    return buckets, order, joined


@compiled
def _join(bits: Any, buckets: Any, order: Any, joined: int, dead: Any, words: int) -> Any:
    """Return the rows that are dead or fail in one of the first columns, four columns at a time."""
    failed = dead[:words].copy()
    for i in range(0, joined, 4):
        a = bits[0, order[i], buckets[order[i]]]
        b = bits[0, order[i + 1], buckets[order[i + 1]]]
        c = bits[0, order[i + 2], buckets[order[i + 2]]]
        d = bits[0, order[i + 3], buckets[order[i + 3]]]
        for word in range(words):
            failed[word] |= a[word] | b[word] | c[word] | d[word]
    return failed


@compiled
def _missing(values: Any, columns: int) -> Any:
    """Return a bit for each column without a value."""
    missing = np.uint64(0)
    for column in range(columns):
        if values[column] != values[column]:
            missing |= np.uint64(1) << np.uint64(column)
    return missing


@compiled
def _holds(values: Any, bounds: Any, row: int) -> bool:
    for column in range(bounds.shape[1]):
        value = values[column]
        if value < bounds[0, column, row] or value > -bounds[1, column, row]:
            return False
    return True


_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_BIT_POSITIONS = np.zeros(64, np.int64)
for _bit in range(64):
    _BIT_POSITIONS[((0x03F79D71B4CB0A89 << _bit) & 0xFFFFFFFFFFFFFFFF) >> 58] = _bit


@compiled
def _bit_position(one: Any) -> Any:
    """Return the position of the only set bit."""
    return _BIT_POSITIONS[(one * _DE_BRUIJN) >> np.uint64(58)]
