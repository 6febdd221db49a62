"""Rt-Cluster's formulas with numbers worked out by hand, and its life of clusters."""

import math

import pytest

from hpwsn.matching.language.predicates import Operator, Predicate
from hpwsn.matching.papers.clusters import Cluster, Rectangle, SpatialSubscription
from hpwsn.matching.papers.conjunctions import StoredConjunction
from hpwsn.matching.papers.correlations import Correlations
from hpwsn.matching.papers.rt_cluster import RtCluster


def spatial(words, west, east, south, north):
    return SpatialSubscription(frozenset(words.split()), Rectangle(west, east, south, north))


def cluster_of(*subscriptions):
    cluster = Cluster(0)
    for number, one in enumerate(subscriptions):
        cluster.add(StoredConjunction(number, ()), one)
    return cluster


def request(words, west, east, south, north):
    return (
        (
            Predicate("keywords", Operator.HAS, tuple(words.split())),
            Predicate("longitude", Operator.BETWEEN, (float(west), float(east))),
            Predicate("latitude", Operator.BETWEEN, (float(south), float(north))),
        ),
    )


def event(words, x, y):
    return {"keywords": tuple(words.split()), "longitude": float(x), "latitude": float(y)}


@pytest.fixture
def pair():
    """fire twice, smoke and park once: four frequencies; a rectangle of 2 by 2."""
    return cluster_of(spatial("fire smoke", 0, 2, 0, 1), spatial("fire park", 0, 1, 0, 2))


def test_key_similarity_is_the_share_of_frequencies(pair):
    assert pair.key_similarity(frozenset({"fire"})) == 2 / 4
    assert pair.key_similarity(frozenset({"fire", "park", "flood"})) == 3 / 4


def test_without_frequencies_each_keyword_counts_as_one(pair):
    assert pair.key_similarity(frozenset({"fire"}), by_frequency=False) == 1 / 3


def test_spatial_similarity_is_growth_for_area(pair):
    assert pair.spatial_similarity(Rectangle(0, 4, 0, 2)) == (8 - 4) / 4
    assert pair.spatial_similarity(Rectangle(1, 2, 1, 2)) == 0


def test_a_cluster_without_area_takes_what_it_contains_and_nothing_else():
    point = cluster_of(spatial("fire", 1, 1, 1, 1))
    assert point.spatial_similarity(Rectangle(1, 1, 1, 1)) == 0
    assert point.spatial_similarity(Rectangle(1, 2, 1, 1)) == math.inf
    assert point.similarity(spatial("fire", 1, 2, 1, 1), 0.5) == 0


def test_similarity_weighs_keywords_against_space(pair):
    subscription = spatial("fire", 0, 4, 0, 2)
    assert pair.similarity(subscription, 0.5) == pytest.approx(0.5 * 0.5 / (0.5 * 2))
    assert pair.similarity(subscription, 0.75) == pytest.approx(0.75 * 0.5 / (0.25 * 2))


def test_removal_shrinks_the_rectangle_and_the_frequencies(pair):
    pair.remove(next(iter(pair.members)))
    assert pair.rectangle == Rectangle(0, 1, 0, 2)
    assert pair.frequencies == {"fire": 1, "park": 1}


def test_correlation_counts_events_that_matched_in_both():
    correlations = Correlations()
    correlations.matched([1, 2, 2])
    correlations.matched([1, 2, 3])
    assert correlations.between(2, 1) == 2
    assert correlations.between(1, 3) == 1
    assert correlations.closest() == (1, 2)


def test_merging_adds_up_correlations():
    correlations = Correlations()
    correlations.matched([1, 2, 3])
    correlations.matched([1, 3])
    correlations.merged(1, 2)
    assert correlations.of(1) == {3: 3}
    assert correlations.of(3) == {1: 3}


def test_what_is_unlike_founds_a_cluster_and_what_is_alike_joins_it():
    engine = RtCluster()
    engine.add(1, request("fire", 0, 2, 0, 2))
    engine.add(2, request("flood", 50, 52, 0, 2))
    engine.add(3, request("fire", 0, 2, 0, 2))
    assert [len(cluster.members) for cluster in engine.clusters.values()] == [2, 1]


def test_the_most_correlated_clusters_merge_when_there_are_too_many():
    engine = RtCluster(most_clusters=2)
    engine.add(1, request("fire", 0, 2, 0, 2))
    engine.add(2, request("smoke", 0, 2, 0, 2))
    assert sorted(engine.match(event("fire smoke", 1, 1))) == [1, 2]
    engine.add(3, request("flood", 50, 52, 0, 2))
    assert [len(cluster.members) for cluster in engine.clusters.values()] == [2, 1]
    assert sorted(engine.match(event("fire smoke", 1, 1))) == [1, 2]


def test_without_correlations_the_most_similar_takes_what_is_too_much():
    engine = RtCluster(most_clusters=1, by_correlation=False)
    engine.add(1, request("fire", 0, 2, 0, 2))
    engine.add(2, request("flood", 50, 52, 0, 2))
    assert len(engine.clusters) == 1
    assert engine.match(event("flood", 51, 1)) == [2]


def test_an_event_visits_only_clusters_of_its_place_and_words():
    engine = RtCluster()
    engine.add(1, request("fire", 0, 2, 0, 2))
    engine.add(2, request("flood", 0, 2, 0, 2))
    engine.add(3, request("fire", 50, 52, 0, 2))
    assert engine.match(event("fire", 1, 1)) == [1]
    assert engine.visited == 1


def test_a_cluster_ends_with_its_last_subscription():
    engine = RtCluster()
    engine.add(1, request("fire", 0, 2, 0, 2))
    engine.remove(1)
    assert not engine.clusters
    assert engine.match(event("fire", 1, 1)) == []


def test_a_weight_that_divides_by_nothing_is_refused():
    with pytest.raises(ValueError, match="alpha is 1"):
        RtCluster(alpha=1)
