"""Filters that would take a square or more of the payload's nodes are known for it, and bounded."""

from collections.abc import Callable

import pytest
from lxml import etree

from hpwsn_client.wsn.operations.filters import ContentFilter, compile_content
from hpwsn_client.wsn.operations.xpath_cost import power
from hpwsn_client.wsn.soap.faults import InvalidMessageContentExpressionFault
from hpwsn_client.wsn.soap.names import DIALECT_XPATH


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("/car/speed > 60", 1),
        ("//speed > 60 or //colour = 3", 1),
        ("/cars/car[speed > 60]/@id", 1),
        ("/cars/car[speed > 60][@id]/wheel[air < 2]", 1),
        ("//a//b//c", 1),
        ("3 * 4 > count(/a/b)", 1),
        ("//*[count(//*) > 1]", 2),
        ("/a/b[/a/c]", 2),
        ("/a/b[3 * /a/c]", 2),
        ("/a/b[../c]", 2),
        ("//*[ancestor::a]", 2),
        ("//*/following::*", 2),
        ("//*[following-sibling::b]", 3),
        ("count(//*[count(//*[count(//*) > 0]) > 0]) > 0", 3),
        ("//*[//*[//*[//*[//*]]]]", 5),
    ],
)
def test_the_power_is_that_of_nested_looks_at_the_whole(expression: str, expected: int) -> None:
    assert power(expression) == expected


def _compiled(expression: str) -> Callable[[etree._Element], bool]:
    return compile_content(ContentFilter(DIALECT_XPATH, expression, ()))


def test_a_filter_of_too_high_a_power_is_refused() -> None:
    with pytest.raises(InvalidMessageContentExpressionFault, match="fewer levels"):
        _compiled("//*[//*[//*[//*[//*]]]]")


def test_a_payload_too_large_for_a_filters_power_does_not_match() -> None:
    cube = _compiled("count(//*[count(//*[count(//*) > 0]) > 0]) > 0")
    line = _compiled("count(//*) > 0")
    small = etree.fromstring(b"<a>" + b"<b/>" * 100 + b"</a>")
    large = etree.fromstring(b"<a>" + b"<b/>" * 5000 + b"</a>")
    assert (cube(small), line(small)) == (True, True)
    assert (cube(large), line(large)) == (False, True)
