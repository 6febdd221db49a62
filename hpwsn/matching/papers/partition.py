"""Partition of subtrees over workers: linear partition by dynamic programming, and even blocks.

Follows section 4.2.3 of the paper on stream data services. The order of items is kept. M[i][j] is the least
cost of the first i items in j blocks, where the cost of a partition is that of its most expensive block.
D[i][j] is where the last of those blocks begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

Block = tuple[int, int]
"""The index of the first item, and the index after the last."""


def linear_partition(costs: Sequence[int], k: int) -> list[Block]:
    """Return at most k non-empty blocks with the least possible cost of the most expensive one."""
    k = min(_valid(k), len(costs))
    if k == 0:
        return []
    sums = [0, *accumulate(costs)]
    least = [[0] * (k + 1) for _ in sums]
    cut = [[0] * (k + 1) for _ in sums]
    for i in range(1, len(sums)):
        least[i][1] = sums[i]
        for j in range(2, min(i, k) + 1):
            least[i][j], cut[i][j] = _best_cut(least, sums, i, j)
    return _blocks(cut, len(costs), k)


def _best_cut(least: list[list[int]], sums: list[int], i: int, j: int) -> tuple[int, int]:
    """Return the cost and position of the best cut: where the last block becomes cheaper than the others."""
    low, high = j - 1, i - 1
    while low < high:
        middle = (low + high) // 2
        if least[middle][j - 1] >= sums[i] - sums[middle]:
            high = middle
        else:
            low = middle + 1
    return min((max(least[x][j - 1], sums[i] - sums[x]), x) for x in (max(low - 1, j - 1), low))


def _blocks(cut: list[list[int]], count: int, k: int) -> list[Block]:
    blocks = []
    for j in range(k, 0, -1):
        blocks.append((cut[count][j], count))
        count = cut[count][j]
    return blocks[::-1]


def even_partition(costs: Sequence[int], k: int) -> list[Block]:
    """Return blocks with equal numbers of items, regardless of cost: the paper's baseline."""
    count = len(costs)
    bounds = [count * j // _valid(k) for j in range(k + 1)]
    return [(first, last) for first, last in pairwise(bounds) if first < last]


def _valid(k: int) -> int:
    if k < 1:
        raise ValueError(f"cannot partition into {k} blocks; give at least 1")
    return k
