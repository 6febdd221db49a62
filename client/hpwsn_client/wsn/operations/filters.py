"""Subscription filters on topic, content and producer properties (WS-BaseNotification 1.3 section 4.2).

The module parses and encodes the Filter element, and compiles content filters in XPath 1.0. It rejects
unknown filters, and expressions with variables, with functions outside XPath 1.0, or with unbound prefixes.
Evaluation never raises: if an expression fails on a payload, the payload does not match.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from lxml import etree

from hpwsn_client.wsn.operations.xpath_cost import BUDGET, MAX_POWER, power
from hpwsn_client.wsn.soap.faults import (
    InvalidFilterFault,
    InvalidMessageContentExpressionFault,
    InvalidProducerPropertiesExpressionFault,
)
from hpwsn_client.wsn.soap.names import DIALECT_PREDICATES, DIALECT_XPATH, WSNT, wsnt
from hpwsn_client.wsn.soap.sequence import children_of
from hpwsn_client.wsn.soap.soap_faults import InvalidMessage, SoapFault
from hpwsn_client.wsn.soap.wrong_namespace import namespace_hint
from hpwsn_client.wsn.soap.xml import NCNAME, escape, escape_attribute
from hpwsn_client.wsn.topics.topic import shown
from hpwsn_client.wsn.topics.topic_expressions import TopicExpression, encode_topic, parse_topic

MAX_FILTERS = 256
MAX_CHARACTERS = 4096

_TOPIC, _CONTENT, _PROPERTIES = wsnt("TopicExpression"), wsnt("MessageContent"), wsnt("ProducerProperties")

_NODE_TYPES = frozenset(["comment", "text", "processing-instruction", "node"])
# fmt: off
_FUNCTIONS = frozenset((
    "last", "position", "count", "id", "local-name", "namespace-uri", "name", "string", "concat",
    "starts-with", "contains", "substring-before", "substring-after", "substring", "string-length",
    "normalize-space", "translate", "boolean", "not", "true", "false", "lang", "number", "sum", "floor",
    "ceiling", "round",
))
# fmt: on
_literals = re.compile(r"\"[^\"]*\"|'[^']*'").sub
# Each match consumes a whole name, so that a scan takes time linear in the text.
_prefixes = re.compile(rf"({NCNAME}+)(:(?!:)|)").finditer
_calls = re.compile(rf"((?:{NCNAME}+:(?!:))?{NCNAME}+)(\s*+\(|)").finditer
# Operators may precede a parenthesis too, as in `a and (b or c)`.
_OPERATORS = frozenset(["and", "or", "div", "mod"])
# Syntax that only XPath has, outside of quotes: paths, positions, prefixes, the context node.
_is_path = re.compile(r"[/@\[$|*]|::|[^\W\d][\w.\-]*:[^\W\d]|(?:^|[\s(,=<>])\.{1,2}(?=$|[\s),=<>!])").search
_quoted = re.compile(r"`[^`]*`|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'", re.S).sub
_TRIAL = etree.fromstring("<trial at='1'><leaf>1</leaf></trial>")
_number_of_elements = etree.XPath("count(//*)")


class XPathPlace(ValueError):
    """Where an XPath expression is wrong: `column` counts characters from 1. It is the cause of a fault."""

    def __init__(self, column: int) -> None:
        super().__init__(f"column {column}")
        self.column = column


@dataclass(frozen=True, slots=True)
class ContentFilter:
    """A filter expression with its dialect and the prefixes that it uses."""

    dialect: str
    expression: str
    namespaces: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Filter:
    """A subscription's filter; a notification must match all parts, and an empty filter matches all."""

    topics: tuple[TopicExpression, ...] = ()
    content: tuple[ContentFilter, ...] = ()
    producer_properties: tuple[ContentFilter, ...] = ()


def parse_filter(element: etree._Element) -> Filter:
    """Parse a Filter; InvalidFilterFault lists its unknown parts."""
    children = children_of(element)
    if len(children) > MAX_FILTERS:
        raise InvalidMessage(f"the Filter has {len(children)} parts, more than the {MAX_FILTERS} accepted")
    unknown = {child.tag: None for child in children if child.tag not in (_TOPIC, _CONTENT, _PROPERTIES)}
    if unknown:
        names = ", ".join(map(shown, unknown))
        raise InvalidFilterFault(
            f"unknown filters: {names}; use TopicExpression, MessageContent or ProducerProperties"
            f"{namespace_hint(children, (_TOPIC, _CONTENT, _PROPERTIES))}",
            unknown_filters=tuple(unknown),
        )
    return Filter(
        tuple(parse_topic(child) for child in element.iterchildren(_TOPIC)),
        tuple(
            parse_query(each, InvalidMessageContentExpressionFault) for each in element.iterchildren(_CONTENT)
        ),
        tuple(
            parse_query(each, InvalidProducerPropertiesExpressionFault)
            for each in element.iterchildren(_PROPERTIES)
        ),
    )


def encode_filter(wanted: Filter) -> bytes:
    """Encode a Filter element."""
    return b"".join(
        (
            f'<wsnt:Filter xmlns:wsnt="{WSNT}">'.encode(),
            *(encode_topic(topic, _TOPIC) for topic in wanted.topics),
            *(_encode_query(each, "MessageContent") for each in wanted.content),
            *(_encode_query(each, "ProducerProperties") for each in wanted.producer_properties),
            b"</wsnt:Filter>",
        )
    )


def compile_content(content: ContentFilter) -> Callable[[etree._Element], bool]:
    """Compile the filter to a function of a payload, which must be the root element of its document."""
    if content.dialect != DIALECT_XPATH:
        raise InvalidMessageContentExpressionFault(
            f"the dialect {shown(content.dialect)} is unknown; use {DIALECT_XPATH}"
        )
    if len(content.expression) > MAX_CHARACTERS:
        raise InvalidMessageContentExpressionFault(_too_long(content.expression))
    _check_names(content)
    selects = _compile(content)
    growth = power(_literals("''", content.expression))
    if growth > MAX_POWER:
        raise _invalid(content, "its nested predicates search the whole payload; use fewer levels")

    def holds(payload: etree._Element) -> bool:
        if growth > 1 and _element_count(payload) ** growth > BUDGET:
            return False
        try:
            return bool(selects(payload))
        except etree.LxmlError:
            return False

    return holds


def compile_producer_properties(condition: ContentFilter) -> Callable[[etree._Element], bool]:
    """Compile the filter to a function of a producer's properties document."""
    try:
        return compile_content(condition)
    except InvalidMessageContentExpressionFault as fault:
        raise InvalidProducerPropertiesExpressionFault(fault.description) from None


def parse_query(element: etree._Element, fault: Callable[[str], SoapFault]) -> ContentFilter:
    """Parse an element of QueryExpressionType, such as wsnt:MessageContent."""
    if len(element):
        raise fault(
            f"{element.tag} has the child {element[0].tag}; it may have only the text of an expression"
        )
    expression = (element.text or "").strip(" \t\r\n")
    if len(expression) > MAX_CHARACTERS:
        raise fault(_too_long(expression))
    dialect = (element.get("Dialect") or "").strip(" \t\r\n") or DIALECT_XPATH
    prefixed = ":" in expression and dialect != DIALECT_PREDICATES
    return ContentFilter(dialect, expression, _used_bindings(expression, element.nsmap) if prefixed else ())


def likely_dialect(expression: str) -> str:
    """The dialect of an expression without one: predicates, unless it uses syntax that only XPath has."""
    code = _quoted("''", expression)
    calls = {found[1] for found in _calls(code) if found[2]} - {"not"}
    return DIALECT_XPATH if _is_path(code) or calls & _FUNCTIONS else DIALECT_PREDICATES


def _too_long(expression: str) -> str:
    return f"{shown(expression)} has {len(expression)} characters; at most {MAX_CHARACTERS} are allowed"


def _used_bindings(expression: str, namespaces: Mapping[str | None, str]) -> tuple[tuple[str, str], ...]:
    """The bindings that an expression uses, so that equal filters from different envelopes are equal."""
    prefixes = {found[1] for found in _prefixes(_literals("''", expression)) if found[2]}
    return tuple(sorted((prefix, uri) for prefix in prefixes if (uri := namespaces.get(prefix))))


def _encode_query(query: ContentFilter, name: str) -> bytes:
    declared = dict(query.namespaces)
    tag, opening = f"wsnt:{name}", f"<wsnt:{name}"
    if declared.setdefault("wsnt", WSNT) != WSNT:
        tag, opening = name, f'<{name} xmlns="{WSNT}"'
    scope = "".join(f' xmlns:{prefix}="{escape_attribute(uri)}"' for prefix, uri in declared.items())
    dialect = escape_attribute(query.dialect)
    return f'{opening}{scope} Dialect="{dialect}">{escape(query.expression)}</{tag}>'.encode()


def _element_count(payload: etree._Element) -> int:
    return int(cast(float, _number_of_elements(payload)))


def _check_names(content: ContentFilter) -> None:
    """Reject unknown prefixes and functions, which libxml2 reports only when it evaluates them."""
    # Blanks keep the places of what follows a literal.
    code = _literals(lambda literal: f"'{' ' * (len(literal[0]) - 2)}'", content.expression)
    if "$" in code:
        place = XPathPlace(code.index("$") + 1)
        raise _invalid(content, "variables are not supported; write the value itself") from place
    bound = dict(content.namespaces)
    for found in _prefixes(code):
        prefix, colon = found.groups()
        if colon and prefix not in bound and prefix != "xml":
            remedy = f"the prefix {prefix!r} is not bound; declare xmlns:{prefix}"
            raise _invalid(content, remedy) from XPathPlace(found.start() + 1)
    for found in _calls(code):
        name, call = found.groups()
        if call and name not in _FUNCTIONS and name not in _NODE_TYPES and name not in _OPERATORS:
            remedy = f"the function {shown(name)} is unknown; use only functions of XPath 1.0"
            raise _invalid(content, remedy) from XPathPlace(found.start() + 1)


def _compile(content: ContentFilter) -> etree.XPath:
    # Compile it alone first, so that unbalanced parentheses cannot pair with those of boolean().
    _try(content, "", "")
    return _try(content, "boolean(", ")")


def _try(content: ContentFilter, before: str, after: str) -> etree.XPath:
    """Compile the expression between two texts, and evaluate it once; raise the fault if that fails."""
    try:
        selects = etree.XPath(
            f"{before}{content.expression}{after}", namespaces=dict(content.namespaces), regexp=False
        )
        if before:
            selects(_TRIAL)
    except etree.XPathError as error:
        column = _column_of(error, content.expression, len(before))
        raise _invalid(content, f"{error}") from (XPathPlace(column) if column else None)
    except (etree.LxmlError, ValueError, TypeError) as error:
        raise _invalid(content, f"{error}") from None
    return selects


def _column_of(error: etree.XPathError, expression: str, before: int) -> int | None:
    """Where libxml2 has found an error, counted from 1; None if it has no place in the expression."""
    for entry in error.error_log:
        if entry.type == etree.ErrorTypes.XPATH_EXPR_ERROR or entry.column > 0:
            # libxml2 counts bytes from 0.
            read = expression.encode()[: max(entry.column - before, 0)]
            return len(read.decode(errors="ignore")) + 1
    return None


def _invalid(content: ContentFilter, remedy: str) -> InvalidMessageContentExpressionFault:
    return InvalidMessageContentExpressionFault(
        f"{shown(content.expression)} is not a valid XPath 1.0 filter: {remedy}"
    )
