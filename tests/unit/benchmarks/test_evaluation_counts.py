"""The compiled counts of the papers' figures are those of the engines themselves."""

import random

import pytest
from benchmarks.tools.category_figures import LOADS, width_for
from benchmarks.tools.evaluation_counts import Workload

from hpwsn.matching.language.reference_engine import NaiveEngine
from hpwsn.matching.papers.categories import CategoryEngine
from hpwsn.matching.papers.counting import ForwardingEngine
from hpwsn.matching.papers.sequential import SequentialEngine, SubOrderEngine

EVENTS = 40


@pytest.fixture(scope="module", params=LOADS, ids=str)
def workload(request):
    load = LOADS[request.param]
    chance = random.Random(5)
    width = width_for(load)
    requests = [load.subscription(chance, width) for _ in range(600)]
    # Some events that match: at 0.3 % of few subscriptions hardly any would.
    return requests, [load.event(chance) for _ in range(EVENTS)]


def counted(engine, requests, events):
    for number, request in enumerate(requests):
        engine.add(number, request)
    found = sum(len(engine.match(event)) for event in events)
    return engine.evaluations, found


def test_naive(workload):
    counts = Workload(*workload).naive(EVENTS)
    assert (counts.evaluations, counts.matches) == counted(NaiveEngine(), *workload)
    assert counts.matches > 0


def test_sequential(workload):
    requests, events = workload
    counts = Workload(*workload).sequential(EVENTS)
    assert counts.evaluations == counted(SequentialEngine(), *workload)[0]
    assert counts.matches == sum(all_holding(requests, event) for event in events)


def all_holding(requests, event):
    """How many conjunctions hold; several of one request may."""
    return sum(
        all(p.operands[0] <= event[p.attribute] <= p.operands[1] for p in conjunction)
        for request in requests
        for conjunction in request
    )


def test_sub_order_while_it_learns(workload):
    requests, events = workload
    for count in (1, 2, 3, 7, EVENTS):
        counts = Workload(*workload).sub_order(count)
        assert counts.evaluations == counted(SubOrderEngine(), requests, events[:count])[0]
        assert counts.matches == sum(all_holding(requests, event) for event in events[:count])


def test_categories(workload):
    requests, events = workload
    engine = CategoryEngine()
    evaluations, _ = counted(engine, *workload)
    counts, bounds = Workload(*workload).categories(EVENTS)
    assert (counts.evaluations, bounds) == (evaluations, engine.bounds)
    assert counts.matches == sum(all_holding(requests, event) for event in events)


def test_forwarding_makes_the_same_comparisons_for_every_event(workload):
    requests, events = workload
    one, all_ = (counted(ForwardingEngine(), requests, some)[0] for some in (events[:1], events))
    assert all_ == EVENTS * one


def test_fewer_events_than_there_are_can_be_counted(workload):
    requests, events = workload
    assert Workload(*workload).naive(3) == Workload(requests, events[:3]).naive(3)
