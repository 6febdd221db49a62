"""The matching trees do what their paper says: shared beginnings, settled predicates, nothing asked twice."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.matching.language.predicates import Operator, Predicate
from hpwsn.matching.papers.predicate_lists import HashList, SortedList
from hpwsn.matching.papers.trees import ImprovedTree, NormalTree, visit_bound

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


@given(names=st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=6, unique=True))
def test_every_path_is_in_alphabetical_order_whatever_the_order_of_the_request(names):
    tree = tree_of(ImprovedTree, tuple(predicate(name, GT, 1.0) for name in names))
    path, node = [], tree.root
    while node.children:
        ((asked, node),) = node.children.items()
        path.append(asked.attribute)
    assert path == sorted(names)


def test_a_leaf_is_mapped_to_every_request_that_has_its_conjunction():
    p1, p2, p3 = predicate("a", GT, 1.0), predicate("b", GT, 2.0), predicate("c", GT, 3.0)
    tree = ImprovedTree()
    tree.add(7, ((p1, p2), (p3,)))
    tree.add(8, ((p2, p1),))
    leaf = tree.root.children[p1].children[p2]
    assert [stored.id for stored in leaf.leaves] == [7, 8]
    assert sorted(tree.match({"a": 2.0, "b": 3.0, "c": 4.0})) == [7, 8]
    assert tree.match({"c": 4.0}) == [7]


def test_there_is_a_list_for_each_attribute_and_operator_sorted_by_value_or_a_hash():
    operators = (LT, LE, GT, GE, EQ, NE)
    asked = [(predicate("x", each, value),) for each in operators for value in (3.0, 1.0, 2.0)]
    tree = tree_of(ImprovedTree, *asked, (predicate("y", GT, 1.0),))
    lists = {each.operator: each for each in tree.lists.of_attribute("x")}
    assert set(lists) == set(operators)
    for operator, each in lists.items():
        assert isinstance(each, HashList if operator in (EQ, NE) else SortedList)
    for operator in (LT, LE, GT, GE):
        assert [listed.operand for listed in lists[operator]._listed] == [1.0, 2.0, 3.0]
    assert set(lists[EQ]._listed) == {1.0, 2.0, 3.0}
    assert len(list(tree.lists.of_attribute("y"))) == 1


values = st.integers(0, 9).map(float)
comparisons = st.builds(predicate, st.sampled_from("xyz"), st.sampled_from((LT, LE, GT, GE, EQ, NE)), values)
trees_of_comparisons = st.lists(
    st.lists(comparisons, min_size=1, max_size=4).map(tuple), min_size=1, max_size=30
)


@given(conjunctions=trees_of_comparisons, event=st.fixed_dictionaries(dict.fromkeys("xyz", values)))
def test_no_predicate_is_evaluated_twice_for_an_event(conjunctions, event):
    tree = tree_of(ImprovedTree, *conjunctions)
    asked = []
    for name in "xyz":
        for each in tree.lists.of_attribute(name):
            each._test = recorded(each, asked)
    tree.match(event)
    assert len(asked) == len(set(asked)) == tree.lists.evaluations
    assert tree.lists.evaluations <= len(tree.lists)


def recorded(list_, asked):
    test = list_._test

    def record(value, operand):
        asked.append((list_.attribute, list_.operator, operand))
        return test(value, operand)

    return record


def test_with_many_predicates_on_an_attribute_most_are_never_evaluated():
    operands = list(range(1000))
    random.Random(1).shuffle(operands)
    tree = tree_of(ImprovedTree, *((predicate("x", GT, float(operand)),) for operand in operands))
    assert len(tree.match({"x": 500.5})) == 501
    assert tree.visits == 1000
    # Each evaluation halves what is left, on average and in random order.
    assert tree.evaluations < 50


def equality_requests(chance, count, attributes, values_):
    """The paper's model: equalities on a random set of attributes, all values equally likely."""
    for _ in range(count):
        names = [name for name in range(attributes) if chance.random() < 0.5] or [0]
        yield tuple(predicate(f"a{name:02}", EQ, float(chance.randrange(values_))) for name in names)


@pytest.mark.parametrize("kind", [NormalTree, ImprovedTree])
@pytest.mark.parametrize(
    ("count", "attributes", "values_"),
    [(10, 4, 10), (1000, 4, 10), (1000, 7, 5), (3000, 7, 20), (1000, 2, 1000), (1000, 10, 2)],
)
def test_an_event_reaches_no_more_nodes_than_the_papers_bound(kind, count, attributes, values_):
    chance = random.Random(count + attributes)
    tree = tree_of(kind, *equality_requests(chance, count, attributes, values_))
    events = [
        {f"a{name:02}": float(chance.randrange(values_)) for name in range(attributes)} for _ in range(200)
    ]
    tree.match_batch(events)
    assert tree.reached / len(events) <= visit_bound(count, attributes, values_)


def test_the_bound_is_the_formula_of_the_paper():
    # K = 4, V = 10: λ = ln 10/(ln 10 + ln 4), and the factors are 2·5 and ln 10 + ln 5.
    assert visit_bound(1000, 4, 10) == pytest.approx(10 * 1000 ** (1 - 0.624196) * 3.912023, rel=1e-4)


def test_nodes_that_are_asked_and_fail_are_not_in_the_bound():
    chance = random.Random(1)
    tree = tree_of(ImprovedTree, *equality_requests(chance, 1000, 2, 1000))
    tree.match({"a00": 1.0, "a01": 1.0})
    assert tree.visits > visit_bound(1000, 2, 1000) > tree.reached
