"""Queries over a document of resource properties in XPath 1.0 (WS-ResourceProperties 1.2, rp-2).

Owns how a query is compiled, carried out and answered. Refuses other dialects, expressions that could never
be evaluated, and those whose work or answer would grow beyond the bounds of xpath_cost and of the caller. The
schema of the answer wants an element, so whatever else a query finds comes inside `hp:result`.
"""

import re
from collections.abc import Callable, Iterator
from typing import cast

from lxml import etree

from hpwsn_client.wsn.operations.filters import ContentFilter, compile_content
from hpwsn_client.wsn.operations.xpath_cost import BUDGET, power
from hpwsn_client.wsn.soap.faults import (
    InvalidMessageContentExpressionFault,
    InvalidQueryExpressionFault,
    QueryEvaluationErrorFault,
    UnknownQueryExpressionDialectFault,
)
from hpwsn_client.wsn.soap.names import DIALECT_XPATH, HPWSN
from hpwsn_client.wsn.soap.xml import encode_element, escape, replace_illegal
from hpwsn_client.wsn.topics.topic import shown

_literals = re.compile(r"\"[^\"]*\"|'[^']*'").sub
_number_of_elements = etree.XPath("count(//*)")

Query = Callable[[etree._Element, bytes, int], tuple[bytes, ...]]
"""What finds elements in a document, given how the whole of it is answered, in at most so many bytes."""


def compile_query(query: ContentFilter) -> Query:
    """What carries the query out on the root element of a document, which is its context."""
    if query.dialect != DIALECT_XPATH:
        raise UnknownQueryExpressionDialectFault(
            f"the query dialect {shown(query.dialect)} is unknown; use {DIALECT_XPATH}"
        )
    try:
        compile_content(query)
    except InvalidMessageContentExpressionFault as fault:
        raise InvalidQueryExpressionFault(fault.description) from None
    growth = power(_literals("''", query.expression))
    # lxml has no value for the document itself, but one for its root.
    expression = "/*" if query.expression == "/" else query.expression
    select = etree.XPath(expression, namespaces=dict(query.namespaces), regexp=False, smart_strings=False)

    def find(document: etree._Element, whole: bytes, most: int) -> tuple[bytes, ...]:
        if growth > 1 and int(cast(float, _number_of_elements(document))) ** growth > BUDGET:
            raise QueryEvaluationErrorFault(
                f"{shown(query.expression)} takes too many steps on these properties: make it flatter"
            )
        try:
            return _bounded(_results(select(document), document, whole), most)
        except etree.LxmlError as error:
            raise QueryEvaluationErrorFault(f"{shown(query.expression)} failed: {error}") from None

    return find


def _results(value: object, root: etree._Element, whole: bytes) -> Iterator[bytes]:
    if not isinstance(value, list):
        yield _result(*_written(value))
        return
    for node in value:
        if isinstance(node, etree._Element):
            yield whole if node is root else encode_element(node)
        else:
            # A namespace node comes as prefix and URI, an attribute or a text as its value.
            yield _result("string", str(node[1] if isinstance(node, tuple) else node))
    if not value:
        yield _result("none", "")


def _written(value: object) -> tuple[str, str]:
    if isinstance(value, bool):
        return "boolean", "true" if value else "false"
    if isinstance(value, float):
        return "number", f"{value:.17g}".replace("nan", "NaN").replace("inf", "INF")
    return "string", str(value)


def _result(kind: str, text: str) -> bytes:
    return f'<hp:result xmlns:hp="{HPWSN}" type="{kind}">{escape(replace_illegal(text))}</hp:result>'.encode()


def _bounded(results: Iterator[bytes], most: int) -> tuple[bytes, ...]:
    found, size = [], 0
    for result in results:
        size += len(result)
        if size > most:
            raise QueryEvaluationErrorFault(f"the query finds more than {most} bytes: ask for less")
        found.append(result)
    return tuple(found)
