"""XPath of the shape of a predicate, as a request that an engine takes: exactly, or not at all.

Taken are `and` and `or` of comparisons of a plain path (`speed`, `/car/speed`, `@lane`, `//x:name`, no
predicates, no wildcards) with a number by `<`, `<=`, `>`, `>=`, `=`, or with a text by `=`, `!=`. An
attribute is such a path, seen as the number or as the text that XPath itself makes of its node. XPath
compares with each of several nodes on its own and a request chooses one value, so for a payload where a path
has several nodes the request says nothing, and the expression is to be evaluated instead.
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
"""Paths of which the compiled form is kept."""

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
    """A plain path as it is written, with its prefixes; `key` is the same for paths that mean the same."""

    key: str
    text: str
    namespaces: tuple[tuple[str, str], ...]

    @property
    def as_number(self) -> str:
        """The attribute of its number; no name of the predicate language has a backquote."""
        return f"`number {self.key}"

    @property
    def as_text(self) -> str:
        """The attribute of its text."""
        return f"`text {self.key}"


@dataclass(frozen=True, slots=True)
class Shape:
    """A request that means the same as an expression, where none of the paths has several nodes."""

    request: Disjunction
    paths: tuple[Path, ...]


class SeveralNodes(Exception):
    """A path has several nodes in a payload."""


class PathReader:
    """What XPath makes of the node that a path has in a payload."""

    __slots__ = ("_nodes", "_number", "_text")

    def __init__(self, text: str, namespaces: tuple[tuple[str, str], ...]) -> None:
        forms = (text, f"string({text})", f"number({text})")
        self._nodes, self._text, self._number = (
            etree.XPath(form, namespaces=dict(namespaces), regexp=False, smart_strings=False)
            for form in forms
        )

    def read(self, payload: etree._Element) -> tuple[str, float] | None:
        """Its text and its number, which may be NaN; None without a node, SeveralNodes for more than one."""
        nodes = cast(list[object], self._nodes(payload))
        if not nodes:
            return None
        if len(nodes) > 1:
            raise SeveralNodes
        return str(self._text(payload)), cast(float, self._number(payload))


@lru_cache(maxsize=READERS)
def path_reader(text: str, namespaces: tuple[tuple[str, str], ...]) -> PathReader:
    """The compiled path, one for all that ask for it."""
    return PathReader(text, namespaces)


def shape_of(xpath: ContentFilter) -> Shape | None:
    """The shape of an expression that has been compiled, if it has one."""
    try:
        reader = _Reader(xpath)
        return Shape(normalise(reader.expression()), tuple(reader.paths.values()))
    except (_NoShape, TooLarge):
        return None


class _NoShape(Exception):
    pass


class _Reader:
    """Reads an expression from left to right; the first thing that has no place in a shape ends it."""

    def __init__(self, xpath: ContentFilter) -> None:
        self._namespaces = dict(xpath.namespaces)
        self.paths: dict[str, Path] = {}
        self._tokens = _tokens(xpath.expression)
        self._kind, self._value = next(self._tokens)

    def expression(self) -> Expression:
        found = self._or(0)
        if self._kind != "end":
            raise _NoShape
        return found

    def _take(self, *kinds: str) -> str:
        value = self._value
        if self._kind not in kinds:
            raise _NoShape
        self._kind, self._value = next(self._tokens)
        return value

    def _word(self, word: str) -> bool:
        if (self._kind, self._value) != ("path", word):
            return False
        self._take("path")
        return True

    def _or(self, depth: int) -> Expression:
        parts = [self._and(depth)]
        while self._word("or"):
            parts.append(self._and(depth))
        return Or(tuple(parts))

    def _and(self, depth: int) -> Expression:
        parts = [self._primary(depth)]
        while self._word("and"):
            parts.append(self._primary(depth))
        return And(tuple(parts))

    def _primary(self, depth: int) -> Expression:
        if (self._kind, self._value) != ("bracket", "("):
            return self._comparison()
        if depth == MOST_DEPTH:
            raise _NoShape
        self._take("bracket")
        inner = self._or(depth + 1)
        if self._take("bracket") != ")":
            raise _NoShape
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
            raise _NoShape
        if kind == "text":
            return Predicate(path.as_text, Operator(operator), (literal[1:-1],))
        # XPath's own reading of a number, which need not be the nearest that there is.
        number = cast(float, etree.XPath(literal)(_TRIAL))
        return Predicate(path.as_number, Operator(operator), (number,))

    def _path(self, text: str) -> Path:
        def named(found: re.Match[str]) -> str:
            return f"{{{self._namespaces[found[1]]}}}"

        try:
            key = _prefix(named, text)
        except KeyError:
            raise _NoShape from None
        used = tuple((p, uri) for p, uri in sorted(self._namespaces.items()) if f"{p}:" in text)
        return self.paths.setdefault(key, Path(key, text, used))


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """Kinds and values, the last of kind `end`, or of none where something else stands."""
    at = 0
    while found := _token(text, at):
        kind = cast(str, found.lastgroup)
        yield kind, found[kind]
        if kind == "end":
            return
        at = found.end()
    yield "", ""
