"""The values that events hold, and how a text is read as a pattern, as words and as an instant.

Pure, and bounded: a pattern costs at most text times pattern, and what is kept for the next event is limited.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache


@dataclass(frozen=True, slots=True, order=True)
class Instant:
    """A point in time, in seconds of the epoch."""

    seconds: float


Scalar = float | str | bool
"""What an event's attribute can be."""


class LikePattern:
    """SQL's pattern: `%` is any text, `_` any one character, a backslash takes the next one as it is.

    The pieces between the `%` are found one after another, so the work is bounded by text times pattern.
    """

    __slots__ = ("_first", "_last", "_last_length", "_middle", "_prefix")

    def __init__(self, pattern: str) -> None:
        self._prefix = pattern[:-1] if _is_prefix(pattern) else None
        if self._prefix is not None:
            # Most patterns: nothing to compile, which would take longer than to match.
            return
        pieces = _pieces(pattern)
        compiled = [re.compile("".join(piece), re.DOTALL) for piece in pieces]
        self._first = compiled[0]
        self._middle = compiled[1:-1]
        self._last = compiled[-1] if len(compiled) > 1 else None
        self._last_length = len(pieces[-1])

    def matches(self, text: str) -> bool:
        """Whether the whole text is of the pattern."""
        if self._prefix is not None:
            return text.startswith(self._prefix)
        if self._last is None:
            return self._first.fullmatch(text) is not None
        found = self._first.match(text)
        for piece in self._middle:
            if found is None:
                return False
            found = piece.search(text, found.end())
        start = len(text) - self._last_length
        return found is not None and start >= found.end() and self._last.match(text, start) is not None


_is_prefix = re.compile(r"[^%_\\]*%", re.DOTALL).fullmatch


def _pieces(pattern: str) -> list[list[str]]:
    """The pattern between its `%`, each a list of expressions for one character."""
    pieces: list[list[str]] = [[]]
    characters = iter(pattern)
    for character in characters:
        if character == "%":
            pieces.append([])
        elif character == "_":
            pieces[-1].append(".")
        else:
            literal = next(characters, character) if character == "\\" else character
            pieces[-1].append(re.escape(literal))
    return pieces


@lru_cache(maxsize=32768)
def like_pattern(pattern: str) -> LikePattern:
    """The compiled pattern, kept for the next event."""
    return LikePattern(pattern)


_SEPARATORS = re.compile(r"[\s,]+")


def words(value: Scalar | tuple[Scalar, ...]) -> frozenset[str]:
    """The words of an attribute: its values, and the parts of each between blanks and commas."""
    if type(value) is not tuple:
        return _words_of(scalar_text(value))  # type: ignore[arg-type]
    return frozenset().union(*[_words_of(scalar_text(one)) for one in value])


def _words_of(text: str) -> frozenset[str]:
    # Long texts are not kept, so that what strangers send cannot fill memory.
    return _kept_words_of(text) if len(text) <= 64 else _split_words(text)


def _split_words(text: str) -> frozenset[str]:
    return frozenset((text, *filter(None, _SEPARATORS.split(text))))


_kept_words_of = lru_cache(maxsize=16384)(_split_words)


def scalar_text(value: Scalar) -> str:
    """A value as words are written: whole numbers without a point, truth values as in JSON."""
    if type(value) is str:
        return value
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is float and value.is_integer():
        return str(int(value))
    return str(value)


@lru_cache(maxsize=65536)
def instant_of(text: str) -> Instant | None:
    """What a text is as an instant, kept for the next predicate that asks."""
    return parse_instant(text)


def parse_instant(text: str) -> Instant | None:
    """An ISO 8601 date or time of a date, UTC where it names no zone; None for any other text."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        return Instant(moment.timestamp())
    except (OverflowError, ValueError):
        return None
