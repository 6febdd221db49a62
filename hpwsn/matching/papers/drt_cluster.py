"""DRt-Cluster: placement of Rt-Cluster's clusters on several workers.

Follows section 3 of the paper on spatio-textual streams. Pure: workers are numbers. `moved` counts
subscriptions that would move between workers, `merged` those that merges rewrote. cs(c) is the correlation of
a cluster with clusters on its worker, cd(c) with clusters on others.

- Merge: the cluster with the largest cs/cd merges on its own worker. If that ratio is below `merge`, the
  cluster with the smallest ratio is dissolved instead, and each subscription goes to the cluster that it was
  most often matched together with.
- Balance: every λ events, a worker with at least 2/m of the total load gives away clusters until its load is
  below that. Those with the largest (cd − cs)/size go first, each to the worker it is most correlated with.

The paper puts a new cluster on the worker of the most similar one. Without a similar one, it goes here to the
worker with the fewest clusters. A worker keeps its last cluster. A cluster goes to a worker that it does not
overload, if there is one, since otherwise the overload would only move.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

from hpwsn.matching.language.predicates import Event
from hpwsn.matching.papers.clusters import Cluster
from hpwsn.matching.papers.conjunctions import StoredConjunction
from hpwsn.matching.papers.rt_cluster import RtCluster


class DRtCluster(RtCluster):
    """Clusters on m workers."""

    def __init__(
        self,
        *arguments: Any,
        workers: int = 4,
        merge: float = 1.0,
        balance_every: int = 50_000,
        between: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self.workers = workers
        self.moved = 0
        self.merged = 0
        self._merge_threshold = merge
        self._balance_every = balance_every
        self._between = between
        self._events = 0
        self._together: dict[StoredConjunction, Counter[int]] = {}

    def same(self, cluster: Cluster) -> int:
        """Return cs: the correlation with the other clusters of its worker."""
        row = self.correlations.of(cluster.number)
        return sum(n for number, n in row.items() if self.clusters[number].worker == cluster.worker)

    def different(self, cluster: Cluster) -> int:
        """Return cd: the correlation with clusters of other workers."""
        return sum(self.correlations.of(cluster.number).values()) - self.same(cluster)

    def merge_judgement(self, cluster: Cluster) -> float:
        """Return MergeJudgePara, cs/cd: infinite if only cd is 0, and 0 if both are."""
        same, different = self.same(cluster), self.different(cluster)
        if different:
            return same / different
        return math.inf if same else 0.0

    def _worker_for(self, best: Cluster | None, similarity: float) -> int:
        if best is not None and similarity > 0:
            return best.worker
        counts = Counter(cluster.worker for cluster in self.clusters.values())
        return min(range(self.workers), key=lambda worker: counts[worker])

    def _merge(self) -> None:
        clusters = [c for c in self.clusters.values() if self.correlations.of(c.number)]
        if not clusters:
            return
        best = max(clusters, key=self.merge_judgement)
        if self.merge_judgement(best) >= self._merge_threshold or not self._between:
            self._merge_on_worker(best)
        else:
            self._dissolve(min(clusters, key=self.merge_judgement))

    def _merge_on_worker(self, cluster: Cluster) -> None:
        others = [c for c in self.clusters.values() if c.worker == cluster.worker and c is not cluster]
        if not others:
            super()._merge()
            return
        closest = max(others, key=lambda c: self.correlations.between(cluster.number, c.number))
        self.merge(cluster, closest)

    def merge(self, kept: Cluster, gone: Cluster) -> None:
        """Merge the second cluster into the first; between workers its subscriptions move."""
        self.merged += len(gone.members)
        if kept.worker != gone.worker:
            self.moved += len(gone.members)
        super().merge(kept, gone)

    def _dissolve(self, gone: Cluster) -> None:
        closest = max(
            (c for c in self.clusters.values() if c is not gone),
            key=lambda c: self.correlations.between(gone.number, c.number),
        )
        self.merged += len(gone.members)
        for stored in list(gone.members):
            target = self._closest_to(stored, gone) or closest
            self.moved += target.worker != gone.worker
            self._attach(target, stored, self._detach(gone, stored))
        self.correlations.dropped(gone.number)
        del self.clusters[gone.number]

    def _closest_to(self, stored: StoredConjunction, gone: Cluster) -> Cluster | None:
        """Return the cluster that the subscription was most often matched together with."""
        counts = self._together.get(stored, Counter())
        alive = [(n, -number) for number, n in counts.items() if number in self.clusters]
        alive = [(n, number) for n, number in alive if -number != gone.number]
        return self.clusters[-max(alive)[1]] if alive else None

    def _correlate(self, matched: Iterable[StoredConjunction]) -> None:
        stored = list(matched)
        super()._correlate(stored)
        numbers = {one.place.number for one in stored}
        if len(numbers) > 1:
            for one in stored:
                self._together.setdefault(one, Counter()).update(numbers - {one.place.number})

    def _delete(self, stored: StoredConjunction) -> None:
        self._together.pop(stored, None)
        super()._delete(stored)

    def _find(self, event: Event) -> list[StoredConjunction]:
        found = super()._find(event)
        self._events += 1
        if self._events % self._balance_every == 0:
            self.balance()
        return found

    def loads(self) -> list[int]:
        """Return the load of each worker since the last balancing."""
        totals = [0] * self.workers
        for cluster in self.clusters.values():
            totals[cluster.worker] += cluster.load
        return totals

    def balance(self) -> int:
        """Move clusters away from overloaded workers; return how many were moved."""
        moves = sum(self._relieve(worker) for worker in range(self.workers))
        for cluster in self.clusters.values():
            cluster.load = 0
        return moves

    def _relieve(self, worker: int) -> int:
        mine = [c for c in self.clusters.values() if c.worker == worker]
        mine.sort(key=lambda c: (self.different(c) - self.same(c)) / len(c.members), reverse=True)
        moves = 0
        while self._is_overloaded(worker) and moves < len(mine) - 1:
            cluster = mine[moves]
            cluster.worker = self._receiver_of(cluster)
            self.moved += len(cluster.members)
            moves += 1
        return moves

    def _is_overloaded(self, worker: int) -> bool:
        loads = self.loads()
        return loads[worker] > 0 and loads[worker] >= 2 / self.workers * sum(loads)

    def _receiver_of(self, cluster: Cluster) -> int:
        """Return the worker for a cluster: not overloaded by it, most correlated, least loaded."""
        ties, loads = Counter[int](), self.loads()
        for number, count in self.correlations.of(cluster.number).items():
            ties[self.clusters[number].worker] += count
        limit = 2 / self.workers * sum(loads)
        others = [worker for worker in range(self.workers) if worker != cluster.worker]
        return max(others, key=lambda w: (loads[w] + cluster.load < limit, ties[w], -loads[w]))
