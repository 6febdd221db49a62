"""The index of rare equalities: conjunctions found by one value, or by two, that few others name.

It suits `plate = "B34C91"`: a lookup finds the few conjunctions that name the value. Only those whose second
equality also holds are evaluated. A conjunction with a list (`plate in (…)`) is stored under each value of
the list. Where conjunctions share values, they are stored under a pair of values (`equality_pairs`), as long
as one lookup per attribute pair is cheaper than evaluating the candidates of a single value. Common values
are refused, because bitsets are faster there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, cast

from hpwsn.matching.engine.conjunction_index import Entry
from hpwsn.matching.engine.equality_pairs import MAX_PAIRED, AttributeValue, PairTables, is_common_value
from hpwsn.matching.language.predicates import Conjunction, Event, Operator, conjunction_holds
from hpwsn.matching.language.values import Scalar

MAX_LISTED = 64
"""Maximum number of values in a list that is indexed."""

FIRST_TABLES = 4
"""Pair tables that are created without regard to their cost."""

INSERTS_PER_MOVE = 4
"""Every Nth insert into a pair table also moves one older entry into it."""

MIN_DISTINCT = 64
"""Distinct values that one attribute of a new pair table must have; with fewer, few pairs are rare."""

Equality = tuple[str, tuple[Scalar, ...]]
"""An attribute, and the values of which it must have one."""

Candidates = list[tuple[str, Scalar, Entry]]
"""Conjunctions, each with the attribute and value of its second equality, or of its first if there is only
one."""

ByValue = dict[Scalar, Candidates]


class _ByAttribute(dict[str, ByValue]):
    """Candidates by attribute and value; empty for an unknown attribute."""

    def __missing__(self, attribute: str) -> ByValue:
        return _NOTHING


class EqualityIndex:
    """Conjunctions by attribute and value, or by a pair of attributes and values."""

    def __init__(self) -> None:
        # True and 1.0 are the same key here; evaluating the conjunction tells them apart.
        self._by_attribute = _ByAttribute()
        self._count: Counter[str] = Counter()
        self._pairs = PairTables()
        self._pair_inserts = 0

    def __len__(self) -> int:
        return self._count.total() + self._pairs.count

    def __bool__(self) -> bool:
        return bool(self._by_attribute or self._pairs)

    def offer(self, entry: Entry) -> bool:
        """Add the conjunction if a value or a pair of values is rare enough; return whether it was added."""
        equalities = _equalities(entry.conjunction)
        singles = _single_values(equalities)
        if self._pairs.offer(entry, singles):
            self._pair_inserts += 1
            if not self._pair_inserts % INSERTS_PER_MOVE:
                self._move_older_entry(singles)
            return True
        if not equalities:
            return False
        size, place = min((self._bucket_size(equality), place) for place, equality in enumerate(equalities))
        if self._new_table_pays(size, singles) and self._pairs.add(entry, singles):
            return True
        if is_common_value(size, self._count[equalities[place][0]]):
            return False
        self._insert(entry, equalities[place], equalities[place - 1])
        return True

    def _bucket_size(self, equality: Equality) -> int:
        by_value = self._by_attribute.get(equality[0])
        return max(len(by_value.get(value, ())) for value in equality[1]) if by_value else 0

    def _new_table_pays(self, size: int, singles: list[AttributeValue]) -> bool:
        """Estimate whether a new pair table saves more evaluations than its lookup costs."""
        distinct = max((len(self._by_attribute[attribute]) for attribute, _ in singles), default=0)
        if distinct < MIN_DISTINCT or len(singles) < 2:
            return False
        # With one conjunction per distinct value, a lookup by a single value finds one, and more where
        # values are shared. The more equalities a conjunction has, the more others can use the table.
        worth = self._pairs.count * (1 + size) * (len(singles) - 1)
        earned = FIRST_TABLES + worth // (2 * distinct)
        return len(self._pairs) < min(earned, len(self._by_attribute) * (1 + 2 * size))

    def _insert(self, entry: Entry, equality: Equality, second: Equality) -> None:
        attribute, values = equality
        by_value = self._by_attribute.setdefault(attribute, {})
        other, wanted = second
        for value in values:
            # A list cannot be checked as one value; the first value, checked again, always holds.
            check = (other, wanted[0]) if len(wanted) == 1 else (attribute, value)
            by_value.setdefault(value, []).append((*check, entry))
        entry.place = equality
        self._count[attribute] += 1

    def _move_older_entry(self, singles: list[AttributeValue]) -> None:
        """Move one entry that shares a value with a new pair entry, so that old entries migrate over time."""
        for attribute, value in singles:
            candidates = self._by_attribute[attribute].get(value)
            if candidates is not None:
                entry = candidates[-1][2]
                place = cast(Equality, entry.place)
                if len(place[1]) == 1 and self._pairs.offer(
                    entry, _single_values(_equalities(entry.conjunction))
                ):
                    self._delete(entry, place)
                return

    def remove(self, entry: Entry) -> None:
        """Remove a conjunction."""
        place = cast(tuple[Any, Any], entry.place)
        if type(place[0]) is str:
            self._delete(entry, place)
        else:
            self._pairs.remove(entry)

    def _delete(self, entry: Entry, place: Equality) -> None:
        attribute, values = place
        by_value = self._by_attribute[attribute]
        for value in values:
            candidates = by_value[value]
            del candidates[next(at for at, candidate in enumerate(candidates) if candidate[2] is entry)]
            if not candidates:
                del by_value[value]
        self._count[attribute] -= 1
        if not by_value:
            del self._by_attribute[attribute], self._count[attribute]

    def match(self, event: Event, found: list[int]) -> int:
        """Append the ids of conjunctions that match; return how many were evaluated one by one."""
        if tuple in set(map(type, event.values())):
            return self._match_repeated(event, found)
        evaluated, value_of = 0, event.get
        for candidates in self._candidates(event):
            for other, wanted, entry in candidates:
                if value_of(other) == wanted:
                    evaluated += 1
                    if _holds(entry.conjunction, event):
                        found.append(entry.id)
        if self._pairs:
            for bucket in self._pairs.match(event):
                evaluated += len(bucket)
                found += [entry.id for entry in bucket if _holds(entry.conjunction, event)]
        return evaluated

    def _candidates(self, event: Event) -> Iterable[Candidates]:
        """Look up the event's values, by its attributes or by the indexed ones, whichever are fewer."""
        by_attribute = self._by_attribute
        if len(by_attribute) < len(event):
            return filter(None, map(_GET, by_attribute.values(), map(event.get, by_attribute)))
        return filter(None, map(_GET, map(by_attribute.__getitem__, event), event.values()))

    def _match_repeated(self, event: Event, found: list[int]) -> int:
        entries: dict[Entry, None] = {}
        for attribute in self._by_attribute.keys() & event.keys():
            by_value, value = self._by_attribute[attribute], event[attribute]
            for one in value if type(value) is tuple else (value,):
                entries.update((candidate[2], None) for candidate in by_value.get(one, ()))  # type: ignore[arg-type]
        for bucket in self._pairs.match_repeated(event):
            entries.update(dict.fromkeys(bucket))
        found += [entry.id for entry in entries if conjunction_holds(entry.conjunction, event)]
        return len(entries)


_NOTHING: ByValue = {}
_GET: Any = dict.get


def _holds(conjunction: Conjunction, event: Event) -> bool:
    """Return conjunction_holds, faster where all predicates are equalities of numbers and texts."""
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
            if len(values) <= MAX_LISTED and all(type(v) in (str, float) and v == v for v in values):
                found.append((predicate.attribute, cast(tuple[Scalar, ...], values)))
    return found


def _single_values(equalities: list[Equality]) -> list[AttributeValue]:
    """Return the equalities with one value, one per attribute, sorted by attribute."""
    single = {attribute: values[0] for attribute, values in equalities if len(values) == 1}
    return sorted(single.items(), key=_first)[:MAX_PAIRED]


def _first(pair: AttributeValue) -> str:
    return pair[0]
