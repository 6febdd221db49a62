"""Subtrees are spread evenly: the partition is the best there is, and the parallel tree follows it."""

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.matching.language.predicates import Operator, Predicate
from hpwsn.matching.papers.parallel import ParallelTree, cut_into_subtrees, measured_visits
from hpwsn.matching.papers.partition import even_partition, linear_partition
from hpwsn.matching.papers.trees import ImprovedTree, NormalTree

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


@given(costs=st.lists(st.integers(0, 50), min_size=2, max_size=9), k=st.integers(2, 6))
def test_the_last_cut_is_the_best_of_all_cuts_after_the_best_partition_of_the_rest(costs, k):
    # M[i][j] is the dearest block of the first i items in j blocks; D[i][j] is where the last one begins.
    k = min(k, len(costs))

    def m(i, j):
        return dearest(costs[:i], linear_partition(costs[:i], j))

    d = linear_partition(costs, k)[-1][0]
    by_cut = {x: max(m(x, k - 1), sum(costs[x:])) for x in range(k - 1, len(costs))}
    assert m(len(costs), k) == min(by_cut.values()) == by_cut[d]


def chains():
    """Four subtrees of three predicates each; events always enter the first two, and never the others."""
    for number, name in enumerate("abyz"):
        bound = 0.0 if name in "ab" else 100.0
        yield number, (tuple(greater(f"{name}{level}", bound) for level in range(3)),)


CHAIN_EVENT = {f"{name}{level}": 1.0 for name in "abyz" for level in range(3)}


def test_visits_are_counted_for_each_subtree_with_a_sample_of_events():
    tree = ParallelTree(2)
    for number, request in chains():
        tree.add(number, request)
    subtrees = cut_into_subtrees(tree._tree.root, 2)
    assert measured_visits([CHAIN_EVENT] * 5)(subtrees) == [15, 15, 5, 5]


def test_blocks_by_measured_visits_are_more_even_on_other_events_than_blocks_by_predicates():
    busiest = {}
    for name, costs in (("predicates", None), ("visits", measured_visits([CHAIN_EVENT]))):
        tree = ParallelTree(2, costs=costs)
        for number, request in chains():
            tree.add(number, request)
        busiest[name] = max(visits_of(block) for block in tree.blocks())
        assert sorted(tree.match(CHAIN_EVENT)) == [0, 1]
    assert busiest == {"predicates": 6, "visits": 5}


def visits_of(block):
    tree = ImprovedTree()
    for leaf in (leaf for subtree in block for leaf in subtree.all_leaves()):
        tree.add(leaf.id, (leaf.conjunction,))
    tree.match({**CHAIN_EVENT, "other": 1.0})
    return tree.visits
