"""The index of rare equalities: conjunctions found by one value, or two together, that few of them ask for.

Right for `plate = "京B34C91"`: a look-up finds the handful that name the value, and of those that agree in a
second equality the conjunction is asked. One that lists values (`plate in (…)`) is filed under each of them.
Where values are asked for by several, conjunctions are filed under two at once
(hpwsn.matching.engine.equality_pairs), while a look-up for each pair of attributes is less work than to ask
those that a single value finds. A value that many ask for is refused; bitsets are better there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, cast

from hpwsn.matching.engine.conjunction_index import Entry
from hpwsn.matching.engine.equality_pairs import LOOKED_AT, Equal, PairTables, is_crowded
from hpwsn.matching.language.predicates import Conjunction, Event, Operator, conjunction_holds
from hpwsn.matching.language.values import Scalar

LISTED = 64
"""Values of a list under which a conjunction is filed at most."""

FIRST_TABLES = 4
"""Tables of pairs that are made in any case."""

ALONG = 4
"""Of so many conjunctions that a table takes, one takes another along."""

VARIOUS = 64
"""Values of one of its attributes that a new table wants to see; with few values few pairs would be rare."""

Equality = tuple[str, tuple[Scalar, ...]]
"""An attribute, and the values one of which it must have."""

Filed = list[tuple[str, Scalar, Entry]]
"""Conjunctions, each behind the attribute and the value of its second equality, or of its only one again."""

ByValue = dict[Scalar, Filed]


class _ByAttribute(dict[str, ByValue]):
    """What is filed under each attribute; under one that nobody asks for, nothing."""

    def __missing__(self, attribute: str) -> ByValue:
        return _NOTHING


class HashIndex:
    """Conjunctions by attribute and value, or by two of each."""

    def __init__(self) -> None:
        # True and 1.0 are one key here, and are told apart when the conjunction is asked.
        self._by_attribute = _ByAttribute()
        self._count: Counter[str] = Counter()
        self._pairs = PairTables()
        self._offered = 0

    def __len__(self) -> int:
        return self._count.total() + self._pairs.count

    def __bool__(self) -> bool:
        return bool(self._by_attribute or self._pairs)

    def offer(self, entry: Entry) -> bool:
        """Take the conjunction if one of its equalities, or two together, are rare enough."""
        equalities = _equalities(entry.conjunction)
        equals = _equals(equalities)
        if self._pairs.offer(entry, equals):
            self._offered += 1
            if not self._offered % ALONG:
                self._take_along(equals)
            return True
        if not equalities:
            return False
        crowd, place = min((self._crowd(equality), place) for place, equality in enumerate(equalities))
        if self._is_worth_a_table(crowd, equals) and self._pairs.add(entry, equals):
            return True
        if is_crowded(crowd, self._count[equalities[place][0]]):
            return False
        self._file(entry, equalities[place], equalities[place - 1])
        return True

    def _crowd(self, equality: Equality) -> int:
        by_value = self._by_attribute.get(equality[0])
        return max(len(by_value.get(value, ())) for value in equality[1]) if by_value else 0

    def _is_worth_a_table(self, crowd: int, equals: list[Equal]) -> bool:
        """Whether one more look-up for each event is less than what it spares, as far as can be known."""
        various = max((len(self._by_attribute[attribute]) for attribute, _ in equals), default=0)
        if various < VARIOUS or len(equals) < 2:
            return False
        # Of as many conjunctions as there are values an event would find one by a single value, and more
        # where several share a value; the more equalities, the more others the table will serve.
        worth = self._pairs.count * (1 + crowd) * (len(equals) - 1)
        earned = FIRST_TABLES + worth // (2 * various)
        return len(self._pairs) < min(earned, len(self._by_attribute) * (1 + 2 * crowd))

    def _file(self, entry: Entry, equality: Equality, second: Equality) -> None:
        attribute, values = equality
        by_value = self._by_attribute.setdefault(attribute, {})
        other, wanted = second
        for value in values:
            # A second list is not looked at: the value that led here, once more, is always there.
            behind = (other, wanted[0]) if len(wanted) == 1 else (attribute, value)
            by_value.setdefault(value, []).append((*behind, entry))
        entry.place = equality
        self._count[attribute] += 1

    def _take_along(self, equals: list[Equal]) -> None:
        """Move one that shares a value with what a table took: in time all that can be are in tables."""
        for attribute, value in equals:
            filed = self._by_attribute[attribute].get(value)
            if filed is not None:
                entry = filed[-1][2]
                place = cast(Equality, entry.place)
                if len(place[1]) == 1 and self._pairs.offer(entry, _equals(_equalities(entry.conjunction))):
                    self._take_out(entry, place)
                return

    def remove(self, entry: Entry) -> None:
        """Forget a conjunction that was taken."""
        place = cast(tuple[Any, Any], entry.place)
        if type(place[0]) is str:
            self._take_out(entry, place)
        else:
            self._pairs.remove(entry)

    def _take_out(self, entry: Entry, place: Equality) -> None:
        attribute, values = place
        by_value = self._by_attribute[attribute]
        for value in values:
            filed = by_value[value]
            del filed[next(at for at, one in enumerate(filed) if one[2] is entry)]
            if not filed:
                del by_value[value]
        self._count[attribute] -= 1
        if not by_value:
            del self._by_attribute[attribute], self._count[attribute]

    def match(self, event: Event, found: list[int]) -> int:
        """Append the ids of conjunctions that hold; how many were asked one by one."""
        if tuple in set(map(type, event.values())):
            return self._match_repeated(event, found)
        asked, value_of = 0, event.get
        for filed in self._filed(event):
            for other, wanted, entry in filed:
                if value_of(other) == wanted:
                    asked += 1
                    if _holds(entry.conjunction, event):
                        found.append(entry.id)
        if self._pairs:
            for bucket in self._pairs.match(event):
                asked += len(bucket)
                found += [entry.id for entry in bucket if _holds(entry.conjunction, event)]
        return asked

    def _filed(self, event: Event) -> Iterable[Filed]:
        """What the event's values lead to, from its attributes or from those in use, whichever are fewer."""
        by_attribute = self._by_attribute
        if len(by_attribute) < len(event):
            return filter(None, map(_GET, by_attribute.values(), map(event.get, by_attribute)))
        return filter(None, map(_GET, map(by_attribute.__getitem__, event), event.values()))

    def _match_repeated(self, event: Event, found: list[int]) -> int:
        entries: dict[Entry, None] = {}
        for attribute in self._by_attribute.keys() & event.keys():
            by_value, value = self._by_attribute[attribute], event[attribute]
            for one in value if type(value) is tuple else (value,):
                entries.update((filed[2], None) for filed in by_value.get(one, ()))  # type: ignore[arg-type]
        for bucket in self._pairs.match_repeated(event):
            entries.update(dict.fromkeys(bucket))
        found += [entry.id for entry in entries if conjunction_holds(entry.conjunction, event)]
        return len(entries)


_NOTHING: ByValue = {}
_GET: Any = dict.get


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


_EQ, _IN = Operator.EQ, Operator.IN


def _equalities(conjunction: Conjunction) -> list[Equality]:
    found: list[Equality] = []
    for predicate in conjunction:
        if (predicate.operator is _EQ or predicate.operator is _IN) and not predicate.negated:
            values = tuple(dict.fromkeys(predicate.operands))
            if len(values) <= LISTED and all(type(v) in (str, float) and v == v for v in values):
                found.append((predicate.attribute, cast(tuple[Scalar, ...], values)))
    return found


def _equals(equalities: list[Equality]) -> list[Equal]:
    """Those with one value, one for each attribute, in order of attribute."""
    single = {attribute: values[0] for attribute, values in equalities if len(values) == 1}
    return sorted(single.items(), key=_first)[:LOOKED_AT]


def _first(equal: Equal) -> str:
    return equal[0]
