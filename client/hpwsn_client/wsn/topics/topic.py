"""What a topic is and how it is written: WS-Topics 1.3 section 4, and our own `A:B:C` form.

Owns the grammar of topic names and the identity of a topic. Refuses names that are no NCName of XML, and
topics beyond the bounds below, with the standard's InvalidTopicExpressionFault.

The topics in a TopicSet document, WS-Topics 1.3 section 6.

Owns the reading. An element with the attribute wstop:topic is a topic, any other is only the way to some.
What is no topic of ours to name (a root in no namespace, an element of wstop) is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from lxml import etree

from hpwsn_client.wsn.soap.faults import InvalidTopicExpressionFault
from hpwsn_client.wsn.soap.names import HPWSN_TOPICS, WSTOP
from hpwsn_client.wsn.soap.soap_faults import SoapFault
from hpwsn_client.wsn.soap.xml import NCNAME, escape_attribute, parse_xml

_MARK = f"{{{WSTOP}}}topic"
_STANDARD = f"{{{WSTOP}}}"


def parse_topic_set(element: etree._Element) -> tuple[Topic, ...]:
    """The topics of a wstop:TopicSet, in the order of the document."""
    found = []
    for root in element.iterchildren("{*}*"):
        namespace, _, name = root.tag[1:].rpartition("}")
        if namespace and not root.tag.startswith(_STANDARD):
            found += [Topic(namespace, path) for path in _paths(root, (name,))]
    return tuple(found)


def _paths(element: etree._Element, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if element.get(_MARK, "").strip() in ("true", "1"):
        yield path
    for child in element.iterchildren("*"):
        if not child.tag.startswith(_STANDARD):
            yield from _paths(child, (*path, child.tag))


MAX_CHARACTERS = 4096
MAX_STEPS = 64

_URI = "[^{}]+"
_STEP = rf"(?:\{{{_URI}\}})?{NCNAME}"

_split_step = re.compile(rf"(?:\{{({_URI})\}})?({NCNAME})").fullmatch
_is_topic = re.compile(rf"{_STEP}(?:(?::{_STEP})*|(?:/{_STEP})*)").fullmatch
_topic_steps = re.compile(_STEP).findall


@dataclass(frozen=True, slots=True)
class Topic:
    """The root's namespace, and the names from the root down, `{namespace}name` where one is of another."""

    namespace: str
    path: tuple[str, ...]
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_namespace(self.namespace)
        path = tuple(checked_step(step, self.namespace) for step in self.path)
        check_steps(len(path))
        if path[0].startswith("{"):
            raise InvalidTopicExpressionFault(
                f"the root {path[0]!r} is not in its topic's namespace {self.namespace!r}"
            )
        object.__setattr__(self, "path", path)
        object.__setattr__(self, "_hash", hash((self.namespace, path)))
        check_length(str(self))

    def __hash__(self) -> int:
        # A notification is looked up by its topic at every step of its way.
        return self._hash

    @classmethod
    def parse(cls, text: str) -> Topic:
        """Read `A:B:C`, `A/B/C`, or either with `{namespace}` before the root or a step."""
        text = text.strip(" \t\r\n")
        check_length(text)
        if not _is_topic(text):
            raise invalid(
                text, "a topic is names joined by ':' or by '/', such as A:B:C or {urn:example}A:B:C"
            )
        steps = _topic_steps(text)
        namespace, brace, root = steps[0].rpartition("}")
        return cls(namespace[1:] if brace else HPWSN_TOPICS, (root, *steps[1:]))

    def __str__(self) -> str:
        root = "" if self.namespace == HPWSN_TOPICS else f"{{{self.namespace}}}"
        return root + ":".join(self.path)

    @property
    def name(self) -> str:
        """The last step."""
        return self.path[-1]

    @property
    def parent(self) -> Topic | None:
        """The topic one step up; None for a root."""
        return _checked(self.namespace, self.path[:-1]) if len(self.path) > 1 else None

    def child(self, step: str) -> Topic:
        """The topic of this name below this one."""
        check_steps(len(self.path) + 1)
        below = _checked(self.namespace, (*self.path, checked_step(step, self.namespace)))
        check_length(str(below))
        return below

    def ancestors(self) -> Iterator[Topic]:
        """The topics above this one, the nearest first."""
        for length in range(len(self.path) - 1, 0, -1):
            yield _checked(self.namespace, self.path[:length])

    def covers(self, other: Topic) -> bool:
        """Whether the other is this topic or below it."""
        return self.path == other.path[: len(self.path)] and self.namespace == other.namespace


def _checked(namespace: str, path: tuple[str, ...]) -> Topic:
    """A topic of parts that are known to be good; checking them again is most of the work of a large tree."""
    topic = object.__new__(Topic)
    object.__setattr__(topic, "namespace", namespace)
    object.__setattr__(topic, "path", path)
    object.__setattr__(topic, "_hash", hash((namespace, path)))
    return topic


def checked_step(step: str, namespace: str) -> str:
    """The step, as a plain name where it is of the topic's own namespace."""
    found = _split_step(step)
    if not found:
        raise InvalidTopicExpressionFault(
            f"{shown(step)} is no topic name; begin with a letter or '_', go on with these, digits, '-', '.'"
        )
    if found[1] is None or found[1] == namespace:
        return found[2]
    check_namespace(found[1])
    return step


def check_namespace(uri: str) -> str:
    """The URI, where XML can bind a prefix to it and a topic can be written with it."""
    if len(uri) > MAX_CHARACTERS or not _can_be_bound(uri):
        raise InvalidTopicExpressionFault(
            f"{shown(uri)} cannot be a topic namespace; use a URI, such as urn:example"
        )
    return uri


@lru_cache(1024)
def _can_be_bound(uri: str) -> bool:
    """Whether our own parser takes a prefix bound to it, which it does for URIs but XML's own two."""
    try:
        return bool(uri) and parse_xml(f'<a xmlns:p="{escape_attribute(uri)}"/>'.encode()).nsmap == {"p": uri}
    except (SoapFault, ValueError):
        return False


def check_steps(number: int) -> None:
    """Refuse paths that are empty or too deep."""
    if not 0 < number <= MAX_STEPS:
        raise InvalidTopicExpressionFault(f"a topic has 1 to {MAX_STEPS} steps, and this one has {number}")


def check_length(text: str) -> None:
    """Refuse texts that are too long."""
    if len(text) > MAX_CHARACTERS:
        raise invalid(text, f"it has {len(text)} characters, and {MAX_CHARACTERS} are allowed")


def invalid(text: str, remedy: str) -> InvalidTopicExpressionFault:
    """The fault for a text, with what to do about it."""
    return InvalidTopicExpressionFault(f"{shown(text)} is no topic expression: {remedy}")


def shown(text: str) -> str:
    """A value as an error shows it, never too much of it."""
    return repr(text if len(text) <= 80 else text[:77] + "...")
