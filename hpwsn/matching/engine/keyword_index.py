"""The index of words and places: `has(keywords, "fire") and within(longitude, latitude, …)`.

A conjunction is filed in the cells of a grid that its rectangle touches, if it has two ranges of numbers, and
there under the rarest of its words. An event looks up its own words in its own cell of each size in use, and
what it finds is compared (hpwsn.matching.engine.word_cells).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import cycle
from operator import attrgetter
from typing import cast

from hpwsn.matching.engine.cells import Rectangle, Word
from hpwsn.matching.engine.conjunction_index import Entry
from hpwsn.matching.engine.word_cells import FIRST_BIT, SIGNATURE, Filed, Shelf
from hpwsn.matching.language.predicates import Event, Operator, Predicate, conjunction_holds
from hpwsn.matching.language.values import Scalar, words

_HAS, _BETWEEN = Operator.HAS, Operator.BETWEEN
COMMON = 64
"""Conjunctions of a word with more than words and a place that may be asked one by one."""

_uses = attrgetter("uses")

Axes = tuple[str | None, str | None]


class KeywordIndex:
    """Conjunctions that ask for words."""

    def __init__(self) -> None:
        self._by_attribute: dict[str, dict[Axes, Shelf]] = {}
        self._words: dict[str, Word] = {}
        self._bits = cycle([FIRST_BIT << number for number in range(SIGNATURE)])

    def __bool__(self) -> bool:
        return bool(self._by_attribute)

    @property
    def capacity(self) -> int:
        """For how many conjunctions there is memory."""
        return sum(shelf.capacity for shelves in self._by_attribute.values() for shelf in shelves.values())

    def offer(self, entry: Entry) -> bool:
        """Take the conjunction if it asks for words."""
        has = [p for p in entry.conjunction if p.operator is _HAS and not p.negated]
        if not has or not has[0].operands:
            return False
        rectangle = _rectangle(entry.conjunction)
        if not rectangle and len(entry.conjunction) > 1 and self._least_frequency(has[0]) >= COMMON:
            # Each would have to be asked for its other predicates; rows ask only where these can hold.
            return False
        axes = (rectangle[0].attribute, rectangle[1].attribute) if rectangle else (None, None)
        shelves = self._by_attribute.setdefault(has[0].attribute, {})
        shelf = shelves.get(axes)
        if shelf is None:
            shelf = shelves[axes] = Shelf(has[0].attribute, *axes)
        self._file(entry, shelf, has[0], rectangle)
        return True

    def _least_frequency(self, has: Predicate) -> int:
        words = map(self._words.get, cast(tuple[str, ...], has.operands))
        return min(word.uses if word else 0 for word in words)

    def _file(self, entry: Entry, shelf: Shelf, has: Predicate, ranges: tuple[Predicate, ...]) -> None:
        wanted = {self._word(text) for text in cast(tuple[str, ...], has.operands)}
        for word in wanted:
            word.uses += 1
        rarest = min(wanted, key=_uses)
        wanted.remove(rarest)
        plain = len(entry.conjunction) == 1 + len(ranges)
        rectangle = cast(Rectangle, ranges[0].operands + ranges[1].operands) if ranges else None
        entry.place = filed = Filed(entry, rarest, tuple(wanted), plain, shelf)
        shelf.add(filed, rectangle)

    def _word(self, text: str) -> Word:
        word = self._words.get(text)
        if word is None:
            word = self._words[text] = Word(text, next(self._bits))
        return word

    def remove(self, entry: Entry) -> None:
        """Forget a conjunction."""
        filed = cast(Filed, entry.place)
        shelf = filed.shelf
        shelf.remove(filed)
        if not len(shelf):
            del self._by_attribute[shelf.attribute][shelf.x, shelf.y]
            if not self._by_attribute[shelf.attribute]:
                del self._by_attribute[shelf.attribute]
        for word in (filed.word, *filed.others):
            word.uses -= 1
            if not word.uses:
                del self._words[word.text]

    def match(self, event: Event, found: list[int]) -> int:
        """Append the ids of conjunctions that hold; how many were compared."""
        asked, by_attribute = 0, self._by_attribute
        for attribute in by_attribute if len(by_attribute) < len(event) else event:
            value = event.get(attribute)
            if value is not None and attribute in by_attribute:
                present = frozenset(filter(None, map(self._words.get, _texts(value))))
                if present:
                    for shelf in by_attribute[attribute].values():
                        asked += _match_shelf(shelf, present, event, found)
        return asked


def _texts(value: Scalar | tuple[Scalar, ...]) -> Iterable[str]:
    """The words of an attribute; texts of letters and digits only are words as they are."""
    try:
        if type(value) is tuple and "".join(value).isalnum():  # type: ignore[arg-type]
            return value  # type: ignore[return-value]
    except TypeError:
        # There are other values than texts.
        pass
    return words(value)


def _match_shelf(shelf: Shelf, present: frozenset[Word], event: Event, found: list[int]) -> int:
    if shelf.x is None or shelf.y is None:
        return shelf.match(present, event, found)
    x, y = event.get(shelf.x), event.get(shelf.y)
    if type(x) is float and type(y) is float:
        # Rectangles are finite, and nothing compares with NaN.
        return shelf.match(present, event, found, x, y) if math.isfinite(x) and math.isfinite(y) else 0
    if type(x) is tuple or type(y) is tuple:
        # Where a coordinate has several values every conjunction of the event's words and cells is asked.
        entries = shelf.every(present, _finite(x), _finite(y))
        found += [entry.id for entry in entries if conjunction_holds(entry.conjunction, event)]
        return len(entries)
    return 0


def _finite(value: Scalar | tuple[Scalar, ...] | None) -> list[float]:
    """The numbers among an attribute's values that can lie in a rectangle."""
    values = value if type(value) is tuple else (value,)
    return [one for one in values if type(one) is float and math.isfinite(one)]


def _rectangle(conjunction: tuple[Predicate, ...]) -> tuple[Predicate, ...]:
    """The first two bounded ranges of numbers on different attributes, or nothing."""
    ranges: dict[str, Predicate] = {}
    for predicate in conjunction:
        if predicate.operator is _BETWEEN and not predicate.negated and _is_range(predicate):
            ranges.setdefault(predicate.attribute, predicate)
    return tuple(ranges.values())[:2] if len(ranges) > 1 else ()


def _is_range(predicate: Predicate) -> bool:
    low, high = predicate.operands
    return type(low) is float and type(high) is float and -math.inf < low <= high < math.inf
