"""The query option `$filter`: comparisons of a property with a literal, joined by and, or, not and brackets.

A property is a path such as `result` or `properties/kind`. A literal is a number, a text in single quotes, a
time in RFC 3339, true or false. A comparison with a property that an entity does not have is false. Functions
and arithmetic of OData are not supported, and are refused.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hpwsn.door.rest.json_answers import bad
from hpwsn.sensors.readings.reading_times import parse_time
from hpwsn_client.wsn.topics.topic import shown

MOST_TERMS = 100
"""Words, literals and brackets of a filter."""
Test = Callable[[Mapping[str, Any]], bool]

_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "ge": operator.ge,
    "lt": operator.lt,
    "le": operator.le,
}
_term = re.compile(
    r"\s*(?:(?P<bracket>[()])|(?:(?P<text>'(?:[^']|'')*')"
    r"|(?P<time>[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(?:Z|[+-][0-9:]+))"
    r"|(?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_@][\w.@/-]*))(?![\w']))\s*"
)


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter: whether it accepts an entity, and the times in milliseconds outside of which it never does.

    `start` is the first time, and `end` the first one after it; None is unbounded.
    """

    accepts: Test
    start: int | None = None
    end: int | None = None


def parse_filter(text: str) -> Filter:
    """The filter of a text; a fault with status 400 says what is wrong."""
    return _Parser(text).parse()


class _Parser:
    """Reads the terms of one filter from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._terms: list[tuple[str, str]] = []
        at = 0
        while at < len(text):
            found = _term.match(text, at)
            if found is None or len(self._terms) == MOST_TERMS:
                raise bad(f"$filter is not understood from {shown(text[at : at + 40])} on; {_HELP}")
            kind = str(found.lastgroup)
            self._terms.append((kind, found[kind]))
            at = found.end()

    def parse(self) -> Filter:
        self._terms.reverse()
        found = self._any()
        if self._terms:
            raise bad(f"$filter goes on with {shown(self._terms[-1][1])} after its end; {_HELP}")
        return found

    def _any(self) -> Filter:
        found = self._all()
        while self._takes("or"):
            # Alternatives could have a hull of times, which few queries need.
            found = Filter(_either(found.accepts, self._all().accepts))
        return found

    def _all(self) -> Filter:
        found = self._one()
        while self._takes("and"):
            other = self._one()
            found = Filter(
                _both(found.accepts, other.accepts),
                max((each for each in (found.start, other.start) if each is not None), default=None),
                min((each for each in (found.end, other.end) if each is not None), default=None),
            )
        return found

    def _one(self) -> Filter:
        if self._takes("not"):
            return Filter(_opposite(self._one().accepts))
        if self._takes("("):
            found = self._any()
            if not self._takes(")"):
                raise bad(f"$filter has a bracket that is not closed; {_HELP}")
            return found
        return self._comparison()

    def _comparison(self) -> Filter:
        kind, path = self._next()
        _, word = self._next()
        literal_kind, literal = self._next()
        compare = _OPERATORS.get(word)
        if kind != "name" or compare is None:
            raise bad(f"$filter has {shown(f'{path} {word} {literal}')}; {_HELP}")
        value = _value(literal_kind, literal)
        is_time = literal_kind == "time"
        start, end = None, None
        if is_time and path in ("phenomenonTime", "resultTime"):
            start = {"eq": value, "ge": value, "gt": value + 1}.get(word)
            end = {"eq": value + 1, "le": value + 1, "lt": value}.get(word)
        return Filter(_comparison(path.split("/"), compare, value, is_time), start, end)

    def _next(self) -> tuple[str, str]:
        if not self._terms:
            raise bad(f"$filter ends too early; {_HELP}")
        return self._terms.pop()

    def _takes(self, word: str) -> bool:
        if self._terms and self._terms[-1][0] in ("name", "bracket") and self._terms[-1][1] == word:
            self._terms.pop()
            return True
        return False


_HELP = "write comparisons such as result gt 20 and phenomenonTime ge 2026-01-31T12:00:00Z"


def _value(kind: str, text: str) -> Any:
    if kind == "time":
        time = parse_time(text)
        if time is None:
            raise bad(f"$filter has the time {shown(text)}; give one such as 2026-01-31T12:00:00Z")
        return time
    if kind == "text":
        return text[1:-1].replace("''", "'")
    if kind == "number":
        return float(text)
    if text not in ("true", "false"):
        raise bad(f"$filter compares with {shown(text)}; {_HELP}, and texts in single quotes")
    return text == "true"


def _comparison(path: list[str], compare: Callable[[Any, Any], bool], value: Any, is_time: bool) -> Test:
    def accepts(entity: Mapping[str, Any]) -> bool:
        found: Any = entity
        for name in path:
            found = found.get(name) if isinstance(found, Mapping) else None
        if is_time:
            found = parse_time(found) if isinstance(found, str) else None
        if isinstance(found, int) and not isinstance(found, bool) and isinstance(value, float):
            found = float(found)
        return type(found) is type(value) and compare(found, value)

    return accepts


def _either(one: Test, other: Test) -> Test:
    return lambda entity: one(entity) or other(entity)


def _both(one: Test, other: Test) -> Test:
    return lambda entity: one(entity) and other(entity)


def _opposite(one: Test) -> Test:
    return lambda entity: not one(entity)
