"""Rare equalities, alone and in pairs: exact through any history, and only as many tables as pay."""

import random
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpwsn.matching.engine import equality_index
from hpwsn.matching.engine.conjunction_index import Entry
from hpwsn.matching.engine.equality_index import FIRST_TABLES, MIN_DISTINCT, EqualityIndex
from hpwsn.matching.engine.equality_pairs import SMALL_BUCKET
from hpwsn.matching.language.predicates import Operator, Predicate, conjunction_holds

NAMES = ["a", "b", "c", "d"]


def equal(name, value):
    return Predicate(name, Operator.EQ, (value,))


def one_of(name, values):
    return Predicate(name, Operator.IN, tuple(values))


def entry_of(number, *predicates):
    return Entry(number, tuple(predicates))


def found_by(index, event):
    ids = []
    index.match(event, ids)
    return sorted(ids)


def compare(index, live, event):
    assert found_by(index, event) == [e.id for e in live if conjunction_holds(e.conjunction, event)], event


def filled(chance, size, names, each, values):
    """An index of equalities that took them all."""
    index, live = EqualityIndex(), []
    for number in range(size):
        chosen = chance.sample(names, each)
        live.append(entry_of(number, *(equal(name, float(chance.randrange(values))) for name in chosen)))
        assert index.offer(live[-1])
    return index, live


@pytest.fixture
def with_tables():
    chance = random.Random(1)
    index, live = filled(chance, 3000, [f"a{number:02}" for number in range(12)], 5, 200)
    assert len(index._pairs) > FIRST_TABLES
    return index, live, chance


values = st.sampled_from([0.0, -0.0, 1.0, 2.0, "x", "1", ""])
event_values = values | st.sampled_from([True, False, float("nan"), "y"])
some_predicates = st.one_of(
    st.builds(equal, st.sampled_from(NAMES), values),
    st.builds(equal, st.sampled_from(NAMES), values),
    st.builds(
        lambda n, v: Predicate(n, Operator.IN, tuple(v)),
        st.sampled_from(NAMES),
        st.lists(values, min_size=1, max_size=2),
    ),
    st.builds(lambda n, v: Predicate(n, Operator.NE, (v,)), st.sampled_from(NAMES), values),
    st.builds(equal, st.sampled_from(NAMES), st.sampled_from([True, float("nan")])),
)
events = st.dictionaries(
    st.sampled_from([*NAMES, "e"]), event_values | st.lists(event_values, max_size=3).map(tuple), max_size=5
)
steps = st.lists(
    st.lists(some_predicates, min_size=1, max_size=4) | st.integers(min_value=0, max_value=20) | events,
    max_size=40,
)


@given(history=steps)
@settings(max_examples=400, deadline=None)
def test_pairs_answer_as_the_definition_does_after_any_history(history):
    index, live, number = EqualityIndex(), [], 0
    with patch.multiple(equality_index, FIRST_TABLES=3, MIN_DISTINCT=1):
        for step in history:
            if isinstance(step, list):
                entry, number = entry_of(number, *step), number + 1
                if index.offer(entry):
                    live.append(entry)
            elif isinstance(step, int) and step < len(live):
                index.remove(live.pop(step))
            elif isinstance(step, dict):
                compare(index, live, step)
    for entry in live:
        index.remove(entry)
    assert not index._by_attribute
    assert not index._count
    assert not index._pairs


def test_conjunctions_move_into_few_tables_as_values_are_shared(with_tables):
    index, live, _ = with_tables
    assert index._pairs.count > len(live) * 2 // 3
    assert len(index._pairs) < 12 * 11 // 2 // 2
    assert index._pairs.count + sum(index._count.values()) == len(live)


def test_events_of_all_shapes_find_the_same_in_tables(with_tables):
    index, live, chance = with_tables
    names = [f"a{number:02}" for number in range(12)]
    for _ in range(30):
        wanted = {p.attribute: p.operands[0] for p in chance.choice(live).conjunction}
        whole = {name: float(chance.randrange(200)) for name in names} | wanted
        repeated = {name: (value, 3.0, value) for name, value in whole.items()}
        every = dict.fromkeys(names, tuple(map(float, range(100))))
        for event in (whole, wanted, whole | {"x": 1.0}, repeated, dict.fromkeys(names, True)):
            compare(index, live, event)
    compare(index, live, every)


def test_an_event_asks_next_to_none_of_thousands(with_tables):
    index, _, chance = with_tables
    asked = 0
    for _ in range(100):
        asked += index.match({f"a{number:02}": float(chance.randrange(200)) for number in range(12)}, [])
    assert asked < 100


def test_nothing_is_left_of_tables_that_are_emptied(with_tables):
    index, live, chance = with_tables
    chance.shuffle(live)
    gone = live[:-1]
    for entry in gone:
        index.remove(entry)
    assert len(index._pairs) <= 1
    assert len(index._pairs._partners) <= 2
    compare(index, live[-1:], {p.attribute: p.operands[0] for p in live[-1].conjunction})
    index.remove(live[-1])
    assert not index._pairs
    assert not index._pairs._partners
    assert found_by(index, {"a00": 1.0, "a01": (1.0, 2.0)}) == []


def test_values_that_are_rare_alone_make_no_more_tables_than_come_in_any_case():
    index, live = EqualityIndex(), []
    for number in range(3000):
        second = equal(f"other{number % 300}", 1.0)
        live.append(entry_of(number, equal("plate", f"p{number}"), second))
        assert index.offer(live[-1])
    assert len(index._pairs) <= FIRST_TABLES
    compare(index, live, {"plate": "p7", "other7": 1.0, "other8": 1.0})


def test_attributes_with_few_values_have_no_tables_and_their_crowds_are_refused():
    chance, index = random.Random(3), EqualityIndex()
    taken = sum(
        index.offer(entry_of(number, *(equal(name, float(chance.randrange(3))) for name in NAMES)))
        for number in range(2000)
    )
    assert taken == len(NAMES) * 3 * SMALL_BUCKET
    assert not index._pairs


def test_two_values_that_many_ask_for_together_are_refused():
    index = EqualityIndex()
    for number in range(2 * MIN_DISTINCT):
        index.offer(entry_of(number, equal("a", float(number)), equal("b", float(number))))
    assert len(index._pairs) == 1
    taken = 0
    while index.offer(entry_of(1000 + taken, equal("a", 5.0), equal("b", 5.0))):
        taken += 1
    # In the table, and under either of the two values.
    assert taken <= 3 * SMALL_BUCKET
    assert index.offer(entry_of(5000, equal("a", 5.0), equal("b", 999.0)))
