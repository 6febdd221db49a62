"""Subtrees are spread evenly: the partition is the best there is, and the parallel tree follows it."""

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.matching.language.predicates import Operator, Predicate
from hpwsn.matching.papers.parallel import ParallelTree, cut_into_subtrees
from hpwsn.matching.papers.partition import even_partition, linear_partition
from hpwsn.matching.papers.trees import NormalTree

costs_of = st.lists(st.integers(min_value=0, max_value=50), min_size=1, max_size=9)
counts = st.integers(min_value=1, max_value=6)


def dearest(costs, blocks):
    return max(sum(costs[first:last]) for first, last in blocks)


def all_partitions(count, k):
    for cuts in combinations(range(1, count), k - 1):
        yield list(pairwise((0, *cuts, count)))


@given(costs=costs_of, k=counts)
def test_no_other_partition_has_a_cheaper_dearest_block(costs, k):
    blocks = linear_partition(costs, k)
    least = min(dearest(costs, other) for other in all_partitions(len(costs), min(k, len(costs))))
    assert dearest(costs, blocks) == least


@pytest.mark.parametrize("partition", [linear_partition, even_partition])
@given(costs=costs_of, k=counts)
def test_every_item_is_in_one_block_and_order_is_kept(partition, costs, k):
    blocks = partition(costs, k)
    assert [item for first, last in blocks for item in range(first, last)] == list(range(len(costs)))
    assert len(blocks) <= k
    assert all(first < last for first, last in blocks)


def test_the_papers_examples():
    assert linear_partition([12, 4, 7], 2) == [(0, 1), (1, 3)]
    assert linear_partition([3, 1, 1, 2, 2, 1], 2) == [(0, 3), (3, 6)]


def test_nothing_is_cut_into_nothing():
    assert linear_partition([], 3) == even_partition([], 3) == []


@pytest.mark.parametrize("partition", [linear_partition, even_partition])
def test_no_blocks_at_all_are_refused(partition):
    with pytest.raises(ValueError, match="0 blocks"):
        partition([1], 0)


def greater(attribute, operand):
    return Predicate(attribute, Operator.GT, (operand,))


def test_a_level_with_too_few_subtrees_is_cut_again():
    tree = NormalTree()
    for number in range(4):
        tree.add(number, ((greater("a", 1.0), greater("b", float(number))),))
    assert len(cut_into_subtrees(tree.root, 1)) == 1
    assert len(cut_into_subtrees(tree.root, 2)) == 4


def test_a_node_that_is_a_whole_conjunction_is_not_cut():
    tree = NormalTree()
    tree.add(0, ((greater("a", 1.0),),))
    tree.add(1, ((greater("a", 1.0), greater("b", 1.0)),))
    assert len(cut_into_subtrees(tree.root, 2)) == 1


def test_blocks_have_about_as_many_predicates_each():
    tree = ParallelTree(2)
    chains = {"a": 12, "m": 4, "z": 7}
    for number, (name, length) in enumerate(chains.items()):
        tree.add(number, (tuple(greater(f"{name}{level:02}", 1.0) for level in range(length)),))
    assert [sum(subtree.size() for subtree in block) for block in tree.blocks()] == [12, 11]
