"""The matching trees do what their paper says: shared beginnings, settled predicates, nothing asked twice."""

import pytest

from hpwsn.matching.language.predicates import Operator, Predicate
from hpwsn.matching.papers.trees import ImprovedTree, NormalTree

LT, LE, GT, GE, EQ, NE = (Operator(sign) for sign in ("<", "<=", ">", ">=", "=", "!="))


def predicate(attribute, operator, operand):
    return Predicate(attribute, operator, (operand,))


def tree_of(kind, *conjunctions):
    tree = kind()
    for number, conjunction in enumerate(conjunctions):
        tree.add(number, (conjunction,))
    return tree


@pytest.mark.parametrize("kind", [NormalTree, ImprovedTree])
def test_equal_beginnings_share_nodes(kind):
    p1, p2, p3 = predicate("a", GT, 1.0), predicate("b", GT, 2.0), predicate("c", GT, 3.0)
    tree = tree_of(kind, (p1, p2), (p1, p3), (p2, p3))
    assert list(tree.root.children) == [p1, p2]
    assert list(tree.root.children[p1].children) == [p2, p3]
    assert tree.root.size() == 5


def test_a_path_is_in_alphabetical_order_of_attributes():
    speed, lane = predicate("speed", GT, 60.0), predicate("lane", EQ, 1.0)
    tree = tree_of(NormalTree, (speed, lane))
    assert list(tree.root.children) == [lane]


def test_a_band_is_its_two_comparisons():
    band = Predicate("longitude", Operator.BETWEEN, (115.25, 117.30))
    bounds = (predicate("longitude", LE, 117.30), predicate("longitude", GE, 115.25))
    assert tree_of(NormalTree, (band,), bounds).root.size() == 2


@pytest.mark.parametrize("kind", [NormalTree, ImprovedTree])
def test_children_are_visited_only_where_the_node_holds(kind):
    tree = tree_of(kind, (predicate("a", GT, 1.0), predicate("b", GT, 2.0)))
    tree.match({"a": 0.0, "b": 3.0})
    assert tree.evaluations == 1


@pytest.mark.parametrize("kind", [NormalTree, ImprovedTree])
def test_removing_takes_only_the_nodes_that_nobody_else_has(kind):
    p1, p2, p3 = predicate("a", GT, 1.0), predicate("b", GT, 2.0), predicate("c", GT, 3.0)
    tree = tree_of(kind, (p1, p2), (p1, p3), (p1,))
    tree.remove(0)
    assert tree.root.size() == 2
    tree.remove(1)
    assert tree.root.size() == 1
    assert tree.match({"a": 2.0}) == [2]


@pytest.mark.parametrize(
    ("first", "second", "value"),
    [
        (predicate("x", GT, 34.0), predicate("x", GT, 32.0), 35.0),
        (predicate("x", GT, 32.0), predicate("x", GT, 34.0), 31.0),
        (predicate("x", GE, 34.0), predicate("x", GE, 32.0), 34.0),
        (predicate("x", LT, 32.0), predicate("x", LT, 34.0), 31.0),
        (predicate("x", LE, 34.0), predicate("x", LE, 32.0), 35.0),
        (predicate("x", EQ, 5.0), predicate("x", EQ, 6.0), 5.0),
        (predicate("x", NE, 5.0), predicate("x", NE, 6.0), 5.0),
    ],
    ids=str,
)
def test_one_evaluation_settles_the_other_predicate(first, second, value):
    improved, normal = (tree_of(kind, (first,), (second,)) for kind in (ImprovedTree, NormalTree))
    assert sorted(improved.match({"x": value})) == sorted(normal.match({"x": value}))
    assert (improved.evaluations, normal.evaluations) == (1, 2)


@pytest.mark.parametrize(
    ("first", "second", "value"),
    [
        (predicate("x", GT, 34.0), predicate("x", GT, 32.0), 33.0),
        (predicate("x", EQ, 5.0), predicate("x", EQ, 6.0), 7.0),
        (predicate("x", NE, 5.0), predicate("x", NE, 6.0), "five"),
        (predicate("x", EQ, 5.0), predicate("x", EQ, 6.0), (5.0, 6.0)),
        (predicate("x", GT, 34.0), predicate("y", GT, 32.0), 35.0),
        (predicate("x", GT, 34.0), predicate("x", GE, 32.0), 35.0),
    ],
    ids=str,
)
def test_what_does_not_follow_is_evaluated(first, second, value):
    tree = tree_of(ImprovedTree, (first,), (second,))
    tree.match({"x": value})
    # An event that repeats an attribute is asked for the whole conjunction besides.
    assert tree.lists.evaluations == 2


def test_a_predicate_on_several_branches_is_evaluated_once():
    p1, p2, p3 = predicate("a", GT, 1.0), predicate("b", GT, 1.0), predicate("c", GT, 1.0)
    tree = tree_of(ImprovedTree, (p1, p3), (p2, p3))
    assert sorted(tree.match({"a": 2.0, "b": 2.0, "c": 2.0})) == [0, 1]
    assert tree.evaluations == 3


def test_results_are_not_carried_over_to_the_next_event():
    tree = tree_of(ImprovedTree, (predicate("x", GT, 34.0),), (predicate("x", GT, 32.0),))
    assert sorted(tree.match({"x": 35.0})) == [0, 1]
    assert tree.match({"x": 33.0}) == [1]
    assert tree.match({}) == []


def test_lists_keep_no_predicate_that_nobody_asks_for():
    p1, p2 = predicate("a", GT, 1.0), predicate("b", Operator.LIKE, "x%")
    tree = tree_of(ImprovedTree, (p1,), (p1, p2))
    tree.remove(0)
    assert len(tree.lists) == 2
    tree.remove(1)
    assert len(tree.lists) == 0
    assert list(tree.lists.of_attribute("a")) == []
