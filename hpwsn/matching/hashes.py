"""The index of rare equalities: conjunctions found by one value that few of them ask for.

Right for `plate = "京B34C91"`: a look-up finds the handful that name the value, and of those that agree in a
second equality the conjunction is asked. One that lists values (`plate in (…)`) is filed under each of them.
A value that many ask for is refused; bitsets are better there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any, cast

from hpwsn.matching.entries import Entry
from hpwsn.matching.predicates import Conjunction, Event, Operator, conjunction_holds
from hpwsn.matching.values import Scalar

ALWAYS = 4
"""Conjunctions of a value that are taken in any case."""

RARE = 128
"""More are taken as long as that leaves the value with less than this part of its attribute's."""

LISTED = 64
"""Values of a list under which a conjunction is filed at most."""

Equality = tuple[str, tuple[Scalar, ...]]
"""An attribute, and the values one of which it must have."""

Filed = list[Any]
"""Conjunctions, each behind the attribute and the value of its second equality, or of its only one again.

In one flat list: what is not looked at again is then not fetched from memory either.
"""


class HashIndex:
    """Conjunctions by attribute and value."""

    def __init__(self) -> None:
        # True and 1.0 are one key here, and are told apart when the conjunction is asked.
        self._by_attribute: dict[str, dict[Scalar, Filed]] = {}
        self._count: Counter[str] = Counter()

    def offer(self, entry: Entry) -> bool:
        """Take the conjunction if one of its equalities is rare enough."""
        equalities = _equalities(entry.conjunction)
        if not equalities:
            return False
        crowd, place = min((self._crowd(equality), place) for place, equality in enumerate(equalities))
        attribute, values = equalities[place]
        if crowd >= ALWAYS and crowd * RARE >= self._count[attribute]:
            return False
        other, wanted = equalities[place - 1]
        by_value = self._by_attribute.setdefault(attribute, {})
        for value in values:
            # A second list is not looked at: the value that led here, once more, is always there.
            second = (other, wanted[0]) if len(wanted) == 1 else (attribute, value)
            by_value.setdefault(value, []).extend((*second, entry))
        entry.place = attribute, values
        self._count[attribute] += 1
        return True

    def _crowd(self, equality: Equality) -> int:
        by_value = self._by_attribute.get(equality[0])
        return max(len(by_value.get(value, ())) for value in equality[1]) // 3 if by_value else 0

    def remove(self, entry: Entry) -> None:
        """Forget a conjunction that was taken."""
        attribute, values = cast(Equality, entry.place)
        by_value = self._by_attribute[attribute]
        for value in values:
            filed = by_value[value]
            last = filed.index(entry)
            del filed[last - 2 : last + 1]
            if not filed:
                del by_value[value]
        self._count[attribute] -= 1
        if not by_value:
            del self._by_attribute[attribute], self._count[attribute]

    def match(self, event: Event, found: list[int]) -> int:
        """Append the ids of conjunctions that hold; how many were asked one by one."""
        asked, by_attribute = 0, self._by_attribute
        for attribute in by_attribute if len(by_attribute) < len(event) else event:
            by_value, value = by_attribute.get(attribute), event.get(attribute)
            if by_value is None:
                continue
            if type(value) is tuple:
                several = dict.fromkeys(entry for one in value for entry in by_value.get(one, ())[2::3])
                asked += _ask(several, event, found)
                continue
            filed = by_value.get(value)  # type: ignore[arg-type]
            if filed is None:
                continue
            parts = iter(filed)
            for other, wanted, entry in zip(parts, parts, parts, strict=False):
                present = event.get(other)
                if present == wanted or type(present) is tuple:
                    asked += 1
                    if _holds(entry.conjunction, event):
                        found.append(entry.id)
        return asked


def _holds(conjunction: Conjunction, event: Event) -> bool:
    """What conjunction_holds says, sooner where all predicates are equalities of numbers and texts."""
    for predicate in conjunction:
        if predicate.operator is not _EQ or predicate.negated:
            return conjunction_holds(conjunction, event)
        present, operand = event.get(predicate.attribute), predicate.operands[0]
        if type(present) is not type(operand):
            return conjunction_holds(conjunction, event)
        if present != operand:
            return False
    return True


def _ask(entries: Collection[Entry], event: Event, found: list[int]) -> int:
    found += [entry.id for entry in entries if conjunction_holds(entry.conjunction, event)]
    return len(entries)


_EQ, _IN = Operator.EQ, Operator.IN


def _equalities(conjunction: Conjunction) -> list[Equality]:
    found: list[Equality] = []
    for predicate in conjunction:
        if (predicate.operator is _EQ or predicate.operator is _IN) and not predicate.negated:
            values = tuple(dict.fromkeys(predicate.operands))
            if len(values) <= LISTED and all(type(v) in (str, float) and v == v for v in values):
                found.append((predicate.attribute, cast(tuple[Scalar, ...], values)))
    return found
