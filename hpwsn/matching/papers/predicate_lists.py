"""Multi-level predicate lists: the predicates by attribute, operator and operand type.

Follows section 4.2.2 of the paper on stream data services. A list for < <= > >= is sorted by operand; one for
= and != is a hash table. Evaluating a predicate decides others of its list: if x > 34 is true then x > 32 is
true, and if x = 5 is true then every other x = v is false. In a sorted list, two marks separate the decided
operands from the others, so moving a mark decides any number of predicates at once. A predicate is evaluated
at most once per event, and a list reads the event's value once.

Predicates that the paper does not cover (negation, like, in, has, exists, NaN operands) are in no list. They
decide nothing, and are evaluated at most once per event.
"""

from __future__ import annotations

import operator as compare
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import Any

from hpwsn.matching.language.predicates import (
    Event,
    Operand,
    Operator,
    Predicate,
    comparable,
    predicate_holds,
)
from hpwsn.matching.language.values import Scalar

TESTS: dict[Operator, Callable[[Any, Any], bool]] = {
    Operator.LT: compare.lt,
    Operator.LE: compare.le,
    Operator.GT: compare.gt,
    Operator.GE: compare.ge,
    Operator.EQ: compare.eq,
    Operator.NE: compare.ne,
}
LOWER_BOUNDS = (Operator.GT, Operator.GE)
"""Operators that, if they hold for an operand, hold for all smaller operands."""

HASHED = (Operator.EQ, Operator.NE)


class ListedPredicate:
    """A distinct predicate, the users that share it, and its result for the current event."""

    __slots__ = ("event", "list", "operand", "predicate", "result", "uses")

    def __init__(self, predicate: Predicate) -> None:
        self.predicate = predicate
        # Any: a list compares operands of one type only.
        self.operand: Any = predicate.operands[0] if predicate.operands else None
        self.list: PredicateList | None = None
        self.uses: dict[Any, None] = {}
        self.event = 0
        self.result = False


class EvaluationCounter:
    """The number of evaluations of all lists together."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class PredicateList:
    """Predicates of one attribute, operator and operand type, and what the current event decided."""

    __slots__ = ("_counter", "_test", "_values", "attribute", "event", "operator")

    def __init__(self, predicate: Predicate, counter: EvaluationCounter) -> None:
        self.attribute = predicate.attribute
        self.operator = predicate.operator
        self.event = 0
        self._counter = counter
        self._test = TESTS[predicate.operator]
        self._values: tuple[Any, ...] = ()

    def insert(self, listed: ListedPredicate) -> None:
        """Add a predicate."""
        raise NotImplementedError

    def delete(self, listed: ListedPredicate) -> None:
        """Remove a predicate."""
        raise NotImplementedError

    def begin(self, number: int, event: Event, operand: Operand) -> None:
        """Start a new event: read its values of the type of `operand`, and forget all decisions."""
        self.event = number
        value = event.get(self.attribute)
        values = value if isinstance(value, tuple) else () if value is None else (value,)
        typed = (comparable(one, operand) for one in values)
        self._values = tuple(one for one in typed if one is not None)

    def holds(self, operand: Any) -> bool:
        """Whether the predicate with that operand holds; evaluates it if that is undecided."""
        raise NotImplementedError

    def _evaluate(self, operand: Any) -> bool:
        self._counter.count += 1
        values, test = self._values, self._test
        if len(values) == 1:
            return test(values[0], operand)
        return any(test(value, operand) for value in values)

    def true_for(self, value: Scalar) -> list[ListedPredicate]:
        """Return the predicates that hold for a value."""
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError


class SortedList(PredicateList):
    """Predicates of an ordering operator, sorted by operand."""

    __slots__ = ("_false", "_listed", "_lower_bound", "_true")

    def __init__(self, predicate: Predicate, counter: EvaluationCounter) -> None:
        super().__init__(predicate, counter)
        self._listed: list[ListedPredicate] = []
        self._lower_bound = self.operator in LOWER_BOUNDS
        self._true: Any = None
        self._false: Any = None

    def insert(self, listed: ListedPredicate) -> None:
        """Add a predicate."""
        self._listed.insert(bisect_right(self._listed, listed.operand, key=_operand), listed)

    def delete(self, listed: ListedPredicate) -> None:
        """Remove a predicate."""
        del self._listed[self._listed.index(listed, bisect_left(self._listed, listed.operand, key=_operand))]

    def begin(self, number: int, event: Event, operand: Operand) -> None:
        """Start a new event, and reset the marks."""
        super().begin(number, event, operand)
        self._true = self._false = None

    def holds(self, operand: Any) -> bool:
        """Whether the predicate holds, by the marks or by evaluation."""
        true, false = self._true, self._false
        if true is not None and (operand <= true if self._lower_bound else operand >= true):
            return True
        if false is not None and (operand >= false if self._lower_bound else operand <= false):
            return False
        if self._evaluate(operand):
            self._true = operand
            return True
        self._false = operand
        return False

    def true_for(self, value: Scalar) -> list[ListedPredicate]:
        """Return the predicates that hold for a value."""
        typed: Any = comparable(value, self._listed[0].operand)
        if typed is None:
            return []
        inclusive = self.operator in (Operator.GE, Operator.LT)
        side = (bisect_right if inclusive else bisect_left)(self._listed, typed, key=_operand)
        return self._listed[:side] if self._lower_bound else self._listed[side:]

    def __len__(self) -> int:
        return len(self._listed)


class HashList(PredicateList):
    """Predicates of equality, or of inequality, by operand."""

    __slots__ = ("_decided", "_equal", "_listed")

    def __init__(self, predicate: Predicate, counter: EvaluationCounter) -> None:
        super().__init__(predicate, counter)
        self._listed: dict[Any, ListedPredicate] = {}
        self._equal = self.operator is Operator.EQ
        self._decided = False

    def insert(self, listed: ListedPredicate) -> None:
        """Add a predicate."""
        self._listed[listed.operand] = listed

    def delete(self, listed: ListedPredicate) -> None:
        """Remove a predicate."""
        del self._listed[listed.operand]

    def begin(self, number: int, event: Event, operand: Operand) -> None:
        """Start a new event, and forget the decision."""
        super().begin(number, event, operand)
        self._decided = False

    def holds(self, operand: Any) -> bool:
        """Whether the predicate holds; once an operand equals the value, all others are decided."""
        if self._decided:
            return not self._equal
        result = self._evaluate(operand)
        # Not decided for repeated attributes, which have other values, or without a value.
        self._decided = result is self._equal and len(self._values) == 1
        return result

    def true_for(self, value: Scalar) -> list[ListedPredicate]:
        """Return the predicates that hold for a value."""
        typed: Any = comparable(value, next(iter(self._listed)))
        if typed is None:
            return []
        if self._equal:
            return [self._listed[typed]] if typed in self._listed else []
        return [listed for operand, listed in self._listed.items() if operand != typed]

    def __len__(self) -> int:
        return len(self._listed)


def _operand(listed: ListedPredicate) -> Any:
    return listed.operand


Key = tuple[Operator, type[Operand]]


class PredicateLists:
    """All distinct predicates by attribute and operator, with their results for the current event."""

    def __init__(self) -> None:
        self._counter = EvaluationCounter()
        self.unlisted: dict[Predicate, ListedPredicate] = {}
        self._listed: dict[Predicate, ListedPredicate] = {}
        self._lists: dict[str, dict[Key, PredicateList]] = {}
        self._number = 0
        self._event: Event = {}

    @property
    def evaluations(self) -> int:
        """Predicates evaluated since the start."""
        return self._counter.count

    def acquire(self, predicate: Predicate, use: object) -> ListedPredicate:
        """Return the shared predicate, and count one more use."""
        listed = self._listed.get(predicate)
        if listed is None:
            listed = self._listed[predicate] = ListedPredicate(predicate)
            self._insert(listed)
        listed.uses[use] = None
        return listed

    def _insert(self, listed: ListedPredicate) -> None:
        if not _can_be_listed(listed.predicate):
            self.unlisted[listed.predicate] = listed
            return
        operator = listed.predicate.operator
        lists = self._lists.setdefault(listed.predicate.attribute, {})
        key = (operator, type(listed.operand))
        if key not in lists:
            kind = HashList if operator in HASHED else SortedList
            lists[key] = kind(listed.predicate, self._counter)
        listed.list = lists[key]
        listed.list.insert(listed)

    def release(self, listed: ListedPredicate, use: object) -> None:
        """Count one use less; the last release removes the predicate."""
        del listed.uses[use]
        if listed.uses:
            return
        predicate = listed.predicate
        del self._listed[predicate]
        if listed.list is None:
            del self.unlisted[predicate]
            return
        listed.list.delete(listed)
        if not len(listed.list):
            lists = self._lists[predicate.attribute]
            del lists[predicate.operator, type(listed.operand)]
            if not lists:
                del self._lists[predicate.attribute]

    def begin(self, event: Event) -> None:
        """Start the next event, and forget all results."""
        self._number += 1
        self._event = event

    def holds(self, listed: ListedPredicate) -> bool:
        """Whether the predicate holds: a known result, a decision of its list, or an evaluation."""
        number = self._number
        if listed.event == number:
            return listed.result
        listed.event = number
        list_ = listed.list
        if list_ is None:
            self._counter.count += 1
            listed.result = predicate_holds(listed.predicate, self._event)
            return listed.result
        if list_.event != number:
            list_.begin(number, self._event, listed.operand)
        listed.result = list_.holds(listed.operand)
        return listed.result

    def of_attribute(self, name: str) -> Iterator[PredicateList]:
        """Return the lists of an attribute."""
        return iter(self._lists.get(name, {}).values())

    def __len__(self) -> int:
        return len(self._listed)


def _can_be_listed(predicate: Predicate) -> bool:
    if predicate.negated or predicate.operator not in TESTS:
        return False
    operand = predicate.operands[0]
    # NaN and booleans have no order.
    return operand == operand and (type(operand) is not bool or predicate.operator in HASHED)
