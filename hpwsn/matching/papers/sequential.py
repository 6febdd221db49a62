"""Sequential and sub-order: two algorithms for subscriptions that share predicates (Liu and others, 2007).

Both evaluate a distinct predicate at most once per event, and drop every conjunction with a false one.
Sequential iterates over the predicates, and skips those whose conjunctions are all dropped. Sub-order
iterates over the conjunctions, in an order that keeps the expected number of evaluations small. If
conjunctions i and j share a predicate p, evaluating i first saves the cost of j when p fails. So conjunctions
are ordered by expected drops divided by expected evaluations.

Liu's algorithm compares all pairs in a complete graph, which is too slow for 10,000 subscriptions; here each
conjunction has one such ratio. The probability of a predicate is learned from events, and the order is
recomputed after 1, 2, 4, 8, … events.
"""

from __future__ import annotations

from hpwsn.matching.language.predicates import Event, Predicate, predicate_holds
from hpwsn.matching.papers.conjunctions import ConjunctionEngine, StoredConjunction

MAX_REORDER_INTERVAL = 1024
"""Maximum number of events between two computations of the order."""


class SharedPredicate:
    """A distinct predicate, the conjunctions that contain it, and how often it held."""

    __slots__ = ("evaluated", "predicate", "true", "users")

    def __init__(self, predicate: Predicate) -> None:
        self.predicate = predicate
        self.users: dict[StoredConjunction, None] = {}
        self.evaluated = 0
        self.true = 0

    def probability(self) -> float:
        """Return the estimated probability that it holds; 0.5 before any event."""
        return (self.true + 1) / (self.evaluated + 2)


class SequentialEngine(ConjunctionEngine):
    """Evaluates distinct predicates in order of insertion."""

    def __init__(self) -> None:
        super().__init__()
        self._shared: dict[Predicate, SharedPredicate] = {}
        self._stored: dict[StoredConjunction, None] = {}

    def _insert(self, stored: StoredConjunction) -> None:
        stored.place = []
        for predicate in dict.fromkeys(stored.conjunction):
            shared = self._shared.get(predicate)
            if shared is None:
                shared = self._shared[predicate] = SharedPredicate(predicate)
            shared.users[stored] = None
            stored.place.append(shared)
        self._stored[stored] = None

    def _delete(self, stored: StoredConjunction) -> None:
        del self._stored[stored]
        for shared in stored.place:
            del shared.users[stored]
            if not shared.users:
                del self._shared[shared.predicate]

    def _find(self, event: Event) -> list[StoredConjunction]:
        dropped: set[StoredConjunction] = set()
        for shared in self._shared.values():
            if dropped.issuperset(shared.users):
                continue
            self.evaluations += 1
            if not predicate_holds(shared.predicate, event):
                dropped.update(shared.users)
        return [stored for stored in self._stored if stored not in dropped]


class SubOrderEngine(SequentialEngine):
    """Evaluates conjunctions, those first that are likely to drop others."""

    def __init__(self) -> None:
        super().__init__()
        self._events = 0
        self._next = 1

    def _find(self, event: Event) -> list[StoredConjunction]:
        self._reorder_if_due()
        results: dict[SharedPredicate, bool] = {}
        dropped: set[StoredConjunction] = set()
        return [
            stored
            for stored in self._stored
            if stored not in dropped and self._all_hold(stored, event, results, dropped)
        ]

    def _all_hold(
        self,
        stored: StoredConjunction,
        event: Event,
        results: dict[SharedPredicate, bool],
        dropped: set[StoredConjunction],
    ) -> bool:
        for shared in stored.place:
            result = results.get(shared)
            if result is None:
                result = results[shared] = self._evaluate(shared, event)
            if not result:
                dropped.update(shared.users)
                return False
        return True

    def _evaluate(self, shared: SharedPredicate, event: Event) -> bool:
        self.evaluations += 1
        result = predicate_holds(shared.predicate, event)
        shared.evaluated += 1
        shared.true += result
        return result

    def _reorder_if_due(self) -> None:
        self._events += 1
        if self._events >= self._next:
            self._next = self._events + min(self._events, MAX_REORDER_INTERVAL)
            self._stored = dict.fromkeys(sorted(self._stored, key=_benefit, reverse=True))


def _benefit(stored: StoredConjunction) -> float:
    """Return the expected number of dropped conjunctions per evaluation."""
    reached, cost, dropped = 1.0, 0.0, 0.0
    for shared in stored.place:
        probability = shared.probability()
        cost += reached
        dropped += reached * (1 - probability) * (len(shared.users) - 1)
        reached *= probability
    return dropped / cost if cost else 0.0
