"""Topic expressions (WS-Topics 1.3 section 8), including HPwsn's `A:B:C` syntax.

The dialects are Simple, Concrete and Full, and ONVIF's ConcreteSet (Core Specification, section 9.6). An
expression is matched against one topic at a time; the module has no topic tree. Rejects what the grammar in
the t-1 schema does not allow, and expressions above the limits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from typing import NamedTuple

from lxml import etree

from hpwsn_client.wsn.soap.faults import TopicExpressionDialectUnknownFault
from hpwsn_client.wsn.soap.names import (
    DIALECT_CONCRETE,
    DIALECT_CONCRETE_SET,
    DIALECT_FULL,
    DIALECT_SIMPLE,
    HPWSN_TOPICS,
    WSNT,
)
from hpwsn_client.wsn.soap.xml import NCNAME, escape, escape_attribute
from hpwsn_client.wsn.topics.topic import (
    Topic,
    check_length,
    check_namespace,
    check_steps,
    checked_step,
    invalid,
    shown,
)

__all__ = [
    "Step",
    "Topic",
    "TopicExpression",
    "TopicPattern",
    "encode_topic",
    "parse_topic",
    "parse_topic_expression",
]

MAX_ALTERNATIVES = 64

# Longer expressions are not cached, so that untrusted requests cannot fill memory.
_CACHED_CHARACTERS = 256
_CACHE_SIZE = 4096

# Encoded messages declare these prefixes around a topic. An `A:B` path that begins with one would become a
# QName there.
_OUR_PREFIXES = frozenset(
    {"wsnt", "wsa", "hp", "xsi", "s", "soap", "wstop", "wsn-br", "wsrf-rp", "wsrf-bf", "wsrf-r", "tev"}
)

_CHILD = rf"//?(?:(?:{NCNAME}:)?{NCNAME}|\*|\.)"

_is_colon_path = re.compile(rf"{NCNAME}(?::{NCNAME})*").fullmatch
_is_concrete_path = re.compile(rf"(?:{NCNAME}:)?{NCNAME}(?:/(?:{NCNAME}:)?{NCNAME})*").fullmatch
_full_path = re.compile(rf"(?:({NCNAME}):)?((?://)?(?:{NCNAME}|\*)(?:{_CHILD})*)").fullmatch
_full_steps = re.compile(rf"(//?|)(?:({NCNAME}):)?({NCNAME}|\*|\.)").findall
_segments = re.compile(r"[/|]").split
_only_full = re.compile(r"[*|]|//|/\.(?:/|$)").search


Namespaces = Mapping[str, str] | Mapping[str | None, str]
"""Prefixes and their URIs; the default namespace is under None."""


class Step(NamedTuple):
    """One step of a pattern: a name or `*`; with `deep`, at any depth below the previous step."""

    deep: bool
    name: str


@dataclass(frozen=True, slots=True)
class TopicPattern:
    """One alternative of an expression; `subtree` if it ends in `//.` and so includes all descendants."""

    namespace: str
    steps: tuple[Step, ...]
    subtree: bool = False
    topic: Topic | None = field(init=False, compare=False, repr=False)
    """The topic that the pattern names; None if it may match several."""
    _bits: dict[str, int] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        several = self.subtree or any(deep or name == "*" for deep, name in self.steps)
        names = tuple(name for _, name in self.steps)
        object.__setattr__(self, "topic", None if several else Topic(self.namespace, names))
        object.__setattr__(self, "_bits", _step_bits(self.steps) if several else {})

    def matches(self, topic: Topic) -> bool:
        """Whether the pattern matches the topic, in time linear in the topic's depth."""
        if self.topic is not None:
            return self.topic == topic
        if self.namespace != topic.namespace:
            return False
        # Bit i of the state is set if the names so far match the first i steps. There is no backtracking.
        bits, last = self._bits, len(self.steps)
        anything, stay, state = bits["*"], bits["//"] | self.subtree << last, 1
        for name in topic.path:
            state = (state & bits.get(name, anything)) << 1 | state & stay
        return bool(state >> last)


@dataclass(frozen=True, slots=True)
class TopicExpression:
    """An expression with its text, the prefixes that it uses, and its patterns, one per alternative."""

    dialect: str
    text: str
    namespaces: tuple[tuple[str, str], ...]
    patterns: tuple[TopicPattern, ...]
    topic: Topic | None = field(init=False, compare=False, repr=False)
    """The topic that the expression names; None if it may match several."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "topic", self.patterns[0].topic if len(self.patterns) == 1 else None)

    @property
    def subtree(self) -> bool:
        """Whether the dialect is Simple, which includes the subtree in the original HPwsn."""
        return self.dialect == DIALECT_SIMPLE

    def matches(self, topic: Topic, simple_subtree: bool = True) -> bool:
        """Whether the expression matches the topic; with `simple_subtree`, Simple includes descendants."""
        if simple_subtree and self.topic is not None and self.dialect == DIALECT_SIMPLE:
            return self.topic.covers(topic)
        return any(pattern.matches(topic) for pattern in self.patterns)

    @staticmethod
    def of_message(topic: Topic) -> TopicExpression:
        """The expression for the topic of a message: Simple for a single name, else Concrete.

        Every broker supports Simple. In a message it never includes the subtree.
        """
        return TopicExpression.of(topic, DIALECT_SIMPLE if len(topic.path) == 1 else DIALECT_CONCRETE)

    @staticmethod
    def of(topic: Topic, dialect: str = DIALECT_CONCRETE) -> TopicExpression:
        """The expression that names exactly this topic."""
        prefixes: dict[str, str] = {}
        separator = ":" if dialect == DIALECT_SIMPLE else "/"
        root = topic.path[0] if topic.namespace == HPWSN_TOPICS else f"{{{topic.namespace}}}{topic.path[0]}"
        if dialect == DIALECT_SIMPLE and any(step.startswith("{") for step in topic.path):
            raise invalid(
                str(topic), "Simple cannot have a step in another namespace; use the dialect Concrete"
            )
        text = separator.join(_prefixed(step, prefixes) for step in (root, *topic.path[1:]))
        return parse_topic_expression(text, dialect, {prefix: uri for uri, prefix in prefixes.items()})


def parse_topic_expression(text: str, dialect: str | None, namespaces: Namespaces) -> TopicExpression:
    """Parse an expression; without a dialect, the narrowest dialect that allows it is used."""
    text = text.strip(" \t\r\n")
    check_length(text)
    if not dialect:
        dialect = DIALECT_FULL if _only_full(text) else DIALECT_CONCRETE if "/" in text else DIALECT_SIMPLE
    elif dialect not in _DIALECTS:
        raise TopicExpressionDialectUnknownFault(
            f"the topic expression dialect {shown(dialect)} is unknown; use one of {', '.join(_DIALECTS)}"
        )
    bound = _used_bindings(text, namespaces) if ":" in text else ()
    if len(text) + sum(len(uri) for _, uri in bound) > _CACHED_CHARACTERS:
        return _parse(text, dialect, bound)
    return _parse_cached(text, dialect, bound)


def parse_topic(element: etree._Element) -> TopicExpression:
    """Parse an element of TopicExpressionType, such as wsnt:Topic."""
    text = element.text or ""
    if len(element):
        raise invalid(text, f"its element has the child {element[0].tag!r}; it may have only text")
    dialect = (element.get("Dialect") or "").strip(" \t\r\n")
    return parse_topic_expression(text, dialect, element.nsmap if ":" in text else {})


def encode_topic(expression: TopicExpression, tag: str) -> bytes:
    """Encode the expression as an element with this Clark name, with the prefixes that it uses."""
    text, namespaces = expression.text, expression.namespaces
    # Publishers repeat their topics, so short ones are cached.
    write = _write_topic if namespaces or len(text) > _SHORT else _write_short_topic
    return write(expression.dialect, text, namespaces, tag)


def _write_topic(dialect: str, text: str, namespaces: tuple[tuple[str, str], ...], tag: str) -> bytes:
    namespace, _, name = tag.rpartition("}")
    declared = dict(namespaces)
    if namespace[1:] == WSNT and declared.setdefault("wsnt", WSNT) == WSNT:
        name, opening = f"wsnt:{name}", f"<wsnt:{name}"
    else:
        opening = f'<{name} xmlns="{escape_attribute(namespace[1:])}"'
    scope = "".join(f' xmlns:{prefix}="{escape_attribute(uri)}"' for prefix, uri in declared.items())
    return f'{opening}{scope} Dialect="{escape_attribute(dialect)}">{escape(text)}</{name}>'.encode()


_SHORT = 256
_write_short_topic = lru_cache(1024)(_write_topic)


class _Scope:
    """The prefixes in scope of an expression, and those that it uses."""

    __slots__ = ("_bound", "_text", "used")

    def __init__(self, text: str, bound: Iterable[tuple[str, str]]) -> None:
        self._text = text
        self._bound = dict(bound)
        self.used: dict[str, str] = {}

    def namespace(self, prefix: str) -> str | None:
        uri = self._bound.get(prefix)
        if uri is not None:
            self.used[prefix] = check_namespace(uri)
        return uri

    def qualify(self, prefix: str, name: str) -> str:
        """The step for a QName or NCName below the root."""
        if not prefix:
            return name
        return f"{{{self.required(prefix)}}}{name}"

    def required(self, prefix: str) -> str:
        uri = self.namespace(prefix)
        if uri is None:
            remedy = f"declare xmlns:{prefix}, or join the names of a path by '/', as in A/B/*"
            raise invalid(self._text, f"the prefix {prefix!r} is not bound; {remedy}")
        return uri

    def declare(self, uri: str) -> str:
        """Declare a new prefix that the expression does not use."""
        prefix = next(name for name in map("topics{}".format, count(1)) if f"{name}:" not in self._text)
        self.used[prefix] = uri
        return prefix


_Alternative = tuple[str, TopicPattern]


def _parse(text: str, dialect: str, bound: tuple[tuple[str, str], ...]) -> TopicExpression:
    scope = _Scope(text, bound)
    alternatives = _DIALECTS[dialect](text, scope)
    written = "|".join(alternative for alternative, _ in alternatives)
    check_length(written)
    patterns = tuple(dict.fromkeys(pattern for _, pattern in alternatives))
    return TopicExpression(dialect, written, tuple(sorted(scope.used.items())), patterns)


_parse_cached = lru_cache(_CACHE_SIZE)(_parse)


def _parse_simple(text: str, scope: _Scope) -> list[_Alternative]:
    if not _is_colon_path(text):
        raise invalid(
            text, "Simple takes one name, or names joined by ':', such as A:B:C; '/' needs Concrete"
        )
    return [_colon_path(text, scope)]


def _parse_concrete(text: str, scope: _Scope) -> list[_Alternative]:
    if _is_colon_path(text):
        return [_colon_path(text, scope)]
    if not _is_concrete_path(text):
        raise invalid(text, "Concrete takes names joined by '/', such as p:A/B; wildcards and '|' need Full")
    return [_slash_path(text, scope)]


def _parse_concrete_set(text: str, scope: _Scope) -> list[_Alternative]:
    """Concrete paths, with or without subtrees, such as `p:A/B//.|p:C`; spaces around `|` are allowed."""
    alternatives = [each.strip(" \t\r\n") for each in text.split("|")]
    for each in alternatives:
        path = each.removesuffix("//.")
        if not (_is_concrete_path(path) or (path == each and _is_colon_path(each))):
            raise invalid(
                text, "ConcreteSet takes paths such as p:A/B or p:A//. joined by '|'; '*' needs Full"
            )
    return _parse_full("|".join(alternatives), scope)


def _parse_full(text: str, scope: _Scope) -> list[_Alternative]:
    alternatives = text.split("|")
    if len(alternatives) > MAX_ALTERNATIVES:
        raise invalid(
            text, f"it has {len(alternatives)} alternatives; at most {MAX_ALTERNATIVES} are allowed"
        )
    return [(_colon_path if _is_colon_path(each) else _slash_path)(each, scope) for each in alternatives]


_DIALECTS: dict[str, Callable[[str, _Scope], list[_Alternative]]] = {
    DIALECT_SIMPLE: _parse_simple,
    DIALECT_CONCRETE: _parse_concrete,
    DIALECT_FULL: _parse_full,
    DIALECT_CONCRETE_SET: _parse_concrete_set,
}


def _colon_path(text: str, scope: _Scope) -> _Alternative:
    """A QName if its prefix is bound, else an HPwsn `A:B` path."""
    first, *rest = text.split(":")
    namespace = scope.namespace(first) if rest else None
    if namespace is None:
        if rest and first in _OUR_PREFIXES:
            text = f"{scope.declare(HPWSN_TOPICS)}:{text}"
        return text, _pattern(HPWSN_TOPICS, [("", first), *(("/", name) for name in rest)])
    return text, _pattern(namespace, [("/", name) for name in rest])


def _slash_path(text: str, scope: _Scope) -> _Alternative:
    found = _full_path(text)
    if not found:
        raise invalid(text, "write it like p:A/B, p:A//*, p://*, p:A//. or p:A/*|p:B")
    namespace = scope.required(found[1]) if found[1] else HPWSN_TOPICS
    steps = _full_steps(found[2])
    return text, _pattern(namespace, [(mark, scope.qualify(prefix, name)) for mark, prefix, name in steps])


def _pattern(namespace: str, marked: list[tuple[str, str]]) -> TopicPattern:
    """The pattern without its `.` steps; a `//` before one applies to the next step."""
    check_steps(len(marked))
    steps: list[Step] = []
    deep = False
    for mark, name in marked:
        deep = deep or mark == "//"
        if name != ".":
            steps.append(Step(deep, name if name == "*" else checked_step(name, namespace)))
            deep = False
    return TopicPattern(namespace, tuple(steps), deep)


def _step_bits(steps: tuple[Step, ...]) -> dict[str, int]:
    """A bit mask of matching steps for each name; `*` has the mask for other names, `//` the deep steps."""
    anything = sum(1 << place for place, step in enumerate(steps) if step.name == "*")
    bits = {"*": anything, "//": sum(1 << place for place, step in enumerate(steps) if step.deep)}
    for place, step in enumerate(steps):
        if step.name != "*":
            bits[step.name] = bits.get(step.name, anything) | 1 << place
    return bits


def _used_bindings(text: str, namespaces: Namespaces) -> tuple[tuple[str, str], ...]:
    """The bindings that the expression may use, without the reserved prefixes xml and xmlns."""
    found: dict[str, str] = {}
    for part in text.split(":")[:-1]:
        prefix = _segments(part)[-1].strip(" \t\r\n")
        uri = namespaces.get(prefix)
        if uri and prefix not in ("xml", "xmlns"):
            found[prefix] = uri
    return tuple(sorted(found.items()))


def _prefixed(step: str, prefixes: dict[str, str]) -> str:
    uri, brace, name = step.rpartition("}")
    if not brace:
        return name
    return f"{prefixes.setdefault(uri[1:], f't{len(prefixes) or str()}')}:{name}"
