"""Multi-level predicate lists: for each attribute, operator and type of operand, the predicates on it.

Follows section 4.2.2 of the paper on stream data services. A list of < <= > >= is sorted by operand, one of
= and != is a hash. Evaluating one predicate settles others of its list: x > 34 true settles x > 32, and where
x = 5 is true every other x = v is false. All that is settled in a sorted list lies outside two marks, so that
moving a mark gives a result to any number of predicates at once. A predicate is evaluated at most once for an
event, on a value that its list has fetched once for all.

What the paper does not know (negations, like, in, has, exists, operands that are NaN) is in no list: it
settles nothing, but is still evaluated at most once.
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
RISING = (Operator.GT, Operator.GE)
"""Operators that hold for all smaller operands where they hold for one."""

HASHED = (Operator.EQ, Operator.NE)


class Listed:
    """A predicate that is in use, once for all conjunctions that have it, with its result for one event."""

    __slots__ = ("event", "list", "operand", "predicate", "result", "uses")

    def __init__(self, predicate: Predicate) -> None:
        self.predicate = predicate
        # Any, since a list holds operands of one type only and compares them with each other.
        self.operand: Any = predicate.operands[0] if predicate.operands else None
        self.list: PredicateList | None = None
        self.uses: dict[Any, None] = {}
        self.event = 0
        self.result = False


class Tally:
    """Evaluations of all lists together."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class PredicateList:
    """Predicates of one attribute, operator and type of operand, with what is settled for one event."""

    __slots__ = ("_tally", "_test", "_values", "attribute", "event", "operator")

    def __init__(self, predicate: Predicate, tally: Tally) -> None:
        self.attribute = predicate.attribute
        self.operator = predicate.operator
        self.event = 0
        self._tally = tally
        self._test = TESTS[predicate.operator]
        self._values: tuple[Any, ...] = ()

    def insert(self, listed: Listed) -> None:
        """Take a predicate."""
        raise NotImplementedError

    def delete(self, listed: Listed) -> None:
        """Forget one."""
        raise NotImplementedError

    def begin(self, number: int, event: Event, operand: Operand) -> None:
        """Fetch what a new event has to compare with operands like this one; nothing is settled."""
        self.event = number
        value = event.get(self.attribute)
        values = value if isinstance(value, tuple) else () if value is None else (value,)
        typed = (comparable(one, operand) for one in values)
        self._values = tuple(one for one in typed if one is not None)

    def holds(self, operand: Any) -> bool:
        """Whether the predicate with that operand holds, by what is settled or by evaluating it."""
        raise NotImplementedError

    def _evaluate(self, operand: Any) -> bool:
        self._tally.count += 1
        values, test = self._values, self._test
        if len(values) == 1:
            return test(values[0], operand)
        return any(test(value, operand) for value in values)

    def true_for(self, value: Scalar) -> list[Listed]:
        """The predicates that hold for a value."""
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError


class SortedList(PredicateList):
    """Predicates of an ordering operator, by operand."""

    __slots__ = ("_false", "_listed", "_rising", "_true")

    def __init__(self, predicate: Predicate, tally: Tally) -> None:
        super().__init__(predicate, tally)
        self._listed: list[Listed] = []
        self._rising = self.operator in RISING
        self._true: Any = None
        self._false: Any = None

    def insert(self, listed: Listed) -> None:
        """Take a predicate."""
        self._listed.insert(bisect_right(self._listed, listed.operand, key=_operand), listed)

    def delete(self, listed: Listed) -> None:
        """Forget one."""
        del self._listed[self._listed.index(listed, bisect_left(self._listed, listed.operand, key=_operand))]

    def begin(self, number: int, event: Event, operand: Operand) -> None:
        """Fetch what a new event has to compare with operands like this one; nothing is settled."""
        super().begin(number, event, operand)
        self._true = self._false = None

    def holds(self, operand: Any) -> bool:
        """Whether the predicate with that operand holds, by the marks or by evaluating it."""
        true, false = self._true, self._false
        if true is not None and (operand <= true if self._rising else operand >= true):
            return True
        if false is not None and (operand >= false if self._rising else operand <= false):
            return False
        if self._evaluate(operand):
            self._true = operand
            return True
        self._false = operand
        return False

    def true_for(self, value: Scalar) -> list[Listed]:
        """The predicates that hold for a value."""
        typed: Any = comparable(value, self._listed[0].operand)
        if typed is None:
            return []
        inclusive = self.operator in (Operator.GE, Operator.LT)
        side = (bisect_right if inclusive else bisect_left)(self._listed, typed, key=_operand)
        return self._listed[:side] if self._rising else self._listed[side:]

    def __len__(self) -> int:
        return len(self._listed)


class HashList(PredicateList):
    """Predicates of equality, or of inequality, by operand."""

    __slots__ = ("_decided", "_equal", "_listed")

    def __init__(self, predicate: Predicate, tally: Tally) -> None:
        super().__init__(predicate, tally)
        self._listed: dict[Any, Listed] = {}
        self._equal = self.operator is Operator.EQ
        self._decided = False

    def insert(self, listed: Listed) -> None:
        """Take a predicate."""
        self._listed[listed.operand] = listed

    def delete(self, listed: Listed) -> None:
        """Forget one."""
        del self._listed[listed.operand]

    def begin(self, number: int, event: Event, operand: Operand) -> None:
        """Fetch what a new event has to compare with operands like this one; nothing is settled."""
        super().begin(number, event, operand)
        self._decided = False

    def holds(self, operand: Any) -> bool:
        """Once one operand is the value, every other predicate has the opposite result."""
        if self._decided:
            return not self._equal
        result = self._evaluate(operand)
        # A repeated attribute has other values besides; and without a value all of them are false.
        self._decided = result is self._equal and len(self._values) == 1
        return result

    def true_for(self, value: Scalar) -> list[Listed]:
        """The predicates that hold for a value."""
        typed: Any = comparable(value, next(iter(self._listed)))
        if typed is None:
            return []
        if self._equal:
            return [self._listed[typed]] if typed in self._listed else []
        return [listed for operand, listed in self._listed.items() if operand != typed]

    def __len__(self) -> int:
        return len(self._listed)


def _operand(listed: Listed) -> Any:
    return listed.operand


Key = tuple[Operator, type[Operand]]


class PredicateLists:
    """All predicates in use, by attribute and then by operator, with what is known of one event."""

    def __init__(self) -> None:
        self._tally = Tally()
        self.unlisted: dict[Predicate, Listed] = {}
        self._listed: dict[Predicate, Listed] = {}
        self._lists: dict[str, dict[Key, PredicateList]] = {}
        self._number = 0
        self._event: Event = {}

    @property
    def evaluations(self) -> int:
        """Predicates evaluated since the start."""
        return self._tally.count

    def take(self, predicate: Predicate, use: object) -> Listed:
        """The predicate as it is listed, for one more use."""
        listed = self._listed.get(predicate)
        if listed is None:
            listed = self._listed[predicate] = Listed(predicate)
            self._file(listed)
        listed.uses[use] = None
        return listed

    def _file(self, listed: Listed) -> None:
        if not _can_be_listed(listed.predicate):
            self.unlisted[listed.predicate] = listed
            return
        operator = listed.predicate.operator
        lists = self._lists.setdefault(listed.predicate.attribute, {})
        key = (operator, type(listed.operand))
        if key not in lists:
            kind = HashList if operator in HASHED else SortedList
            lists[key] = kind(listed.predicate, self._tally)
        listed.list = lists[key]
        listed.list.insert(listed)

    def release(self, listed: Listed, use: object) -> None:
        """One use less; the last one takes the predicate out of its list."""
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
        """Forget what was settled, and take the next event."""
        self._number += 1
        self._event = event

    def holds(self, listed: Listed) -> bool:
        """Whether the predicate holds: known, settled by another of its list, or evaluated."""
        number = self._number
        if listed.event == number:
            return listed.result
        listed.event = number
        list_ = listed.list
        if list_ is None:
            self._tally.count += 1
            listed.result = predicate_holds(listed.predicate, self._event)
            return listed.result
        if list_.event != number:
            list_.begin(number, self._event, listed.operand)
        listed.result = list_.holds(listed.operand)
        return listed.result

    def of_attribute(self, name: str) -> Iterator[PredicateList]:
        """The lists of an attribute."""
        return iter(self._lists.get(name, {}).values())

    def __len__(self) -> int:
        return len(self._listed)


def _can_be_listed(predicate: Predicate) -> bool:
    if predicate.negated or predicate.operator not in TESTS:
        return False
    operand = predicate.operands[0]
    # NaN is in no order, and truth values have none.
    return operand == operand and (type(operand) is not bool or predicate.operator in HASHED)
