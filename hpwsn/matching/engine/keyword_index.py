"""The index of words and places: `has(keywords, "fire") and within(longitude, latitude, …)`.

A conjunction is stored under its rarest word. If it has two ranges of numbers, it is stored in the grid cells
that this rectangle touches. An event looks up its words in the cell of each size that contains it, and
compares the candidates (`word_cells`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import cycle
from operator import attrgetter
from typing import cast

from hpwsn.matching.engine.cells import Rectangle, Word
from hpwsn.matching.engine.conjunction_index import Entry
from hpwsn.matching.engine.word_cells import FIRST_BIT, SIGNATURE_BITS, CellEntry, WordCells
from hpwsn.matching.language.predicates import Event, Operator, Predicate, conjunction_holds
from hpwsn.matching.language.values import Scalar, words

_HAS, _BETWEEN = Operator.HAS, Operator.BETWEEN
COMMON_WORD = 64
"""Uses from which a word is too common for conjunctions without a rectangle that need evaluation."""

_uses = attrgetter("uses")

Axes = tuple[str | None, str | None]


class KeywordIndex:
    """Conjunctions with `has`."""

    def __init__(self) -> None:
        self._by_attribute: dict[str, dict[Axes, WordCells]] = {}
        self._words: dict[str, Word] = {}
        self._bits = cycle([FIRST_BIT << number for number in range(SIGNATURE_BITS)])

    def __bool__(self) -> bool:
        return bool(self._by_attribute)

    @property
    def capacity(self) -> int:
        """The number of conjunctions that memory is allocated for."""
        return sum(
            word_cells.capacity for by_axes in self._by_attribute.values() for word_cells in by_axes.values()
        )

    def offer(self, entry: Entry) -> bool:
        """Add a conjunction with rare words or with a rectangle; return whether it was added."""
        has = [p for p in entry.conjunction if p.operator is _HAS and not p.negated]
        if not has or not has[0].operands:
            return False
        rectangle = _rectangle(entry.conjunction)
        if not rectangle and len(entry.conjunction) > 1 and self._rarest_frequency(has[0]) >= COMMON_WORD:
            # Every match of a common word would be evaluated; the interval index rules most of them out.
            return False
        axes = (rectangle[0].attribute, rectangle[1].attribute) if rectangle else (None, None)
        by_axes = self._by_attribute.setdefault(has[0].attribute, {})
        word_cells = by_axes.get(axes)
        if word_cells is None:
            word_cells = by_axes[axes] = WordCells(has[0].attribute, *axes)
        self._insert(entry, word_cells, has[0], rectangle)
        return True

    def _rarest_frequency(self, has: Predicate) -> int:
        words = map(self._words.get, cast(tuple[str, ...], has.operands))
        return min(word.uses if word else 0 for word in words)

    def _insert(
        self, entry: Entry, word_cells: WordCells, has: Predicate, ranges: tuple[Predicate, ...]
    ) -> None:
        wanted = {self._word(text) for text in cast(tuple[str, ...], has.operands)}
        for word in wanted:
            word.uses += 1
        rarest = min(wanted, key=_uses)
        wanted.remove(rarest)
        exact = len(entry.conjunction) == 1 + len(ranges)
        rectangle = cast(Rectangle, ranges[0].operands + ranges[1].operands) if ranges else None
        entry.place = cell_entry = CellEntry(entry, rarest, tuple(wanted), exact, word_cells)
        word_cells.add(cell_entry, rectangle)

    def _word(self, text: str) -> Word:
        word = self._words.get(text)
        if word is None:
            word = self._words[text] = Word(text, next(self._bits))
        return word

    def remove(self, entry: Entry) -> None:
        """Remove a conjunction."""
        cell_entry = cast(CellEntry, entry.place)
        # The two refer to each other, and would wait for the cyclic garbage collector.
        entry.place = None
        word_cells = cell_entry.word_cells
        word_cells.remove(cell_entry)
        if not len(word_cells):
            del self._by_attribute[word_cells.attribute][word_cells.x, word_cells.y]
            if not self._by_attribute[word_cells.attribute]:
                del self._by_attribute[word_cells.attribute]
        for word in (cell_entry.word, *cell_entry.other_words):
            word.uses -= 1
            if not word.uses:
                del self._words[word.text]

    def match(self, event: Event, found: list[int]) -> int:
        """Append the ids of conjunctions that match; return how many were compared."""
        compared, by_attribute = 0, self._by_attribute
        for attribute in by_attribute if len(by_attribute) < len(event) else event:
            value = event.get(attribute)
            if value is not None and attribute in by_attribute:
                present = frozenset(filter(None, map(self._words.get, _texts(value))))
                if present:
                    for word_cells in by_attribute[attribute].values():
                        compared += _match_word_cells(word_cells, present, event, found)
        return compared


def _texts(value: Scalar | tuple[Scalar, ...]) -> Iterable[str]:
    """Return the words of an attribute; texts of letters and digits only need no splitting."""
    try:
        if type(value) is tuple and "".join(value).isalnum():  # type: ignore[arg-type]
            return value  # type: ignore[return-value]
    except TypeError:
        # Some value is not a text.
        pass
    return words(value)


def _match_word_cells(word_cells: WordCells, present: frozenset[Word], event: Event, found: list[int]) -> int:
    if word_cells.x is None or word_cells.y is None:
        return word_cells.match(present, event, found)
    x, y = event.get(word_cells.x), event.get(word_cells.y)
    if type(x) is float and type(y) is float:
        # Rectangles are finite, and NaN is in none.
        return word_cells.match(present, event, found, x, y) if math.isfinite(x) and math.isfinite(y) else 0
    if type(x) is tuple or type(y) is tuple:
        # A coordinate has several values: evaluate every candidate of the event's words and cells.
        entries = word_cells.candidates(present, _finite(x), _finite(y))
        found += [entry.id for entry in entries if conjunction_holds(entry.conjunction, event)]
        return len(entries)
    return 0


def _finite(value: Scalar | tuple[Scalar, ...] | None) -> list[float]:
    """Return the finite numbers among an attribute's values."""
    values = value if type(value) is tuple else (value,)
    return [one for one in values if type(one) is float and math.isfinite(one)]


def _rectangle(conjunction: tuple[Predicate, ...]) -> tuple[Predicate, ...]:
    """Return the first two bounded ranges of numbers on different attributes, or an empty tuple."""
    ranges: dict[str, Predicate] = {}
    for predicate in conjunction:
        if predicate.operator is _BETWEEN and not predicate.negated and _is_range(predicate):
            ranges.setdefault(predicate.attribute, predicate)
    return tuple(ranges.values())[:2] if len(ranges) > 1 else ()


def _is_range(predicate: Predicate) -> bool:
    low, high = predicate.operands
    return type(low) is float and type(high) is float and -math.inf < low <= high < math.inf
