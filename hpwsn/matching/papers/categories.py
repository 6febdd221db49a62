"""Category matching (CMA), after the paper on sensor virtualisation, section 4.

Conjunctions are sorted by the lower value of their first range, cut into c categories of k = n/c, and each
category is known by its bounds; inside each the same again by the second range, one level for each. c is by
Sturges's rule. An event descends into the categories whose bounds contain its values, and the conjunctions
that are left are tested one after another. Ranges come in alphabetical order of attribute, and conjunctions
whose next range is on different attributes are categorised apart.

Comparing an event with a category's bounds counts as an evaluation, since it is the same work (`bounds` says
how many of them there were). Predicates that are no range of numbers make no level and are tested at the end.
The paper categorises once; here additions wait in a list, asked one by one, until they are an eighth of all.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from hpwsn.matching.language.predicates import Conjunction, Event, Operator, Predicate
from hpwsn.matching.papers.conjunctions import ConjunctionEngine, Held

FEWEST = 64
"""Additions that may always wait."""

SHARE = 8
"""One of so many conjunctions may wait, or be gone, before categories are made anew."""


class Range(NamedTuple):
    """The closed interval that a conjunction asks of one attribute."""

    attribute: str
    low: float
    high: float


class Category(NamedTuple):
    """Conjunctions next to each other by lower value, with the bounds of all."""

    low: float
    high: float
    inside: Level


class Level:
    """Conjunctions that have no further range, and the categories of the others by attribute."""

    __slots__ = ("categories", "left")

    def __init__(self, left: list[Held], categories: dict[str, list[Category]]) -> None:
        self.left = left
        self.categories = categories


def number_of_categories(n: int) -> int:
    """Sturges's rule, 1 + log2 n, rounded up."""
    return 1 + math.ceil(math.log2(n))


def ranges_of(conjunction: Conjunction) -> list[Range]:
    """What a conjunction asks of numbers, one range for each attribute, in alphabetical order."""
    found: dict[str, Range] = {}
    for predicate in conjunction:
        bounds = _bounds(predicate)
        if bounds is not None:
            name = predicate.attribute
            known = found.get(name, Range(name, -math.inf, math.inf))
            found[name] = Range(name, max(known.low, bounds[0]), min(known.high, bounds[1]))
    return [found[name] for name in sorted(found)]


def _bounds(predicate: Predicate) -> tuple[float, float] | None:
    numbers = [operand for operand in predicate.operands if type(operand) is float and operand == operand]
    if predicate.negated or not numbers or len(numbers) < len(predicate.operands):
        return None
    match predicate.operator:
        case Operator.LT | Operator.LE:
            return (-math.inf, numbers[0])
        case Operator.GT | Operator.GE:
            return (numbers[0], math.inf)
        case Operator.EQ | Operator.IN:
            return (min(numbers), max(numbers))
        case Operator.BETWEEN:
            return (numbers[0], numbers[1])
        case _:
            return None


def categorise(conjunctions: list[Held], level: int = 0) -> Level:
    """The categories of one level and of all below it."""
    left: list[Held] = []
    others: defaultdict[str, list[Held]] = defaultdict(list)
    for held in conjunctions:
        if level == len(held.place) or len(conjunctions) == 1:
            left.append(held)
        else:
            others[held.place[level].attribute].append(held)
    return Level(left, {name: _cut(group, level) for name, group in others.items()})


def _cut(group: list[Held], level: int) -> list[Category]:
    group.sort(key=lambda held: held.place[level].low)
    size = math.ceil(len(group) / number_of_categories(len(group)))
    parts = [group[first : first + size] for first in range(0, len(group), size)]
    return [
        Category(
            part[0].place[level].low,
            max(held.place[level].high for held in part),
            categorise(part, level + 1),
        )
        for part in parts
    ]


class CategoryEngine(ConjunctionEngine):
    """Conjunctions in categories of categories."""

    def __init__(self) -> None:
        super().__init__()
        self.bounds = 0
        self._held: dict[Held, None] = {}
        self._waiting: dict[Held, None] = {}
        self._gone = 0
        self._top = Level([], {})

    def _insert(self, held: Held) -> None:
        held.place = ranges_of(held.conjunction)
        self._held[held] = self._waiting[held] = None

    def _delete(self, held: Held) -> None:
        del self._held[held]
        if held in self._waiting:
            del self._waiting[held]
        else:
            self._gone += 1

    def _find(self, event: Event) -> list[Held]:
        changes = max(len(self._waiting), self._gone)
        if changes > max(FEWEST, len(self._held) // SHARE):
            self._top = categorise(list(self._held))
            self._waiting.clear()
            self._gone = 0
        found = [held for held in self._waiting if self._holds(held.conjunction, event)]
        left = (held for held in self._descend(event) if held in self._held)
        found.extend(held for held in left if self._holds(held.conjunction, event))
        return found

    def _descend(self, event: Event) -> Iterator[Held]:
        """The conjunctions of all categories at the last level that contain the event."""
        levels = [self._top]
        while levels:
            level = levels.pop()
            yield from level.left
            for name, categories in level.categories.items():
                value = event.get(name)
                values = value if isinstance(value, tuple) else (value,)
                numbers = [one for one in values if type(one) is float]
                if numbers:
                    levels.extend(self._containing(categories, numbers))

    def _containing(self, categories: list[Category], values: list[float]) -> Iterator[Level]:
        greatest = max(values)
        for category in categories:
            self.bounds += 1
            self.evaluations += 1
            if category.low > greatest:
                return
            if any(category.low <= value <= category.high for value in values):
                yield category.inside
