"""Sequential and sub-order: two algorithms for subscriptions that share predicates (Liu and others, 2007).

Both evaluate a distinct predicate at most once for an event, and drop every conjunction that has a false one.
Sequential goes from predicate to predicate, passing over those that only dropped conjunctions have.
Sub-order goes from conjunction to conjunction, in the order that makes the expected number of evaluations
small: of two conjunctions i and j that share p, i first saves what j costs when p fails in i. That comes to
ordering by (conjunctions expected to be dropped) / (expected evaluations). The original compares all pairs in
a complete graph, which 10,000 subscriptions do not allow; here each conjunction has one such figure. How
often a predicate holds is learned from the events, and the order is made anew after 1, 2, 4, 8, … of them.
"""

from __future__ import annotations

from hpwsn.matching.language.predicates import Event, Predicate, predicate_holds
from hpwsn.matching.papers.conjunctions import ConjunctionEngine, Held

LONGEST = 1024
"""Events after which sub-order looks at its order again, at the latest."""


class Shared:
    """A distinct predicate with the conjunctions that have it, and how often it held."""

    __slots__ = ("asked", "predicate", "true", "users")

    def __init__(self, predicate: Predicate) -> None:
        self.predicate = predicate
        self.users: dict[Held, None] = {}
        self.asked = 0
        self.true = 0

    def chance(self) -> float:
        """How likely it holds, one half before any event."""
        return (self.true + 1) / (self.asked + 2)


class SequentialEngine(ConjunctionEngine):
    """One distinct predicate after another, as they came."""

    def __init__(self) -> None:
        super().__init__()
        self._shared: dict[Predicate, Shared] = {}
        self._held: dict[Held, None] = {}

    def _insert(self, held: Held) -> None:
        held.place = []
        for predicate in dict.fromkeys(held.conjunction):
            shared = self._shared.get(predicate)
            if shared is None:
                shared = self._shared[predicate] = Shared(predicate)
            shared.users[held] = None
            held.place.append(shared)
        self._held[held] = None

    def _delete(self, held: Held) -> None:
        del self._held[held]
        for shared in held.place:
            del shared.users[held]
            if not shared.users:
                del self._shared[shared.predicate]

    def _find(self, event: Event) -> list[Held]:
        dropped: set[Held] = set()
        for shared in self._shared.values():
            if dropped.issuperset(shared.users):
                continue
            self.evaluations += 1
            if not predicate_holds(shared.predicate, event):
                dropped.update(shared.users)
        return [held for held in self._held if held not in dropped]


class SubOrderEngine(SequentialEngine):
    """One conjunction after another, those first that are likely to spare others."""

    def __init__(self) -> None:
        super().__init__()
        self._events = 0
        self._next = 1

    def _find(self, event: Event) -> list[Held]:
        self._keep_order()
        results: dict[Shared, bool] = {}
        dropped: set[Held] = set()
        return [
            held
            for held in self._held
            if held not in dropped and self._all_hold(held, event, results, dropped)
        ]

    def _all_hold(self, held: Held, event: Event, results: dict[Shared, bool], dropped: set[Held]) -> bool:
        for shared in held.place:
            result = results.get(shared)
            if result is None:
                result = results[shared] = self._ask(shared, event)
            if not result:
                dropped.update(shared.users)
                return False
        return True

    def _ask(self, shared: Shared, event: Event) -> bool:
        self.evaluations += 1
        result = predicate_holds(shared.predicate, event)
        shared.asked += 1
        shared.true += result
        return result

    def _keep_order(self) -> None:
        self._events += 1
        if self._events >= self._next:
            self._next = self._events + min(self._events, LONGEST)
            self._held = dict.fromkeys(sorted(self._held, key=_benefit, reverse=True))


def _benefit(held: Held) -> float:
    """How many conjunctions an evaluation of this one is expected to drop."""
    reached, cost, dropped = 1.0, 0.0, 0.0
    for shared in held.place:
        chance = shared.chance()
        cost += reached
        dropped += reached * (1 - chance) * (len(shared.users) - 1)
        reached *= chance
    return dropped / cost if cost else 0.0
