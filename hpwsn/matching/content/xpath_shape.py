"""XPath that an engine can index: translated exactly to a request, or not at all.

Accepted are `and` and `or` of comparisons of a plain path (`speed`, `/car/speed`, `@lane`, `//x:name`; no
predicates, no wildcards) with a number by `<`, `<=`, `>`, `>=`, `=`, or with a text by `=`, `!=`. Each path
becomes an attribute, with the number or text that XPath makes of its node. XPath compares every one of
several nodes, whereas a request chooses one value. So if a path selects several nodes of a payload, the
request is not valid for it, and the expression is evaluated as XPath.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from lxml import etree

from hpwsn.matching.language.normal_form import And, Expression, Or, TooLarge, normalise
from hpwsn.matching.language.predicates import Disjunction, Operator, Predicate
from hpwsn_client.wsn.operations.filters import ContentFilter
from hpwsn_client.wsn.soap.xml import NCNAME

MOST_DEPTH = 50
READERS = 4096
"""Compiled paths that are cached."""

_NAME = rf"{NCNAME}(?::{NCNAME})?"
_STEPS = rf"(?:{_NAME}(?:/{_NAME})*(?:/@{_NAME})?|@{_NAME})"
_token = re.compile(
    rf"""\s*(?:
        (?P<number>-?\s*(?:\d+(?:\.\d*)?|\.\d+))
        | (?P<text>"[^"]*"|'[^']*')
        | (?P<path>(?://?)?{_STEPS})
        | (?P<operator><=|>=|!=|=|<|>)
        | (?P<bracket>[()])
        | (?P<end>$)
    )\s*""",
    re.VERBOSE | re.ASCII,
).match
_prefix = re.compile(rf"({NCNAME}):").sub
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_WITH_NUMBERS = frozenset({"<", "<=", ">", ">=", "="})
_WITH_TEXTS = frozenset({"=", "!="})
_TRIAL = etree.fromstring("<trial/>")


@dataclass(frozen=True, slots=True)
class Path:
    """A plain path as written, with its prefixes; paths with the same meaning have the same `key`."""

    key: str
    text: str
    namespaces: tuple[tuple[str, str], ...]

    @property
    def as_number(self) -> str:
        """The attribute of the path's number; the backquote cannot occur in the predicate language."""
        return f"`number {self.key}"

    @property
    def as_text(self) -> str:
        """The attribute of the path's text."""
        return f"`text {self.key}"


@dataclass(frozen=True, slots=True)
class XPathShape:
    """A request equivalent to an XPath expression, as long as no path selects several nodes."""

    request: Disjunction
    paths: tuple[Path, ...]


class SeveralNodes(Exception):
    """A path selects several nodes in a payload."""


class PathReader:
    """Reads a path's value from payloads as XPath converts it."""

    __slots__ = ("_nodes", "_number", "_text")

    def __init__(self, text: str, namespaces: tuple[tuple[str, str], ...]) -> None:
        forms = (text, f"string({text})", f"number({text})")
        self._nodes, self._text, self._number = (
            etree.XPath(form, namespaces=dict(namespaces), regexp=False, smart_strings=False)
            for form in forms
        )

    def read(self, payload: etree._Element) -> tuple[str, float] | None:
        """Return the text and the number (or NaN) of the node; None without one. Raises SeveralNodes."""
        nodes = cast(list[object], self._nodes(payload))
        if not nodes:
            return None
        if len(nodes) > 1:
            raise SeveralNodes
        return str(self._text(payload)), cast(float, self._number(payload))


@lru_cache(maxsize=READERS)
def path_reader(text: str, namespaces: tuple[tuple[str, str], ...]) -> PathReader:
    """Return the compiled path from a cache."""
    return PathReader(text, namespaces)


def shape_of(xpath: ContentFilter) -> XPathShape | None:
    """Return the shape of a valid XPath expression; None if an engine cannot hold it."""
    try:
        reader = _ShapeParser(xpath)
        return XPathShape(normalise(reader.expression()), tuple(reader.paths.values()))
    except (_NotIndexable, TooLarge):
        return None


class _NotIndexable(Exception):
    pass


class _ShapeParser:
    """Recursive-descent parser; raises _NotIndexable at the first token that a shape cannot have."""

    def __init__(self, xpath: ContentFilter) -> None:
        self._namespaces = dict(xpath.namespaces)
        self.paths: dict[str, Path] = {}
        self._tokens = _tokens(xpath.expression)
        self._kind, self._value = next(self._tokens)

    def expression(self) -> Expression:
        found = self._or(0)
        if self._kind != "end":
            raise _NotIndexable
        return found

    def _take(self, *kinds: str) -> str:
        value = self._value
        if self._kind not in kinds:
            raise _NotIndexable
        self._kind, self._value = next(self._tokens)
        return value

    def _take_word(self, word: str) -> bool:
        if (self._kind, self._value) != ("path", word):
            return False
        self._take("path")
        return True

    def _or(self, depth: int) -> Expression:
        parts = [self._and(depth)]
        while self._take_word("or"):
            parts.append(self._and(depth))
        return Or(tuple(parts))

    def _and(self, depth: int) -> Expression:
        parts = [self._primary(depth)]
        while self._take_word("and"):
            parts.append(self._primary(depth))
        return And(tuple(parts))

    def _primary(self, depth: int) -> Expression:
        if (self._kind, self._value) != ("bracket", "("):
            return self._comparison()
        if depth == MOST_DEPTH:
            raise _NotIndexable
        self._take("bracket")
        inner = self._or(depth + 1)
        if self._take("bracket") != ")":
            raise _NotIndexable
        return inner

    def _comparison(self) -> Expression:
        if self._kind == "path":
            path, operator = self._take("path"), self._take("operator")
            kind, literal = self._kind, self._take("number", "text")
        else:
            kind, literal = self._kind, self._take("number", "text")
            operator, path = self._take("operator"), self._take("path")
            operator = _FLIPPED.get(operator, operator)
        return self._predicate(self._path(path), operator, kind, literal)

    def _predicate(self, path: Path, operator: str, kind: str, literal: str) -> Predicate:
        if operator not in (_WITH_NUMBERS if kind == "number" else _WITH_TEXTS):
            raise _NotIndexable
        if kind == "text":
            return Predicate(path.as_text, Operator(operator), (literal[1:-1],))
        # Converted by XPath itself, which does not always round to the nearest double.
        number = cast(float, etree.XPath(literal)(_TRIAL))
        return Predicate(path.as_number, Operator(operator), (number,))

    def _path(self, text: str) -> Path:
        def named(found: re.Match[str]) -> str:
            return f"{{{self._namespaces[found[1]]}}}"

        try:
            key = _prefix(named, text)
        except KeyError:
            raise _NotIndexable from None
        used = tuple((p, uri) for p, uri in sorted(self._namespaces.items()) if f"{p}:" in text)
        return self.paths.setdefault(key, Path(key, text, used))


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """Yield kinds and values; the last kind is `end`, or empty at an unknown character."""
    at = 0
    while found := _token(text, at):
        kind = cast(str, found.lastgroup)
        yield kind, found[kind]
        if kind == "end":
            return
        at = found.end()
    yield "", ""
