"""Category matching (CMA), after section 4 of the paper on sensor virtualisation.

Conjunctions are sorted by the lower bound of their first range and cut into c categories of k = n/c; c
follows Sturges's rule. Each category has the bounds of its conjunctions, and is divided again by the second
range, one level per range. An event descends into the categories whose bounds contain its values, and the
conjunctions that remain are evaluated one by one. Ranges are ordered alphabetically by attribute.
Conjunctions whose next range is on different attributes are divided separately.

A comparison with a category's bounds counts as an evaluation, since it is the same work; `bounds` counts
these. Predicates that are not ranges of numbers do not form a level and are evaluated at the end. The paper
builds the categories once. Here additions are evaluated one by one until they are an eighth of all
conjunctions, and then the categories are rebuilt.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from hpwsn.matching.language.predicates import Conjunction, Event, Operator, Predicate
from hpwsn.matching.papers.conjunctions import ConjunctionEngine, StoredConjunction

MIN_CHANGES = 64
"""Changes that never cause a rebuild."""

REBUILD_FRACTION = 8
"""The categories are rebuilt after changes to 1/N of all conjunctions."""


class Range(NamedTuple):
    """The closed interval of one attribute in a conjunction."""

    attribute: str
    low: float
    high: float


class Category(NamedTuple):
    """Conjunctions with neighbouring lower bounds, and the bounds of all."""

    low: float
    high: float
    inside: Level


class Level:
    """Conjunctions without a further range, and the categories of the others by attribute."""

    __slots__ = ("categories", "left")

    def __init__(self, left: list[StoredConjunction], categories: dict[str, list[Category]]) -> None:
        self.left = left
        self.categories = categories


def number_of_categories(n: int) -> int:
    """Return Sturges's rule, 1 + log2 n, rounded up."""
    return 1 + math.ceil(math.log2(n))


def ranges_of(conjunction: Conjunction) -> list[Range]:
    """Return the numeric ranges of a conjunction, one per attribute, in alphabetical order."""
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


def categorise(conjunctions: list[StoredConjunction], level: int = 0) -> Level:
    """Return the categories of this level and of all levels below."""
    left: list[StoredConjunction] = []
    others: defaultdict[str, list[StoredConjunction]] = defaultdict(list)
    for stored in conjunctions:
        if level == len(stored.place) or len(conjunctions) == 1:
            left.append(stored)
        else:
            others[stored.place[level].attribute].append(stored)
    return Level(left, {name: _cut(group, level) for name, group in others.items()})


def _cut(group: list[StoredConjunction], level: int) -> list[Category]:
    group.sort(key=lambda stored: stored.place[level].low)
    size = math.ceil(len(group) / number_of_categories(len(group)))
    parts = [group[first : first + size] for first in range(0, len(group), size)]
    return [
        Category(
            part[0].place[level].low,
            max(stored.place[level].high for stored in part),
            categorise(part, level + 1),
        )
        for part in parts
    ]


class CategoryEngine(ConjunctionEngine):
    """Conjunctions in nested categories."""

    def __init__(self) -> None:
        super().__init__()
        self.bounds = 0
        self._stored: dict[StoredConjunction, None] = {}
        self._pending: dict[StoredConjunction, None] = {}
        self._removed = 0
        self._top = Level([], {})

    def _insert(self, stored: StoredConjunction) -> None:
        stored.place = ranges_of(stored.conjunction)
        self._stored[stored] = self._pending[stored] = None

    def _delete(self, stored: StoredConjunction) -> None:
        del self._stored[stored]
        if stored in self._pending:
            del self._pending[stored]
        else:
            self._removed += 1

    def _find(self, event: Event) -> list[StoredConjunction]:
        changes = max(len(self._pending), self._removed)
        if changes > max(MIN_CHANGES, len(self._stored) // REBUILD_FRACTION):
            self._top = categorise(list(self._stored))
            self._pending.clear()
            self._removed = 0
        found = [stored for stored in self._pending if self._holds(stored.conjunction, event)]
        left = (stored for stored in self._descend(event) if stored in self._stored)
        found.extend(stored for stored in left if self._holds(stored.conjunction, event))
        return found

    def _descend(self, event: Event) -> Iterator[StoredConjunction]:
        """Return the conjunctions of all innermost categories that contain the event."""
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
