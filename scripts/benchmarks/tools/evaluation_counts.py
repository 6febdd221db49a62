"""Predicate evaluations of slow engines over thousands of events, counted by compiled loops.

An engine in Python takes 0.1 s for an event at 50,000 subscriptions, so 5,000 events would take ten minutes
for each engine and point. The loops here do the same comparisons in the same order on arrays and only count
them. tests/unit/benchmarks/test_evaluation_counts.py compares each with its engine's own counter. They take
subscriptions of ranges (`between`) and events that have every attribute once, as category_figures makes them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpwsn.matching.engine.compiled_kernel import compiled
from hpwsn.matching.language.predicates import Disjunction, Event, Predicate
from hpwsn.matching.papers.categories import Level, categorise, ranges_of
from hpwsn.matching.papers.conjunctions import StoredConjunction
from hpwsn.matching.papers.sequential import MAX_REORDER_INTERVAL

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Counts:
    """Evaluations and matching conjunctions (for naive: requests), of all events together."""

    evaluations: int
    matches: int


class Lists:
    """Lists of integers in one array: list i is `items[starts[i]:starts[i + 1]]`."""

    def __init__(self, lists: Iterable[Sequence[int]]) -> None:
        made = [list(each) for each in lists]
        self.starts: Ints = np.array([0, *itertools.accumulate(map(len, made))], np.int64)
        self.items: Ints = np.array([item for each in made for item in each], np.int64)


class Workload:
    """Subscriptions and events as arrays."""

    def __init__(self, requests: Sequence[Disjunction], events: Sequence[Event]) -> None:
        self.attributes = sorted(events[0])
        self.events: Floats = np.array([[event[name] for name in self.attributes] for event in events])
        self._numbers: dict[Predicate, int] = {}
        self.conjunctions = [conjunction for request in requests for conjunction in request]
        # Numbered in the order in which engines get them.
        self.predicates = Lists([self._number(p) for p in c] for c in self.conjunctions)
        ends = [0, *itertools.accumulate(map(len, requests))]
        self.requests: Ints = np.array(ends, np.int64)
        index = {name: number for number, name in enumerate(self.attributes)}
        self.columns: Ints = np.array([index[p.attribute] for p in self._numbers], np.int64)
        self.bounds: Floats = np.array([p.operands for p in self._numbers], np.float64)
        users: list[list[int]] = [[] for _ in self._numbers]
        for number, conjunction in enumerate(self.conjunctions):
            for predicate in dict.fromkeys(conjunction):
                users[self._numbers[predicate]].append(number)
        self.users = Lists(users)

    def _number(self, predicate: Predicate) -> int:
        return self._numbers.setdefault(predicate, len(self._numbers))

    @property
    def distinct(self) -> int:
        """The number of distinct predicates."""
        return len(self._numbers)

    @property
    def _tests(self) -> tuple[Ints, Floats]:
        return self.columns, self.bounds

    def naive(self, events: int) -> Counts:
        """Count as NaiveEngine does, for the first so many events."""
        known = self.predicates.starts, self.predicates.items
        return Counts(*_naive(self.events[:events], *self._tests, *known, self.requests))

    def sequential(self, events: int) -> Counts:
        """Count as SequentialEngine does."""
        users = self.users.starts, self.users.items
        return Counts(*_sequential(self.events[:events], *self._tests, *users, len(self.conjunctions)))

    def sub_order(self, events: int) -> Counts:
        """Count as SubOrderEngine does, which starts without knowledge and reorders as it learns."""
        lists = (self.predicates.starts, self.predicates.items, self.users.starts, self.users.items)
        evaluated: Ints = np.zeros(self.distinct, np.int64)
        true: Ints = np.zeros(self.distinct, np.int64)
        order: Ints = np.arange(len(self.conjunctions))
        total = np.zeros(2, np.int64)
        first = 0
        while first < events:
            # The engine reorders before its 1st, 2nd, 4th, 8th … event.
            last = first + min(first + 1, MAX_REORDER_INTERVAL)
            benefit = _benefits(*lists, evaluated, true)
            order = order[np.argsort(-benefit[order], kind="stable")]
            part = self.events[first : min(last, events)]
            total += _sub_order(part, *self._tests, *lists, order, evaluated, true)
            first = last
        return Counts(*map(int, total))

    def categories(self, events: int) -> tuple[Counts, int]:
        """Count as CategoryEngine does after a rebuild; also the comparisons with bounds among them."""
        stored = [StoredConjunction(number, c) for number, c in enumerate(self.conjunctions)]
        for one in stored:
            one.place = ranges_of(one.conjunction)
        tree = _FlatCategories(categorise(stored), self.attributes)
        known = self.predicates.starts, self.predicates.items
        found = _categories(self.events[:events], *self._tests, *known, *tree.arrays)
        return Counts(*found[:2]), int(found[2])


class _FlatCategories:
    """Nested categories as arrays; level 0 is the outermost."""

    def __init__(self, top: Level, attributes: Sequence[str]) -> None:
        left: list[list[int]] = []
        groups: list[list[int]] = []
        columns: list[int] = []
        members: list[list[int]] = []
        bounds: list[tuple[float, float]] = []
        inside: list[int] = []
        levels = [top]
        for level in levels:
            left.append([stored.id for stored in level.left])
            groups.append([])
            for name, categories in level.categories.items():
                groups[-1].append(len(columns))
                columns.append(attributes.index(name))
                members.append(list(range(len(bounds), len(bounds) + len(categories))))
                for category in categories:
                    bounds.append((category.low, category.high))
                    inside.append(len(levels))
                    levels.append(category.inside)
        lists = [Lists(left), Lists(groups), Lists(members)]
        self.arrays: tuple[Any, ...] = (
            *(array for each in lists for array in (each.starts, each.items)),
            np.array(columns, np.int64),
            np.array(bounds, np.float64),
            np.array(inside, np.int64),
        )


@compiled
def _holds(event: Any, columns: Any, bounds: Any, predicate: int) -> Any:
    value = event[columns[predicate]]
    return bounds[predicate, 0] <= value <= bounds[predicate, 1]


@compiled
def _conjunction(event: Any, columns: Any, bounds: Any, starts: Any, items: Any, number: int) -> Any:
    """Evaluate until one fails; return the evaluations, and whether all hold."""
    count = 0
    for place in range(starts[number], starts[number + 1]):
        count += 1
        if not _holds(event, columns, bounds, items[place]):
            return count, False
    return count, True


@compiled
def _naive(events: Any, columns: Any, bounds: Any, starts: Any, items: Any, requests: Any) -> Any:
    evaluations = matches = 0
    for event in events:
        for request in range(len(requests) - 1):
            for conjunction in range(requests[request], requests[request + 1]):
                count, holds = _conjunction(event, columns, bounds, starts, items, conjunction)
                evaluations += count
                if holds:
                    matches += 1
                    break
    return evaluations, matches


@compiled
def _sequential(events: Any, columns: Any, bounds: Any, starts: Any, users: Any, conjunctions: int) -> Any:
    evaluations = matches = 0
    for event in events:
        dropped = np.zeros(conjunctions, np.bool_)
        gone = 0
        for predicate in range(len(columns)):
            some = False
            for place in range(starts[predicate], starts[predicate + 1]):
                if not dropped[users[place]]:
                    some = True
                    break
            if not some:
                continue
            evaluations += 1
            if _holds(event, columns, bounds, predicate):
                continue
            for place in range(starts[predicate], starts[predicate + 1]):
                gone += not dropped[users[place]]
                dropped[users[place]] = True
        matches += conjunctions - gone
    return evaluations, matches


@compiled
def _benefits(starts: Any, items: Any, user_starts: Any, users: Any, evaluated: Any, true: Any) -> Any:
    benefits = np.zeros(len(starts) - 1)
    for conjunction in range(len(starts) - 1):
        reached, cost, dropped = 1.0, 0.0, 0.0
        for place in range(starts[conjunction], starts[conjunction + 1]):
            predicate = items[place]
            probability = (true[predicate] + 1) / (evaluated[predicate] + 2)
            cost += reached
            others = user_starts[predicate + 1] - user_starts[predicate] - 1
            dropped += reached * (1 - probability) * others
            reached *= probability
        benefits[conjunction] = dropped / cost
    return benefits


@compiled
def _sub_order(
    events: Any,
    columns: Any,
    bounds: Any,
    starts: Any,
    items: Any,
    user_starts: Any,
    users: Any,
    order: Any,
    evaluated: Any,
    true: Any,
) -> Any:
    totals = np.zeros(2, np.int64)
    for event in events:
        results = np.zeros(len(columns), np.int8)
        dropped = np.zeros(len(order), np.bool_)
        for conjunction in order:
            if dropped[conjunction]:
                continue
            holds = True
            for place in range(starts[conjunction], starts[conjunction + 1]):
                predicate = items[place]
                if results[predicate] == 0:
                    totals[0] += 1
                    evaluated[predicate] += 1
                    results[predicate] = 1 if _holds(event, columns, bounds, predicate) else -1
                    true[predicate] += results[predicate] == 1
                if results[predicate] < 0:
                    for user in range(user_starts[predicate], user_starts[predicate + 1]):
                        dropped[users[user]] = True
                    holds = False
                    break
            totals[1] += holds
    return totals


@compiled
def _categories(
    events: Any,
    columns: Any,
    bounds: Any,
    starts: Any,
    items: Any,
    left_starts: Any,
    left: Any,
    group_starts: Any,
    groups: Any,
    member_starts: Any,
    members: Any,
    group_columns: Any,
    category_bounds: Any,
    inside: Any,
) -> Any:
    evaluations = matches = compared = 0
    pending = np.zeros(len(inside) + 1, np.int64)
    for event in events:
        waiting = 1
        pending[0] = 0
        while waiting:
            waiting -= 1
            level = pending[waiting]
            for place in range(left_starts[level], left_starts[level + 1]):
                count, holds = _conjunction(event, columns, bounds, starts, items, left[place])
                evaluations += count
                matches += holds
            for group_place in range(group_starts[level], group_starts[level + 1]):
                group = groups[group_place]
                value = event[group_columns[group]]
                for place in range(member_starts[group], member_starts[group + 1]):
                    category = members[place]
                    compared += 1
                    if category_bounds[category, 0] > value:
                        break
                    if value <= category_bounds[category, 1]:
                        pending[waiting] = inside[category]
                        waiting += 1
    return evaluations + compared, matches, compared
