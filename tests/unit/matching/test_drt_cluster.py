"""DRt-Cluster's rules: what merges where, who is overloaded, what is moved and to whom."""

import math

import pytest

from hpwsn.matching.papers.drt_cluster import DRtCluster

from .test_clusters import event, request

WORDS = ("fire", "flood", "smoke", "storm")


@pytest.fixture
def engine():
    """Four clusters of one subscription each, one on each of four workers."""
    engine = DRtCluster(workers=4)
    for number, word in enumerate(WORDS):
        engine.add(number, request(word, 0, 2, 0, 2))
    return engine


def place(engine, *workers):
    for cluster, worker in zip(engine.clusters.values(), workers, strict=True):
        cluster.worker = worker


def correlate(engine, one, other, times):
    for _ in range(times):
        engine.match(event(f"{WORDS[one]} {WORDS[other]}", 1, 1))


def test_clusters_that_are_like_no_other_are_spread(engine):
    assert sorted(cluster.worker for cluster in engine.clusters.values()) == [0, 1, 2, 3]


def test_correlation_is_told_apart_by_worker(engine):
    place(engine, 0, 0, 1, 2)
    correlate(engine, 0, 1, 3)
    correlate(engine, 0, 2, 1)
    correlate(engine, 0, 3, 1)
    first, second, _, last = engine.clusters.values()
    assert (engine.same(first), engine.different(first)) == (3, 2)
    assert engine.merge_judgement(first) == 1.5
    assert engine.merge_judgement(second) == math.inf
    assert engine.merge_judgement(last) == 0


def test_the_best_tied_cluster_merges_on_its_own_worker():
    engine = DRtCluster(workers=4, most_clusters=4)
    for number, word in enumerate(WORDS):
        engine.add(number, request(word, 0, 2, 0, 2))
    place(engine, 0, 0, 1, 2)
    correlate(engine, 0, 1, 3)
    engine.add(9, request("quake", 50, 52, 0, 2))
    assert sorted(len(cluster.members) for cluster in engine.clusters.values()) == [1, 1, 1, 2]
    assert engine.moved == 0


def test_where_all_ties_are_to_other_workers_a_cluster_is_dissolved_across_them():
    engine = DRtCluster(workers=4, most_clusters=4)
    for number, word in enumerate(WORDS):
        engine.add(number, request(word, 0, 2, 0, 2))
    place(engine, 0, 1, 2, 3)
    correlate(engine, 0, 2, 3)
    engine.add(9, request("quake", 50, 52, 0, 2))
    merged = next(cluster for cluster in engine.clusters.values() if len(cluster.members) == 2)
    assert sorted(held.id for held in merged.members) == [0, 2]
    assert engine.moved == 1
    assert sorted(engine.match(event("fire smoke", 1, 1))) == [0, 2]


def test_load_is_the_size_for_each_event_and_one_for_each_change(engine):
    place(engine, 0, 1, 2, 3)
    engine.match(event("fire", 1, 1))
    engine.match(event("fire flood", 1, 1))
    assert engine.loads() == [3, 2, 1, 1]


def test_an_overloaded_worker_gives_away_what_is_tied_to_others(engine):
    place(engine, 0, 0, 1, 2)
    correlate(engine, 0, 2, 5)
    for word in ("flood", "storm"):
        for _ in range(6):
            engine.match(event(word, 1, 1))
    assert engine.loads() == [13, 6, 7, 0]
    assert engine.balance() == 1
    assert [cluster.worker for cluster in engine.clusters.values()] == [1, 0, 1, 2]
    assert engine.moved == 1


def test_a_balanced_cluster_moves_nothing(engine):
    for word in WORDS:
        engine.match(event(word, 1, 1))
    assert engine.balance() == 0


def test_loads_begin_anew_after_each_check(engine):
    engine.match(event("fire", 1, 1))
    engine.balance()
    assert engine.loads() == [0, 0, 0, 0]
