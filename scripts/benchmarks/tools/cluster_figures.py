"""Figures 4 to 7 of the paper on spatio-textual streams: clusters visited, data moved, throughput, balance.

The paper's 100,000 points of interest are made up here: towns, and categories of places that share words.
Subscriptions are one for a hundred events, each from a random event: some of its keywords, and a rectangle
around it. CMaxNumTh, which the paper does not give, is 64.
"""

import random
from collections.abc import Sequence

from benchmarks.frame import Options, Row, progress
from benchmarks.tools.contest import contest, rows_of
from hpwsn.matching.engine.default_engine import DefaultEngine, fast_kernel
from hpwsn.matching.language.predicates import Disjunction, Event, Operator, Predicate
from hpwsn.matching.language.reference_engine import Engine, NaiveEngine
from hpwsn.matching.papers.clusters import Cluster
from hpwsn.matching.papers.drt_cluster import DRtCluster
from hpwsn.matching.papers.kd_tree import KdTreeEngine
from hpwsn.matching.papers.rt_cluster import RtCluster

Place = tuple[float, float, tuple[str, ...]]
WORKERS = 4


def cluster_figures(options: Options) -> list[tuple[Row, ...]]:
    """All four figures."""
    count, most = options.sized(100_000, 10_000), options.sized(64, 16)
    chance = random.Random(46)
    places = points_of_interest(chance, count)
    requests = [_subscription(chance, chance.choice(places)) for _ in range(count // 100)]
    events = [_event(place) for place in places]
    return [
        *_visited(requests, events, most),
        *_moved(requests, events[:20_000], most),
        *_throughput(requests, events[: options.sized(300, 50)], most, options),
    ]


def points_of_interest(chance: random.Random, count: int) -> list[Place]:
    """Places in towns, with the words of their category and some of their own."""
    towns = [(chance.uniform(-6, 2), chance.uniform(50, 58)) for _ in range(40)]
    categories = [[f"c{n}w{m}" for m in range(chance.randint(3, 6))] for n in range(50)]
    vocabulary = [f"v{n}" for n in range(2_000)]
    popularity = [1 / rank for rank in range(1, 2_001)]
    places = []
    for _ in range(count):
        x, y = chance.choice(towns)
        words = chance.choice(categories)
        own = chance.choices(vocabulary, popularity, k=chance.randint(1, 3))
        chosen = tuple(dict.fromkeys([*chance.sample(words, chance.randint(1, len(words))), *own]))
        places.append((chance.gauss(x, 0.3), chance.gauss(y, 0.3), chosen))
    return places


def _event(place: Place) -> Event:
    return {"longitude": place[0], "latitude": place[1], "keywords": place[2]}


def _subscription(chance: random.Random, place: Place) -> Disjunction:
    x, y, words = place
    width, height = chance.uniform(0.1, 2.0), chance.uniform(0.1, 2.0)
    chosen = tuple(chance.sample(words, chance.randint(1, min(3, len(words)))))
    return (
        (
            Predicate("keywords", Operator.HAS, chosen),
            Predicate("longitude", Operator.BETWEEN, (x - width, x + width)),
            Predicate("latitude", Operator.BETWEEN, (y - height, y + height)),
        ),
    )


def _visited(requests: Sequence[Disjunction], events: Sequence[Event], most: int) -> list[tuple[Row, ...]]:
    """Clusters that an event is led to, while subscriptions come and when all are there."""
    groups: dict[str, list[Row]] = {"training": [], "trained": []}
    variants = {"Sim-NonFre": (False, False), "Sim-Fre": (True, False), "Sim-Fre-Co": (True, True)}
    for name, (frequency, correlation) in variants.items():
        progress(f"figure 4, {name}")
        engine = RtCluster(most_clusters=most, by_frequency=frequency, by_correlation=correlation)
        _train(engine, requests, events)
        groups["training"].append(_visits(engine, "training", name, len(events)))
        engine.visited = 0
        engine.match_batch(events[::10])
        groups["trained"].append(_visits(engine, "trained", name, len(events[::10])))
    return [tuple(rows) for rows in groups.values()]


def _visits(engine: RtCluster, stage: str, name: str, events: int) -> Row:
    note = f"{len(engine.clusters)} clusters"
    return Row(f"clusters 4, visited · {stage} · {name}", engine.visited / events, note)


def _train(engine: Engine, requests: Sequence[Disjunction], events: Sequence[Event]) -> None:
    """Events and subscriptions together, evenly mixed."""
    every = len(events) // len(requests)
    for number, event in enumerate(events):
        if number % every == 0 and number // every < len(requests):
            engine.add(number // every, requests[number // every])
        engine.match(event)


def _moved(requests: Sequence[Disjunction], events: Sequence[Event], most: int) -> list[tuple[Row, ...]]:
    """Subscriptions that merging and balancing send between workers, and the heaviest worker's share."""
    merged, shares = [], []
    for name, between in (("InNode", False), ("InAndBetNode", True)):
        progress(f"figures 5 and 7, {name}")
        engine = _Counted(
            workers=WORKERS, most_clusters=most, between=between, balance_every=len(events) * 10
        )
        _train(engine, requests, events)
        note = f"{engine.moved:,} to another worker; {engine.merges} merges, {engine.dissolved} dissolved"
        merged.append(Row(f"clusters 5, subscriptions merged · all · {name}", engine.merged, note))
        if between:
            shares.append(_heaviest(engine, "before"))
            engine.balance()
            engine.match_batch(events)
            shares.append(_heaviest(engine, "after"))
    return [tuple(merged), tuple(shares)]


class _Counted(DRtCluster):
    """Counts how often clusters merge and how often one is dissolved."""

    merges = dissolved = 0

    def merge(self, kept: Cluster, gone: Cluster) -> None:
        self.merges += 1
        super().merge(kept, gone)

    def _dissolve(self, gone: Cluster) -> None:
        self.dissolved += 1
        super()._dissolve(gone)


def _heaviest(engine: DRtCluster, stage: str) -> Row:
    """What of the load lies on one worker, and why: what of it lies in one cluster, which moves whole."""
    loads, clusters = engine.loads(), list(engine.clusters.values())
    first = max(clusters, key=lambda cluster: cluster.load)
    members = sum(len(cluster.members) for cluster in clusters)
    note = (
        f"one cluster: {100 * first.load / sum(loads):.0f} %, {len(first.members)} of {members} subscriptions"
    )
    return Row(
        f"clusters 7, % of load on the busiest of 4 workers · balancing · {stage}",
        100 * max(loads) / sum(loads),
        note,
    )


def _throughput(
    requests: Sequence[Disjunction], events: Sequence[Event], most: int, options: Options
) -> list[tuple[Row, ...]]:
    """Rates, and what the two indexes look at for an event before they evaluate anything."""
    progress("figure 6")
    clusters, tree = RtCluster(most_clusters=most), KdTreeEngine()
    engines: dict[str, Engine] = {
        "naive": NaiveEngine(),
        "kd-tree": tree,
        "Rt-Cluster": clusters,
        "HPwsn": DefaultEngine(fast_kernel()),
    }
    x = f"subscriptions {len(requests)}"
    rates = rows_of("clusters 6, events/s", x, contest(engines, requests, events, options))
    points = [(float(str(event["longitude"])), float(str(event["latitude"]))) for event in events]
    looked = {
        "kd-tree": sum(tree.cuts_to(point) for point in points),
        "Rt-Cluster": sum(clusters.clusters_around(*point) for point in points),
    }
    return [
        rates,
        tuple(
            Row(f"clusters 6, cuts or clusters visited · {x} · {name}", count / len(points))
            for name, count in looked.items()
        ),
    ]
