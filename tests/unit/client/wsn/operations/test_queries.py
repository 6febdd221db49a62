"""Queries over documents of properties: what they find, what they may cost, and what is refused."""

import pytest
from lxml import etree

from hpwsn_client.wsn.operations.filters import ContentFilter
from hpwsn_client.wsn.operations.queries import compile_query
from hpwsn_client.wsn.soap.faults import (
    InvalidQueryExpressionFault,
    QueryEvaluationErrorFault,
    UnknownQueryExpressionDialectFault,
)
from hpwsn_client.wsn.soap.names import DIALECT_XPATH

DOCUMENT = etree.fromstring(
    '<r:doc xmlns:r="urn:r"><r:fixed>true</r:fixed><r:dialect at="1">a</r:dialect>'
    "<r:dialect>b</r:dialect></r:doc>"
)
RESULT = '<hp:result xmlns:hp="urn:hpwsn:1" type="{}">{}</hp:result>'


def find(expression: str, document: etree._Element = DOCUMENT, most: int = 10_000) -> list[str]:
    query = ContentFilter(DIALECT_XPATH, expression, (("r", "urn:r"),))
    return [found.decode() for found in compile_query(query)(document, b"<whole/>", most)]


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("r:fixed", ['<r:fixed xmlns:r="urn:r">true</r:fixed>']),
        ("/r:doc/r:dialect[2]", ['<r:dialect xmlns:r="urn:r">b</r:dialect>']),
        ("//r:dialect/@at", [RESULT.format("string", "1")]),
        ("//r:dialect/text()", [RESULT.format("string", "a"), RESULT.format("string", "b")]),
        ("count(//r:dialect)", [RESULT.format("number", "2")]),
        ("1 div 0", [RESULT.format("number", "INF")]),
        ("number('x')", [RESULT.format("number", "NaN")]),
        ("r:fixed = 'true'", [RESULT.format("boolean", "true")]),
        ("concat(r:fixed, '&<')", [RESULT.format("string", "true&amp;&lt;")]),
        ("//r:nothing", [RESULT.format("none", "")]),
        (".", ["<whole/>"]),
        ("/", ["<whole/>"]),
        ("/*", ["<whole/>"]),
    ],
)
def test_whatever_a_query_finds_is_an_element(expression: str, found: list[str]) -> None:
    assert find(expression) == found


@pytest.mark.parametrize(
    "expression", ["", "1 +", "$x", "no:prefix", "document('x')", "//*[//*[//*[//*[//*]]]]", "a" * 5000, "1)"]
)
def test_what_is_no_xpath_is_refused(expression: str) -> None:
    with pytest.raises(InvalidQueryExpressionFault):
        find(expression)


def test_another_dialect_is_unknown() -> None:
    with pytest.raises(UnknownQueryExpressionDialectFault):
        compile_query(ContentFilter("http://www.w3.org/TR/2007/REC-xpath20-20070123", "a"))


def test_a_query_that_takes_too_many_steps_on_a_document_is_not_carried_out() -> None:
    wide = etree.fromstring(f"<doc>{'<a/>' * 3000}</doc>")
    assert find("count(//a[../a])", DOCUMENT) == [RESULT.format("number", "0")]
    with pytest.raises(QueryEvaluationErrorFault):
        find("count(//a[../a])", wide)


def test_an_answer_is_bounded() -> None:
    deep = etree.fromstring("<a>" * 200 + "</a>" * 200)
    with pytest.raises(QueryEvaluationErrorFault, match="1000 bytes"):
        find("//a", deep, most=1000)
