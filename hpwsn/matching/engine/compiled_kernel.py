"""The kernel of hpwsn.matching.engine.kernels, compiled by numba: columns joined until few rows are left in
a word.

Loaded only where numba is installed (the extra `fast`). The first call compiles, which takes seconds; the
result is kept on disk where the installation or the user's cache can be written to.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from hpwsn.matching.engine.segments import BUCKETS, MISSING, Numbers, Rows, Segment

_BUCKETS = BUCKETS
_MISSING = MISSING


def compiled(function: Any) -> Any:
    """The function compiled at its first call, and kept on disk if there is a place for it."""
    try:
        return njit(cache=True, nogil=True)(function)
    except RuntimeError:
        # numba found neither a folder beside the file nor one of the user's that it may write to.
        return njit(nogil=True)(function)


def match_compiled(segment: Segment, values: Numbers) -> Rows:
    """By one loop over the words, in one call; what it finds lies in room that the segment keeps."""
    found = segment.found()
    n = _match(
        values,
        segment.edges,
        segment.failing,
        segment.bits,
        segment.bounds,
        segment.dead,
        segment.uses,
        segment.sealed,
        segment.count,
        found,
    )
    return found[:n]


def warm_up() -> None:
    """Compile now, on a segment of one packed and one young row more."""
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
    sealed: int,
    count: int,
    found: Any,
) -> Any:
    """The rows that hold; how many."""
    n = 0
    columns = edges.shape[0]
    buckets, order, joined = _choose(values, edges, failing, sealed)
    failed = _join(bits, buckets, order, joined, dead, sealed >> 6)
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
                row = word * 64 + _place(one)
                if not (bounds[0, column, row] <= values[column] <= -bounds[1, column, row]):
                    left ^= one
                doubtful ^= one
        while left:
            one = left & (~left + np.uint64(1))
            found[n] = word * 64 + _place(one)
            n += 1
            left ^= one
    missing = _missing(values, columns)
    for row in range(sealed, count):
        if dead[row >> 6] >> np.uint64(row & 63) & np.uint64(1) or uses[row] & missing:
            continue
        if _holds(values, bounds, row):
            found[n] = row
            n += 1
    return n


@compiled
def _choose(values: Any, edges: Any, failing: Any, sealed: int) -> Any:
    """The bucket of each column, the columns in the order in which most rows fail, and how many to join.

    So many that less than one row of every second word should be left; a multiple of four, as columns are.
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
        place = column
        while place > 0 and failing[order[place - 1], buckets[order[place - 1]]] < failures:
            order[place] = order[place - 1]
            place -= 1
        order[place] = column
    left, joined = 64.0, 0
    while joined < columns and left > 0.5 and sealed:
        for i in range(joined, joined + 4):
            left *= 1.0 - failing[order[i], buckets[order[i]]] / sealed
        joined += 4
    return buckets, order, joined


@compiled
def _join(bits: Any, buckets: Any, order: Any, joined: int, dead: Any, words: int) -> Any:
    """The rows that are dead or fail in one of the first columns, four columns at a time."""
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
    """A bit for each column that the event has no value for."""
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
_PLACES = np.zeros(64, np.int64)
for _bit in range(64):
    _PLACES[((0x03F79D71B4CB0A89 << _bit) & 0xFFFFFFFFFFFFFFFF) >> 58] = _bit


@compiled
def _place(one: Any) -> Any:
    """The place of the only bit that is set."""
    return _PLACES[(one * _DE_BRUIJN) >> np.uint64(58)]
