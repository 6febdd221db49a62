"""The order of lists of topics, and the counts of subscribers beside it, against naive ones."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from hpwsn.topics.tree.declarations import Declaration
from hpwsn.topics.tree.subscriber_counts import SubscriberCounts
from hpwsn.topics.tree.topic_node import Node
from hpwsn.topics.tree.tree import TopicTree
from hpwsn.topics.tree.tree_order import STEP, TreeOrder
from hpwsn_client.wsn.topics.topic_expressions import Topic
from tests.unit.topics.test_tree_properties import EXPRESSIONS, TOPICS

T = Topic.parse


def order_of(tree: TopicTree[int]) -> TreeOrder[int]:
    order: TreeOrder[int] = TreeOrder()
    for _ in order.steps(tree.root):
        pass
    return order


def counts_of(tree: TopicTree[int], order: TreeOrder[int], weight: int = 1) -> SubscriberCounts[int]:
    counts = SubscriberCounts(order, lambda _: weight)
    for _ in counts.steps(list(tree.groups()), tree.match(None)):
        pass
    return counts


def topics_of(order: TreeOrder[int]) -> list[str]:
    return [str(node.topic) for node in order.nodes]


def tree_of(*topics: str) -> TopicTree[int]:
    return TopicTree([Declaration(T(topic)) for topic in topics])


def test_a_topic_is_before_those_below_it_and_siblings_are_in_order_of_their_names() -> None:
    tree = tree_of("B", "A:Z:q", "A:B", "A-1", "{urn:x}A:C")
    assert topics_of(order_of(tree)) == [
        "A", "A:B", "A:Z", "A:Z:q", "A-1", "B", "{urn:x}A", "{urn:x}A:C",
    ]  # fmt: skip


def test_levels_parents_and_ends_describe_the_tree() -> None:
    order = order_of(tree_of("A:B:C", "A:D", "E"))
    assert list(order.levels) == [1, 2, 3, 2, 1]
    assert list(order.parents) == [-1, 0, 1, 0, -1]
    assert list(order.ends) == [4, 3, 3, 4, 5]
    assert order.below(T("A")) == range(1, 4)
    assert not order.below(T("E"))
    assert not order.below(T("nowhere"))


@given(st.lists(TOPICS, max_size=20), TOPICS)
def test_the_order_is_that_of_the_places_also_for_a_topic_that_is_gone(
    topics: list[Topic], other: Topic
) -> None:
    order = order_of(TopicTree(map(Declaration, topics)))
    places = [(node.topic.namespace, *node.topic.path) for node in order.nodes]
    assert places == sorted(places)
    assert order.after(other) == sum(place <= (other.namespace, *other.path) for place in places)
    assert all(order.positions[node.topic] == at for at, node in enumerate(order.nodes))


@given(st.lists(TOPICS, min_size=1, max_size=20), st.data())
def test_sums_are_those_of_the_subtrees(topics: list[Topic], data: st.DataObject) -> None:
    order = order_of(TopicTree(map(Declaration, topics)))
    size = len(order)
    values = data.draw(st.lists(st.integers(0, 9), min_size=size, max_size=size))
    naive = [
        sum(value for each, value in zip(order.nodes, values, strict=True) if node.topic.covers(each.topic))
        for node in order.nodes
    ]
    assert order.sums(values) == naive


def union(tree: TopicTree[int], nodes: Iterable[Node[int]]) -> set[int]:
    return {who for node in nodes for who in tree.match(node.topic)}


@settings(max_examples=300)
@given(
    st.lists(TOPICS, min_size=1, max_size=12),
    st.lists(EXPRESSIONS, max_size=12),
    st.sets(TOPICS, max_size=2),
    st.booleans(),
)
def test_counts_are_those_of_a_naive_search(
    topics: list[Topic],
    wanted: list[tuple],
    internal: set[Topic],
    simple_subtree: bool,  # type: ignore[type-arg]
) -> None:
    declared = [Declaration(topic, visibility="internal" if topic in internal else None) for topic in topics]
    tree: TopicTree[int] = TopicTree(declared, simple_subtree=simple_subtree)
    for who, expressions in enumerate(wanted):
        tree.subscribe(expressions, who, restore=True)
    order = order_of(tree)
    counts = counts_of(tree, order)
    assert counts.own == [len(tree.match(node.topic)) for node in order.nodes]
    assert counts.below == [len(union(tree, node.walk())) for node in order.nodes]
    assert counts_of(tree, order, weight=3).below == [3 * each for each in counts.below]


def test_a_large_tree_is_ordered_in_many_short_steps() -> None:
    tree = tree_of(*(f"R:t{n}" for n in range(5 * STEP)))
    order: TreeOrder[int] = TreeOrder()
    sizes = [len(order) for _ in order.steps(tree.root)]
    assert max(after - before for before, after in pairwise(sizes)) <= STEP
    assert len(order) == 5 * STEP + 1
