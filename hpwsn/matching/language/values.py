"""The values of events, and the conversion of texts to patterns, words and instants.

Pure and bounded: a pattern costs at most text length times pattern length, and the caches have limits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache


@dataclass(frozen=True, slots=True, order=True)
class Instant:
    """A point in time, in seconds since the epoch."""

    seconds: float


Scalar = float | str | bool
"""The type of a single value of an event."""


class LikePattern:
    """A pattern of SQL's LIKE: `%` is any text, `_` one character, a backslash escapes the next character.

    The pieces between the `%` are searched in order, so the work is bounded by text length times pattern
    length.
    """

    __slots__ = ("_first", "_last", "_last_length", "_middle", "_prefix")

    def __init__(self, pattern: str) -> None:
        self._prefix = pattern[:-1] if _is_prefix(pattern) else None
        if self._prefix is not None:
            # The usual case: a prefix needs no compilation, which would cost more than the match.
            return
        pieces = _pieces(pattern)
        compiled = [re.compile("".join(piece), re.DOTALL) for piece in pieces]
        self._first = compiled[0]
        self._middle = compiled[1:-1]
        self._last = compiled[-1] if len(compiled) > 1 else None
        self._last_length = len(pieces[-1])

    def matches(self, text: str) -> bool:
        """Whether the whole text matches."""
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
    """Return the pieces between the `%`, each a list of expressions for one character."""
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
    """Return the compiled pattern from a cache."""
    return LikePattern(pattern)


_SEPARATORS = re.compile(r"[\s,]+")


def words(value: Scalar | tuple[Scalar, ...]) -> frozenset[str]:
    """Return the words of an attribute: its values, and their parts between blanks and commas."""
    if type(value) is not tuple:
        return _words_of(scalar_text(value))  # type: ignore[arg-type]
    return frozenset().union(*[_words_of(scalar_text(one)) for one in value])


def _words_of(text: str) -> frozenset[str]:
    # Long texts are not cached, so that publishers cannot fill memory.
    return _kept_words_of(text) if len(text) <= 64 else _split_words(text)


def _split_words(text: str) -> frozenset[str]:
    return frozenset((text, *filter(None, _SEPARATORS.split(text))))


_kept_words_of = lru_cache(maxsize=16384)(_split_words)


def scalar_text(value: Scalar) -> str:
    """Return a value as text: whole numbers without a decimal point, booleans as in JSON."""
    if type(value) is str:
        return value
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is float and value.is_integer():
        return str(int(value))
    return str(value)


@lru_cache(maxsize=65536)
def instant_of(text: str) -> Instant | None:
    """Return parse_instant of the text, from a cache."""
    return parse_instant(text)


def parse_instant(text: str) -> Instant | None:
    """Parse an ISO 8601 date or date and time, UTC without a zone; None for any other text."""
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
