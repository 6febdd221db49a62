"""XPath 1.0 queries on the resource properties document (WS-ResourceProperties 1.2, rp-2).

The module compiles and evaluates queries and encodes the results. It rejects other dialects, invalid
expressions, and queries above the cost limit of xpath_cost or the caller's size limit. The schema of the
response requires elements, so other results are encoded in `hp:result`.
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
"""A function of the document, its encoded form and the maximum bytes; returns the encoded results."""


def compile_query(query: ContentFilter) -> Query:
    """Compile a query to a function whose context node is the root element of the document."""
    if query.dialect != DIALECT_XPATH:
        raise UnknownQueryExpressionDialectFault(
            f"the query dialect {shown(query.dialect)} is unknown; use {DIALECT_XPATH}"
        )
    try:
        compile_content(query)
    except InvalidMessageContentExpressionFault as fault:
        raise InvalidQueryExpressionFault(fault.description) from None
    growth = power(_literals("''", query.expression))
    # lxml cannot return the document node, but it can return the root element.
    expression = "/*" if query.expression == "/" else query.expression
    select = etree.XPath(expression, namespaces=dict(query.namespaces), regexp=False, smart_strings=False)

    def find(document: etree._Element, whole: bytes, most: int) -> tuple[bytes, ...]:
        if growth > 1 and int(cast(float, _number_of_elements(document))) ** growth > BUDGET:
            raise QueryEvaluationErrorFault(
                f"{shown(query.expression)} takes too many steps on these properties; simplify it"
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
            # A namespace node is a tuple of prefix and URI; an attribute or a text is its value.
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
            raise QueryEvaluationErrorFault(f"the result of the query exceeds {most} bytes; select less")
        found.append(result)
    return tuple(found)
