"""The parallel tree with a process for each block answers as one tree does."""

import random

import pytest
from benchmarks.tools.matching_processes import ProcessWorkers

from hpwsn.matching.language.predicates import Operator, Predicate
from hpwsn.matching.papers.parallel import ParallelTree
from hpwsn.matching.papers.trees import ImprovedTree


@pytest.fixture(scope="module")
def workers():
    with ProcessWorkers(2) as workers:
        yield workers


def some_request(chance):
    names = chance.sample("abcdef", 3)
    return (tuple(Predicate(name, Operator.GT, (float(chance.randint(0, 9)),)) for name in names),)


def test_processes_answer_as_one_tree_does_while_requests_come_and_go(workers):
    chance = random.Random(1)
    parallel, single = ParallelTree(2, workers), ImprovedTree()
    for number in range(300):
        request = some_request(chance)
        for engine in (parallel, single):
            engine.add(number, request)
    events = [{name: float(chance.randint(0, 10)) for name in "abcdef"} for _ in range(20)]
    expected = [sorted(ids) for ids in single.match_batch(events)]
    assert any(expected)
    assert [sorted(ids) for ids in parallel.match_batch(events)] == expected
    assert parallel.evaluations >= single.evaluations
    for number in range(290):
        parallel.remove(number)
        single.remove(number)
    assert [sorted(parallel.match(event)) for event in events] == [sorted(single.match(e)) for e in events]


def test_more_blocks_than_processes_are_refused(workers):
    with pytest.raises(ValueError, match="3 blocks for 2 processes"):
        workers.assign([[], [], []])
