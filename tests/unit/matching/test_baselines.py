"""The algorithms that the papers measure themselves against count evaluations as theirs do."""

import pytest

from hpwsn.matching.language.predicates import Operator, Predicate
from hpwsn.matching.language.reference_engine import NaiveEngine
from hpwsn.matching.papers.counting import CountingEngine, ForwardingEngine, PreIndexEngine
from hpwsn.matching.papers.sequential import SequentialEngine, SubOrderEngine


def greater(attribute, operand=1.0):
    return Predicate(attribute, Operator.GT, (operand,))


A, B, C = greater("a"), greater("b"), greater("c")


def filled(engine, *conjunctions):
    for number, conjunction in enumerate(conjunctions):
        engine.add(number, (conjunction,))
    return engine


def test_sequential_drops_all_that_share_a_false_predicate():
    engine = filled(SequentialEngine(), (A, B), (A, C), (A,))
    assert engine.match({"a": 0.0, "b": 2.0, "c": 2.0}) == []
    assert engine.evaluations == 1


def test_sequential_evaluates_a_shared_predicate_once():
    engine = filled(SequentialEngine(), (A, B), (A, C))
    assert sorted(engine.match({"a": 2.0, "b": 2.0, "c": 2.0})) == [0, 1]
    assert engine.evaluations == 3


def test_sequential_passes_over_predicates_that_only_dropped_ones_have():
    engine = filled(SequentialEngine(), (A, B), (C,))
    assert engine.match({"a": 0.0, "b": 2.0, "c": 2.0}) == [1]
    assert engine.evaluations == 2


def test_sub_order_begins_where_most_can_be_dropped():
    # B is in three conjunctions, A in one: asking those with B first settles the first one without A.
    engine = filled(SubOrderEngine(), (A, B), (B,), (B, C))
    assert engine.match({"a": 2.0, "b": 0.0, "c": 2.0}) == []
    assert engine.evaluations == 1


def test_sub_order_learns_which_predicates_fail():
    # Before any event the shared A decides the order; then it turns out to hold always, and B to fail.
    engine = filled(SubOrderEngine(), (A,), (A, C), (A, B), (C, A, B), (B,))
    event = {"a": 2.0, "b": 0.0, "c": 2.0}
    for _ in range(20):
        engine.match(event)
    before = engine.evaluations
    assert sorted(engine.match(event)) == [0, 1]
    assert engine.evaluations - before == 3


def test_counting_evaluates_every_distinct_predicate():
    engine = filled(CountingEngine(), (A, B), (A, C), (A,), (greater("a", 2.0),))
    assert engine.match({"a": 0.0, "b": 2.0, "c": 2.0}) == []
    assert engine.evaluations == 4


def test_the_predicate_index_evaluates_equal_predicates_once():
    engine = filled(PreIndexEngine(), (A, B), (A, C), (A,))
    assert sorted(engine.match({"a": 2.0, "b": 2.0, "c": 0.0})) == [0, 2]
    assert engine.evaluations == 3


@pytest.mark.parametrize(
    ("first", "second", "value"),
    [
        (greater("a", 32.0), greater("a", 34.0), 31.0),
        (greater("a", 34.0), greater("a", 32.0), 35.0),
        (Predicate("a", Operator.EQ, (5.0,)), Predicate("a", Operator.EQ, (6.0,)), 5.0),
        (Predicate("a", Operator.NE, (5.0,)), Predicate("a", Operator.NE, (6.0,)), 5.0),
    ],
    ids=str,
)
def test_the_predicate_index_does_not_evaluate_what_a_covering_predicate_decides(first, second, value):
    engine, naive = (filled(kind(), (first, B), (second, B)) for kind in (PreIndexEngine, NaiveEngine))
    event = {"a": value, "b": 2.0}
    assert sorted(engine.match(event)) == sorted(naive.match(event))
    assert engine.evaluations == 2


def test_the_predicate_index_keeps_equal_conjunctions_as_one_until_the_last_leaves():
    engine = filled(PreIndexEngine(), (A, B), (B, A), (A, B))
    assert len(engine._distinct) == 1
    engine.remove(0)
    engine.remove(2)
    assert engine.match({"a": 2.0, "b": 2.0}) == [1]
    engine.remove(1)
    assert not engine._distinct
    assert not engine._table
    assert len(engine._lists) == 0


def test_forwarding_looks_up_only_attributes_of_the_event():
    engine = filled(ForwardingEngine(), (A,), (greater("a", 2.0),), (greater("a", 3.0),), (B,), (C,))
    assert sorted(engine.match({"a": 2.5})) == [0, 1]
    assert engine.evaluations == 2
