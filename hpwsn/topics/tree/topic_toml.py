"""The TOML text of a topic file: text in, declarations out, and back.

A topic is a table. Its subtopics are tables inside it, and its other keys are its properties::

    namespace = "urn:hpwsn:topics"      # of the topics below; this is the default

    [topics.ALL]
    description = "Everything"

    [topics.ALL.ALARM]
    description = "Needs attention at once"
    routing = "tcp"                     # or "udp"; left out: the routing layer decides
    visibility = "internal"             # with all below it; left out: that of the topic above, or "public"

    [[namespaces]]                      # topics of one more namespace
    uri = "http://example.com/weather"
    [namespaces.topics.Storm]

A key can also be a path, `[topics."ALL:ALARM"]`. Only this form can declare a subtopic called `description`,
`routing` or `visibility` of a topic that has that key. A step from another namespace than its root's is
written "{namespace}name". Unknown keys are errors, since most of them are typing mistakes.
"""

import re
import tomllib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hpwsn.topics.tree.declarations import (
    ROUTING_POLICIES,
    VISIBILITIES,
    Declaration,
    EditError,
    checked_visibility,
    with_parents,
)
from hpwsn.topics.tree.toml_limits import toml_problem
from hpwsn_client.wsn.soap.faults import InvalidTopicExpressionFault
from hpwsn_client.wsn.soap.names import HPWSN_TOPICS
from hpwsn_client.wsn.topics.topic_expressions import Topic

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+\Z")
_STEP = re.compile(r"(?:\{[^{}]*\})?[^:/{}]+")
_PATH = re.compile(rf"{_STEP.pattern}(?:[:/]{_STEP.pattern})*\Z")
_ATTRIBUTES = ("description", "routing", "visibility")
PARTS_PER_TOPIC = 20
"""The parts of keys that a text may have, times the topics that it may have."""
_HEADER = "# Topics of HPwsn; `hpwsn topics` rewrites this file, and comments in it do not survive that."


class DocumentError(ValueError):
    """The text is not a valid topic file; the message names the key and the remedy."""


@dataclass(frozen=True, slots=True)
class Document:
    """The content of a topic file; the topics of `namespace` are directly under [topics]."""

    declarations: tuple[Declaration, ...]
    namespace: str = HPWSN_TOPICS


def parse_document(text: str, most: int | None = None) -> Document:
    """Parse a topic file; its topics are in breadth-first order.

    DocumentError if it has more than `most` topics, as far as possible before it is parsed.
    """
    try:
        return _parse_document(text, most)
    except DocumentError:
        raise
    except ValueError as error:
        # Python refuses to read or write a number of thousands of digits.
        raise DocumentError(f"a value cannot be read: {error}") from None


def _parse_document(text: str, most: int | None) -> Document:
    data = _parse_toml(text, None if most is None else most * PARTS_PER_TOPIC)
    _refuse_unknown(data, ("namespace", "topics", "namespaces"), "")
    namespace = _uri(data.get("namespace", HPWSN_TOPICS), "namespace")
    found = _at_most(most, _walk(namespace, data.get("topics", {}), "topics"), [])
    for index, section in enumerate(_sections(data.get("namespaces", []))):
        place = f"namespaces[{index}]"
        _refuse_unknown(section, ("uri", "topics"), place)
        uri = _uri(section.get("uri"), f"{place}.uri")
        found = _at_most(most, _walk(uri, section.get("topics", {}), f"{place}.topics"), found)
    try:
        return Document(tuple(checked_visibility(with_parents(_once(found)))), namespace)
    except EditError as error:
        raise DocumentError(str(error)) from None


def encode_document(document: Document) -> str:
    """Encode a topic file: topics grouped by namespace, each tree depth-first."""
    by_namespace: dict[str, list[Declaration]] = {document.namespace: []}
    for declaration in document.declarations:
        by_namespace.setdefault(declaration.topic.namespace, []).append(declaration)
    lines = [_HEADER]
    if document.namespace != HPWSN_TOPICS:
        lines.append(f"namespace = {_quote(document.namespace)}")
    for namespace, declarations in by_namespace.items():
        first = namespace == document.namespace
        if not first:
            lines += ["", "[[namespaces]]", f"uri = {_quote(namespace)}"]
        lines += _tables("topics" if first else "namespaces.topics", declarations)
    return "\n".join(lines) + "\n"


def _at_most(
    most: int | None, more: Iterable[tuple[Declaration, str]], found: list[tuple[Declaration, str]]
) -> list[tuple[Declaration, str]]:
    for each in more:
        found.append(each)
        if most is not None and len(found) > most:
            raise DocumentError(f"it has more than {most} topics; split it, or use `hpwsn topics`")
    return found


def _parse_toml(text: str, most_parts: int | None) -> dict[str, Any]:
    problem = toml_problem(text, most_parts)
    if problem is not None:
        raise DocumentError(problem)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DocumentError(f"not valid TOML: {error}") from None
    except RecursionError:
        raise DocumentError("tables are nested too deeply: write them as [topics.A.B] headers") from None


def _walk(namespace: str, topics: Any, place: str) -> Iterator[tuple[Declaration, str]]:
    waiting: deque[tuple[tuple[str, ...], dict[str, Any], str]] = deque([((), _table(topics, place), place)])
    while waiting:
        path, table, place = waiting.popleft()
        for key, value in table.items():
            where = f"{place}.{_key(key)}"
            if isinstance(value, dict):
                topic = _topic(namespace, path, key, where)
                yield _declaration(topic, value, where), where
                waiting.append((topic.path, value, where))
            elif not path or key not in _ATTRIBUTES:
                raise DocumentError(f"{where}: a topic is a table, so write [{where}]{_attribute_hint(path)}")


def _attribute_hint(path: tuple[str, ...]) -> str:
    return f"; the keys of a topic are {', '.join(_ATTRIBUTES)}" if path else ""


def _declaration(topic: Topic, table: Mapping[str, Any], place: str) -> Declaration:
    description = table.get("description", "")
    routing, visibility = table.get("routing"), table.get("visibility")
    if not isinstance(description, str | dict):
        raise DocumentError(f"{place}.description = {description!r}: it must be a text in quotes")
    if not isinstance(routing, dict) and routing not in (None, *ROUTING_POLICIES):
        raise DocumentError(f'{place}.routing = {routing!r}: it must be "udp", "tcp" or left out')
    if not isinstance(visibility, dict) and visibility not in (None, *VISIBILITIES):
        raise DocumentError(
            f'{place}.visibility = {visibility!r}: it must be "internal", "public" or left out'
        )
    return Declaration(
        topic,
        description=description if isinstance(description, str) else "",
        routing=routing if isinstance(routing, str) else None,
        visibility=visibility if isinstance(visibility, str) else None,
    )


def _topic(namespace: str, path: tuple[str, ...], key: str, place: str) -> Topic:
    steps = tuple(_STEP.findall(key)) if _PATH.match(key) else (key,)
    try:
        return Topic(namespace, path + steps)
    except InvalidTopicExpressionFault as fault:
        raise DocumentError(f"{place}: {fault.reason}") from None


def _once(found: Iterable[tuple[Declaration, str]]) -> Iterator[Declaration]:
    places: dict[Topic, str] = {}
    for declaration, place in found:
        first = places.setdefault(declaration.topic, place)
        if first != place:
            raise DocumentError(
                f"{place}: topic {declaration.topic} is declared at {first} already; keep one of them"
            )
        yield declaration


def _table(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DocumentError(f"{place} = {value!r}: it must be a table, written as [{place}]")
    return value


def _sections(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise DocumentError("namespaces: it must be a list of tables, each written as [[namespaces]]")
    return [_table(section, f"namespaces[{index}]") for index, section in enumerate(value)]


def _uri(value: Any, place: str) -> str:
    if not isinstance(value, str) or not value or re.search(r"[\s{}]", value):
        raise DocumentError(f'{place} = {value!r}: it must be a URI, such as "http://example.com/topics"')
    return value


def _refuse_unknown(table: Mapping[str, Any], known: tuple[str, ...], place: str) -> None:
    for key in table:
        if key not in known:
            where = f"{place}.{_key(key)}" if place else _key(key)
            raise DocumentError(f"{where}: unknown key; known here are {', '.join(known)}")


def _tables(prefix: str, declarations: Iterable[Declaration]) -> Iterator[str]:
    by_topic = {declaration.topic: declaration for declaration in declarations}
    for declaration in sorted(by_topic.values(), key=lambda item: item.topic.path):
        yield ""
        yield f"[{prefix}.{_header(declaration.topic, by_topic)}]"
        if declaration.description:
            yield f"description = {_quote(declaration.description)}"
        if declaration.routing:
            yield f"routing = {_quote(declaration.routing)}"
        if declaration.visibility:
            yield f"visibility = {_quote(declaration.visibility)}"


def _header(topic: Topic, known: Mapping[Topic, Declaration]) -> str:
    keys: list[str] = []
    for depth, step in enumerate(topic.path):
        parent = known.get(Topic(topic.namespace, topic.path[:depth])) if depth else None
        if parent is not None and step in _ATTRIBUTES and getattr(parent, step):
            keys[-1] = f"{keys[-1]}:{step}"
        else:
            keys.append(step)
    return ".".join(map(_key, keys))


def _key(text: str) -> str:
    return text if _BARE_KEY.match(text) else _quote(text)


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{"".join(map(_escape, escaped))}"'


def _escape(character: str) -> str:
    return f"\\u{ord(character):04x}" if ord(character) < 32 or ord(character) == 127 else character
