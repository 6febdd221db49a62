"""Topics (WS-Topics 1.3 section 4) with HPwsn's `A:B:C` syntax, and the topics of a TopicSet (section 6).

A topic name must be an XML NCName. Invalid names, and topics above the limits below, raise the standard's
InvalidTopicExpressionFault. In a TopicSet, an element with the attribute wstop:topic is a topic; roots
without a namespace and elements of wstop are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from operator import itemgetter

from lxml import etree

from hpwsn_client.wsn.soap.faults import InvalidTopicExpressionFault
from hpwsn_client.wsn.soap.names import HPWSN_TOPICS, WSTOP
from hpwsn_client.wsn.soap.soap_faults import SoapFault
from hpwsn_client.wsn.soap.xml import NCNAME, escape_attribute, parse_xml

MAX_CHARACTERS = 4096
MAX_STEPS = 64

_URI = "[^{}]+"
_STEP = rf"(?:\{{{_URI}\}})?{NCNAME}"

_split_step = re.compile(rf"(?:\{{({_URI})\}})?({NCNAME})").fullmatch
_is_topic = re.compile(rf"{_STEP}(?:(?::{_STEP})*|(?:/{_STEP})*)").fullmatch
_topic_steps = re.compile(_STEP).findall

_TOPIC_ATTRIBUTE = f"{{{WSTOP}}}topic"
_STANDARD = f"{{{WSTOP}}}"


class Topic(tuple[str, tuple[str, ...]]):
    """A topic: its namespace, and the names from the root down.

    A name in another namespace is written `{namespace}name`. A topic is a tuple, because each notification is
    looked up by its topic many times, and a tuple is hashed without a call of Python.
    """

    __slots__ = ()

    def __new__(cls, namespace: str, path: Iterable[str]) -> Topic:
        """A topic from parts that are checked; InvalidTopicExpressionFault if one is invalid."""
        check_namespace(namespace)
        steps = tuple(checked_step(step, namespace) for step in path)
        check_steps(len(steps))
        if steps[0].startswith("{"):
            raise InvalidTopicExpressionFault(
                f"the root {steps[0]!r} is not in the topic's namespace {namespace!r}"
            )
        topic = _unchecked_topic(namespace, steps)
        check_length(str(topic))
        return topic

    def __getnewargs__(self) -> tuple[str, tuple[str, ...]]:
        return self.namespace, self.path

    namespace: str = property(itemgetter(0))  # type: ignore[assignment]
    path: tuple[str, ...] = property(itemgetter(1))  # type: ignore[assignment]

    @classmethod
    def parse(cls, text: str) -> Topic:
        """Parse `A:B:C` or `A/B/C`; the root and each step may have a `{namespace}` prefix."""
        text = text.strip(" \t\r\n")
        check_length(text)
        if not _is_topic(text):
            raise invalid(text, "write names joined by ':' or '/', such as A:B:C or {urn:example}A:B:C")
        steps = _topic_steps(text)
        namespace, brace, root = steps[0].rpartition("}")
        return cls(namespace[1:] if brace else HPWSN_TOPICS, (root, *steps[1:]))

    def __repr__(self) -> str:
        return f"Topic(namespace={self.namespace!r}, path={self.path!r})"

    def __str__(self) -> str:
        root = "" if self.namespace == HPWSN_TOPICS else f"{{{self.namespace}}}"
        return root + ":".join(self.path)

    @property
    def name(self) -> str:
        """The last name of the path."""
        return self.path[-1]

    @property
    def parent(self) -> Topic | None:
        """The parent topic; None for a root topic."""
        return _unchecked_topic(self.namespace, self.path[:-1]) if len(self.path) > 1 else None

    def child(self, step: str) -> Topic:
        """The child topic with this name."""
        check_steps(len(self.path) + 1)
        below = _unchecked_topic(self.namespace, (*self.path, checked_step(step, self.namespace)))
        check_length(str(below))
        return below

    def ancestors(self) -> Iterator[Topic]:
        """The ancestors, the parent first."""
        for length in range(len(self.path) - 1, 0, -1):
            yield _unchecked_topic(self.namespace, self.path[:length])

    def covers(self, other: Topic) -> bool:
        """Whether the other topic is this topic or a descendant of it."""
        return self.path == other.path[: len(self.path)] and self.namespace == other.namespace


def _unchecked_topic(namespace: str, path: tuple[str, ...]) -> Topic:
    """A topic from valid parts, without the checks, which would dominate the cost of a large topic tree."""
    return tuple.__new__(Topic, (namespace, path))


def parse_topic_set(element: etree._Element) -> tuple[Topic, ...]:
    """The topics of a wstop:TopicSet, in document order."""
    found = []
    for root in element.iterchildren("{*}*"):
        namespace, _, name = root.tag[1:].rpartition("}")
        if namespace and not root.tag.startswith(_STANDARD):
            found += [Topic(namespace, path) for path in _paths(root, (name,))]
    return tuple(found)


def _paths(element: etree._Element, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if element.get(_TOPIC_ATTRIBUTE, "").strip() in ("true", "1"):
        yield path
    for child in element.iterchildren("*"):
        if not child.tag.startswith(_STANDARD):
            yield from _paths(child, (*path, child.tag))


def checked_step(step: str, namespace: str) -> str:
    """Return the step, without its namespace if that is the topic's; raise the fault if it is not valid."""
    found = _split_step(step)
    if not found:
        raise InvalidTopicExpressionFault(
            f"{shown(step)} is not a topic name; begin with a letter or '_', then use digits, '-' and '.' too"
        )
    if found[1] is None or found[1] == namespace:
        return found[2]
    check_namespace(found[1])
    return step


def check_namespace(uri: str) -> str:
    """Return the URI if it can be a topic namespace, else raise the fault."""
    if len(uri) > MAX_CHARACTERS or not _can_be_bound(uri):
        raise InvalidTopicExpressionFault(
            f"{shown(uri)} cannot be a topic namespace; use a URI, such as urn:example"
        )
    return uri


@lru_cache(1024)
def _can_be_bound(uri: str) -> bool:
    """Whether a prefix can be bound to the URI, as for all URIs except the two of XML."""
    try:
        return bool(uri) and parse_xml(f'<a xmlns:p="{escape_attribute(uri)}"/>'.encode()).nsmap == {"p": uri}
    except (SoapFault, ValueError):
        return False


def check_steps(number: int) -> None:
    """Reject empty paths and paths that are too deep."""
    if not 0 < number <= MAX_STEPS:
        raise InvalidTopicExpressionFault(f"the topic has {number} steps; use 1 to {MAX_STEPS}")


def check_length(text: str) -> None:
    """Reject texts that are too long."""
    if len(text) > MAX_CHARACTERS:
        raise invalid(text, f"it has {len(text)} characters; at most {MAX_CHARACTERS} are allowed")


def invalid(text: str, remedy: str) -> InvalidTopicExpressionFault:
    """The fault for an invalid topic expression, with the remedy."""
    return InvalidTopicExpressionFault(f"{shown(text)} is not a topic expression: {remedy}")


def shown(text: str) -> str:
    """The repr of a value for error messages, at most 80 characters of it."""
    return repr(text if len(text) <= 80 else text[:77] + "...")
