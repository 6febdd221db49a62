"""Every engine answers as the naive one does, whatever is added, removed and matched in between."""

import random
from functools import cache
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpwsn.matching.engine import kernels
from hpwsn.matching.engine.compiled_kernel import match_compiled
from hpwsn.matching.engine.default_engine import DefaultEngine
from hpwsn.matching.engine.kernels import match_numpy
from hpwsn.matching.language.predicates import ORDERED, Operator, Predicate, disjunction_holds
from hpwsn.matching.language.reference_engine import Engine, NaiveEngine
from hpwsn.matching.papers.categories import CategoryEngine
from hpwsn.matching.papers.counting import CountingEngine, ForwardingEngine, PreIndexEngine
from hpwsn.matching.papers.drt_cluster import DRtCluster
from hpwsn.matching.papers.kd_tree import KdTreeEngine
from hpwsn.matching.papers.parallel import ParallelTree
from hpwsn.matching.papers.rt_cluster import RtCluster
from hpwsn.matching.papers.sequential import SequentialEngine, SubOrderEngine
from hpwsn.matching.papers.trees import ImprovedTree, NormalTree

from .strategies import events, requests


class CompiledEngine(DefaultEngine):
    """The default engine with numba's kernel."""

    def __init__(self) -> None:
        super().__init__(match_compiled)


def match_by_bits(segment, values):
    """numpy's kernel as it is in large segments where little is in doubt."""
    with patch.multiple(kernels, JOIN_COST=0, FIND_COST=0, ROW_COST=0, DIRECT_ROWS=-1, DOUBT_COST=0):
        return match_numpy(segment, values)


def match_by_bits_and_comparing(segment, values):
    """The same where much is in doubt."""
    with patch.multiple(kernels, JOIN_COST=0, FIND_COST=0, ROW_COST=0, DIRECT_ROWS=2, DOUBT_COST=10**9):
        return match_numpy(segment, values)


class BitsEngine(DefaultEngine):
    """The default engine as it is with many requests."""

    def __init__(self) -> None:
        super().__init__(match_by_bits)


class BitsAndComparingEngine(DefaultEngine):
    """The same at a high ratio of matches."""

    def __init__(self) -> None:
        super().__init__(match_by_bits_and_comparing)


class ClustersOfRandomRequests(RtCluster):
    """Rt-Cluster over attributes that the random requests have, with few clusters so that they merge."""

    def __init__(self) -> None:
        super().__init__(("a", "b"), "c", most_clusters=3)


class SpreadClustersOfRandomRequests(DRtCluster):
    """DRt-Cluster in the same way, balanced all the time."""

    def __init__(self) -> None:
        super().__init__(("a", "b"), "c", most_clusters=3, workers=2, balance_every=2)


class KdTreeOfRandomRequests(KdTreeEngine):
    """The kd-tree over the same attributes."""

    def __init__(self) -> None:
        super().__init__(("a", "b"), "c")


ENGINES: list[type[Engine]] = [
    NaiveEngine,
    DefaultEngine,
    BitsEngine,
    BitsAndComparingEngine,
    CompiledEngine,
    SequentialEngine,
    SubOrderEngine,
    CountingEngine,
    PreIndexEngine,
    ForwardingEngine,
    NormalTree,
    ImprovedTree,
    ParallelTree,
    CategoryEngine,
    ClustersOfRandomRequests,
    SpreadClustersOfRandomRequests,
    KdTreeOfRandomRequests,
]

steps = st.lists(
    st.tuples(st.just("add"), requests)
    | st.tuples(st.just("remove"), st.integers(min_value=0, max_value=20))
    | st.tuples(st.just("match"), events),
    max_size=30,
)


@pytest.fixture(params=ENGINES, scope="module", ids=lambda kind: kind.__name__)
def kind(request: pytest.FixtureRequest) -> type[Engine]:
    return request.param


@given(history=steps, last=st.lists(events, min_size=1, max_size=3))
@settings(max_examples=300, deadline=None)
def test_every_engine_equals_the_definition_after_any_history(history, last):
    # One history for all engines: making it up costs more than matching.
    engines, live, number = [kind() for kind in ENGINES], {}, 0
    for step, argument in history:
        if step == "add":
            live[number] = argument
            for engine in engines:
                engine.add(number, argument)
            number += 1
        elif step == "remove" and argument in live:
            del live[argument]
            for engine in engines:
                engine.remove(argument)
        elif step == "match":
            assert_equal(engines, live, argument)
    for event in last:
        assert_equal(engines, live, event)
    for engine in engines:
        assert len(engine) == len(live)
        assert [sorted(ids) for ids in engine.match_batch(last)] == [sorted(engine.match(e)) for e in last]


def assert_equal(engines, live, event):
    expected = sorted(id_ for id_, request in live.items() if disjunction_holds(request, event))
    for engine in engines:
        assert sorted(engine.match(event)) == expected, type(engine).__name__


def test_an_id_in_use_is_refused(kind):
    engine = kind()
    engine.add(1, ((),))
    with pytest.raises(ValueError, match="1"):
        engine.add(1, ((),))
    assert engine.match({}) == [1]


def test_removing_what_is_not_there_is_an_error(kind):
    with pytest.raises(KeyError):
        kind().remove(7)


@cache
def many(seed, size):
    """Thousands of random changes, with what should be left of them."""
    chance = random.Random(seed)
    changes, live = [], {}
    for number in range(size):
        request = some_request(chance)
        changes.append((number, request))
        live[number] = request
        if chance.random() < 0.3:
            gone = chance.choice(list(live)) if chance.random() < 0.05 else number
            changes.append((gone, None))
            del live[gone]
    return changes, live


def after(kind, changes):
    """An engine after these changes."""
    engine = kind()
    for number, request in changes:
        if request is None:
            engine.remove(number)
        else:
            engine.add(number, request)
    return engine


@cache
def expected(seed, size):
    """Random events, each with the ids that hold."""
    _, live = many(seed, size)
    chance = random.Random(seed + 1000)
    cases = [some_event(chance) for _ in range(30)]
    return [(e, {id_ for id_, request in live.items() if disjunction_holds(request, e)}) for e in cases]


def some_request(chance):
    return tuple(
        tuple(some_predicate(chance) for _ in range(chance.randint(1, 4)))
        for _ in range(chance.choice([1, 1, 1, 2]))
    )


def some_predicate(chance):
    name, operator = chance.choice("abcdefgh"), chance.choice([*ORDERED, Operator.EQ, Operator.EQ, *Operator])
    number = lambda: float(chance.randint(0, 40)) / 2  # noqa: E731
    text = lambda: f"t{chance.randint(0, 99)}"  # noqa: E731
    operands = {
        Operator.BETWEEN: lambda: tuple(sorted((number(), number()))),
        Operator.IN: lambda: (number(), number()) if chance.random() < 0.5 else (text(), text()),
        Operator.HAS: lambda: (text(),),
        Operator.LIKE: lambda: (f"t{chance.randint(0, 9)}%",),
        Operator.EXISTS: lambda: (),
    }.get(operator, lambda: (number() if chance.random() < 0.7 else text(),))()
    return Predicate(name, operator, operands, negated=chance.random() < 0.05)


def some_event(chance):
    def value():
        return float(chance.randint(-2, 82)) / 4 if chance.random() < 0.6 else f"t{chance.randint(0, 120)}"

    def values():
        return value() if chance.random() < 0.95 else (value(), value(), value())

    return {name: values() for name in "abcdefgh" if chance.random() < 0.9}


@pytest.mark.parametrize("seed", range(4))
def test_the_engine_equals_the_definition_with_thousands_of_requests(kind, seed):
    changes, _ = many(seed, 3000)
    engine = after(kind, changes)
    cases = expected(seed, 3000)
    together = engine.match_batch([event for event, _ in cases])
    for (event, ids), at_once in zip(cases, together, strict=True):
        found = engine.match(event)
        assert len(found) == len(set(found))
        assert set(found) == ids
        assert sorted(at_once) == sorted(found)


def test_nothing_is_left_when_all_are_removed(kind):
    changes, live = many(9, 3000)
    engine = after(kind, changes)
    for id_ in live:
        engine.remove(id_)
    assert len(engine) == 0
    assert all(engine.match(event) == [] for event, _ in expected(9, 3000)[:10])
    engine.add(1, ((Predicate("a", Operator.EXISTS, ()),),))
    assert engine.match({"a": 1.0}) == [1]


def test_the_naive_engine_counts_what_it_evaluates():
    engine = NaiveEngine()
    engine.add(1, ((Predicate("speed", Operator.GT, (60.0,)), Predicate("lane", Operator.EQ, (1.0,))),))
    engine.match({"speed": 50.0, "lane": 1.0})
    engine.match({"speed": 61.0, "lane": 1.0})
    assert engine.evaluations == 3
