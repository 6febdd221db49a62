"""Simplification of one conjunction: as few predicates as possible, or None if it can never match.

All predicates of a conjunction on one attribute apply to the same value. So bounds combine to one range,
lists are reduced to that range, and contradictions are found. The meaning of the conjunction does not change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from hpwsn.matching.language.predicates import OF_ALL_VALUES, Operand, Operator, Predicate, value_holds
from hpwsn.matching.language.values import Instant, Scalar

_OPPOSITES = {
    Operator.LT: Operator.GE,
    Operator.GE: Operator.LT,
    Operator.GT: Operator.LE,
    Operator.LE: Operator.GT,
    Operator.EQ: Operator.NE,
    Operator.NE: Operator.EQ,
}

_LITERAL_PREFIX = re.compile(r"(?:[^%_\\]|\\.)*", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)

_SINGLE = frozenset(_OPPOSITES) | {Operator.LIKE, Operator.HAS, Operator.EXISTS}
"""Operators of predicates that need no simplification if they are alone."""


def is_simple(predicates: Sequence[Predicate]) -> bool:
    """Whether the predicates cannot be simplified: as in most requests, each has its own attribute."""
    return len({p.attribute for p in predicates}) == len(predicates) and all(map(is_simple_alone, predicates))


def is_simple_alone(predicate: Predicate) -> bool:
    """Whether a predicate that is alone on its attribute can match and cannot be simplified."""
    if predicate.operator in _SINGLE:
        return not predicate.operands or predicate.operands[0] == predicate.operands[0]
    if predicate.operator is Operator.BETWEEN and not predicate.negated:
        low, high = predicate.operands
        return type(low) is type(high) is float and low < high
    return False


def simplify(conjunction: Iterable[Predicate]) -> frozenset[Predicate] | None:
    """Return the same conjunction in fewer predicates; None if it can never match."""
    by_attribute: dict[str, list[Predicate]] = {}
    for predicate in conjunction:
        by_attribute.setdefault(predicate.attribute, []).append(predicate)
    result: set[Predicate] = set()
    for predicates in by_attribute.values():
        simple = _simplify_attribute(predicates)
        if simple is None:
            return None
        result |= simple
    return frozenset(result)


def _simplify_attribute(predicates: list[Predicate]) -> set[Predicate] | None:
    positive = [p for p in predicates if not p.negated]
    if not positive:
        return set(predicates)
    if any(p.negated and p.operator is Operator.EXISTS for p in predicates):
        return None
    if any(_negation(p) in predicates for p in positive):
        return None
    compared = [p for p in positive if p.operator not in OF_ALL_VALUES]
    whole = {p for p in predicates if p.operator in OF_ALL_VALUES}
    word_predicates = _merge_words(whole)
    if word_predicates is None:
        return None
    if compared:
        simple = _simplify_compared(compared, [p for p in predicates if p.negated and p not in whole])
        return None if simple is None else simple | word_predicates
    negated = {p for p in predicates if p.negated}
    has = any(not p.negated for p in word_predicates)
    return (
        negated | word_predicates | (set() if has else {p for p in positive if p.operator is Operator.EXISTS})
    )


def _merge_words(whole: set[Predicate]) -> set[Predicate] | None:
    """Return the required words as one predicate, and the excluded words; None if they contradict."""
    has = sorted((p for p in whole if p.operator is Operator.HAS and not p.negated), key=str)
    not_has = {p for p in whole if p.operator is Operator.HAS and p.negated}
    if not has:
        return not_has
    words = tuple(dict.fromkeys(word for p in has for word in p.operands))
    if any(set(p.operands) <= set(words) for p in not_has):
        return None
    return {Predicate(has[0].attribute, Operator.HAS, words)} | not_has


def _negation(predicate: Predicate) -> Predicate:
    return Predicate(predicate.attribute, predicate.operator, predicate.operands, not predicate.negated)


def _simplify_compared(positive: list[Predicate], negated: list[Predicate]) -> set[Predicate] | None:
    """Simplify comparisons of one value, at least one of which determines its type."""
    if not frozenset.intersection(*map(_accepted_types, positive)) or not _prefixes_agree(positive):
        return None
    listed = next((p for p in positive if _lists_values(p)), None)
    if listed is not None:
        return _filter_listed(listed, positive + negated)
    result: set[Predicate] = {p for p in positive if _operand_type(p) is None}
    types = {_operand_type(p) for p in positive} - {None}
    result |= {p for p in negated if _operand_type(p) not in types}
    for type_ in types:
        known = [p for p in positive if _operand_type(p) is type_]
        known += [_as_positive(p) for p in negated if _operand_type(p) is type_]
        simple = _Range.of(known)
        if simple is None:
            return None
        result |= simple
    return result


def _prefixes_agree(predicates: list[Predicate]) -> bool:
    """Whether one text can start with the prefixes of all patterns."""
    starts = [_prefix(str(p.operands[0])) for p in predicates if p.operator is Operator.LIKE]
    longest = max(starts, key=len, default="")
    return all(longest.startswith(start) for start in starts)


def _prefix(pattern: str) -> str:
    """Return the part of a pattern before the first `%` or `_`."""
    plain = _LITERAL_PREFIX.match(pattern)
    return _ESCAPED.sub(r"\1", plain[0]) if plain else ""


def _lists_values(predicate: Predicate) -> bool:
    """Whether the predicate names all values that it holds for; a date has many spellings."""
    return predicate.operator in (Operator.EQ, Operator.IN) and Instant not in map(type, predicate.operands)


def _filter_listed(listed: Predicate, predicates: list[Predicate]) -> set[Predicate] | None:
    """Reduce a list to the values for which all other predicates hold."""
    values = [
        value for value in dict.fromkeys(_typed(listed)) if all(value_holds(p, value[1]) for p in predicates)
    ]
    if not values:
        return None
    operator = Operator.EQ if len(values) == 1 else Operator.IN
    return {Predicate(listed.attribute, operator, tuple(value for _, value in values))}


def _typed(predicate: Predicate) -> list[tuple[type, Scalar]]:
    """Return the operands with their types, since True equals 1.0 in Python."""
    return [(type(operand), cast(Scalar, operand)) for operand in predicate.operands]


def _accepted_types(predicate: Predicate) -> frozenset[type]:
    """Return the types of value for which the predicate can hold."""
    if predicate.operator is Operator.LIKE:
        return frozenset({str})
    return frozenset(str if type(operand) is Instant else type(operand) for operand in predicate.operands)


def _operand_type(predicate: Predicate) -> type | None:
    """Return the common type of the operands; None for patterns and for lists of several types."""
    types = set(map(type, predicate.operands))
    return types.pop() if len(types) == 1 and predicate.operator is not Operator.LIKE else None


def _as_positive(predicate: Predicate) -> Predicate:
    """Return the opposite comparison, equivalent to the negation if the value is comparable."""
    opposite = _OPPOSITES.get(predicate.operator)
    if opposite is None or type(predicate.operands[0]) is bool:
        return predicate
    return Predicate(predicate.attribute, opposite, predicate.operands)


@dataclass(slots=True)
class _Range:
    """The values of one type that some comparisons allow."""

    low: Operand | None = None
    low_open: bool = False
    high: Operand | None = None
    high_open: bool = False

    @staticmethod
    def of(predicates: list[Predicate]) -> set[Predicate] | None:
        """Return the comparisons in as few predicates as possible; None if no value is left."""
        range_ = _Range()
        others = [p for p in predicates if p.negated or not range_.take(p)]
        return range_.join(predicates[0].attribute, others)

    def take(self, predicate: Predicate) -> bool:
        """Narrow the range by a comparison; return False if the comparison is not a bound."""
        match predicate.operator, predicate.operands:
            case (Operator.GT | Operator.GE) as operator, (value,):
                self._raise(value, operator is Operator.GT)
            case (Operator.LT | Operator.LE) as operator, (value,):
                self._lower(value, operator is Operator.LT)
            case Operator.EQ, (value,):
                self._raise(value, False)
                self._lower(value, False)
            case Operator.BETWEEN, (low, high):
                self._raise(low, False)
                self._lower(high, False)
            case _:
                return False
        return True

    def _raise(self, value: Operand, open_: bool) -> None:
        if self.low is None or (value, open_) > (self.low, self.low_open):
            self.low, self.low_open = value, open_

    def _lower(self, value: Operand, open_: bool) -> None:
        if self.high is None or (value, not open_) < (self.high, not self.high_open):
            self.high, self.high_open = value, open_

    def join(self, attribute: str, others: list[Predicate]) -> set[Predicate] | None:
        """Return the range and the other predicates, without those that the range implies."""
        if self._empty():
            return None
        lists = [p for p in others if p.operator is Operator.IN and not p.negated]
        rest = {p for p in others if p not in lists}
        if lists:
            return self._intersect_lists(attribute, lists, rest)
        if self.low is not None and self.low == self.high:
            return _filter_values(attribute, [self.low], rest)
        excluded = {p for p in rest if p.operator is Operator.NE and not p.negated}
        needless = {p for p in excluded if not self._holds(p.operands[0])} if self._bounded() else set()
        return self._predicates(attribute) | (rest - needless)

    def _empty(self) -> bool:
        if self.low is None or self.high is None:
            return False
        return self.low > self.high or (  # type: ignore[operator]
            self.low == self.high and (self.low_open or self.high_open)
        )

    def _bounded(self) -> bool:
        return self.low is not None or self.high is not None

    def _holds(self, value: Operand) -> bool:
        return all(_compare(p, value) for p in self._predicates("value"))

    def _intersect_lists(
        self, attribute: str, lists: list[Predicate], rest: set[Predicate]
    ) -> set[Predicate] | None:
        common = [v for v in dict.fromkeys(lists[0].operands) if all(v in other.operands for other in lists)]
        return _filter_values(attribute, [value for value in common if self._holds(value)], rest)

    def _predicates(self, attribute: str) -> set[Predicate]:
        closed = not (self.low_open or self.high_open)
        if self.low is not None and self.high is not None and closed:
            return {Predicate(attribute, Operator.BETWEEN, (self.low, self.high))}
        result = set()
        if self.low is not None:
            result.add(Predicate(attribute, Operator.GT if self.low_open else Operator.GE, (self.low,)))
        if self.high is not None:
            result.add(Predicate(attribute, Operator.LT if self.high_open else Operator.LE, (self.high,)))
        return result


def _filter_values(attribute: str, values: list[Operand], rest: set[Predicate]) -> set[Predicate] | None:
    """Return the values that satisfy the other predicates, as one predicate; None if there are none."""
    left = tuple(value for value in values if all(_compare(p, value) for p in rest))
    if not left:
        return None
    operator = Operator.EQ if len(left) == 1 else Operator.IN
    return {Predicate(attribute, operator, left)}


def _compare(predicate: Predicate, value: Operand) -> bool:
    """Whether a comparison holds for a value of its operands' type."""
    if type(value) is Instant:
        moved = tuple(operand.seconds for operand in predicate.operands if type(operand) is Instant)
        predicate = Predicate(predicate.attribute, predicate.operator, moved, predicate.negated)
        return value_holds(predicate, value.seconds)
    return value_holds(predicate, value)  # type: ignore[arg-type]
