"""docs/standard.md against the code: a row for all there is, none for what is not, and tests that exist.

What must have a row comes from the code itself: the operations of our WSDL files, the fault classes and
dialects of the wire, the filters and policies that it reads. Only the interoperation rules and the
foreign clients have their lists here.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lxml import etree

from hpwsn_client.wsn.operations import filters, policy
from hpwsn_client.wsn.soap import names
from hpwsn_client.wsn.soap.faults import WsnFault
from tests.documents import ROOT, prose_of
from tests.tested_claims import exists, rows_of

PAGE = ROOT / "docs" / "standard.md"
WSDL = {"wsdl": "http://schemas.xmlsoap.org/wsdl/"}
RULES = frozenset(
    (
        "soap versions",
        "soapaction",
        "ws-addressing",
        "missing dialect",
        "metadata and reference parameters",
        "nothing but an address",
        "forms of time",
        "renew after expiry",
        "named pull points",
        "retained over a pause",
        "onvif clients",
        "own references in deliveries",
    )
)
CLIENTS = frozenset(
    (
        "zeep on our WSDL",
        "zeep on the OASIS contract",
        "onvif-zeep-async",
        "npm soap",
        "Apache CXF's clients",
        "Apache CXF's broker",
        "curl",
        "schemathesis",
        "all doors together",
    )
)
NOT_BUILT_YET: frozenset[str] = frozenset()
"""Names that the code has before what they stand for: each goes from here when its row comes."""


def operations() -> Iterator[str]:
    for path in (ROOT / "wsdl").glob("*.wsdl"):
        for operation in etree.parse(path).iterfind(".//wsdl:portType/wsdl:operation", WSDL):
            yield f"{operation.getparent().get('name')}.{operation.get('name')}"


def filters_and_policies() -> Iterator[str]:
    for tag in (filters._TOPIC, filters._CONTENT, filters._PROPERTIES, policy._USE_RAW):
        yield f"wsnt:{tag.rpartition('}')[2]}"
    for attribute in policy._ATTRIBUTES:
        yield f"hp:Delivery {attribute}"


def dialects() -> Iterator[str]:
    return (value for name, value in vars(names).items() if name.startswith("DIALECT_"))


NEEDED = {
    "Operations": frozenset(operations()),
    "Faults": frozenset(kind.__name__ for kind in WsnFault.by_element.values()),
    "Dialects": frozenset(dialects()),
    "Filters and policies": frozenset(filters_and_policies()),
    "What clients in the field do": RULES,
    "Clients that nobody here wrote": CLIENTS,
}


ALL = {
    f"{section}: {subject}": named for section in NEEDED for subject, named in rows_of(PAGE, section).items()
}


@pytest.mark.parametrize("section", NEEDED)
def test_everything_there_is_has_a_row(section: str) -> None:
    missing = NEEDED[section] - NOT_BUILT_YET - rows_of(PAGE, section).keys()
    assert not missing, f"docs/standard.md, {section}: write a row, with its test, for {sorted(missing)}"


@pytest.mark.parametrize("section", NEEDED)
def test_every_row_is_about_something_there_is(section: str) -> None:
    unknown = rows_of(PAGE, section).keys() - NEEDED[section]
    assert not unknown, f"docs/standard.md, {section}: nothing in the code is called {sorted(unknown)}"


@pytest.mark.parametrize("named", ALL.values(), ids=ALL)
def test_every_row_names_tests_that_exist(named: list[str]) -> None:
    assert named, "the last cell of the row must name a test, as `tests/…/test_x.py::test_y`"
    assert [test for test in named if not exists(test)] == []


def test_every_table_of_the_page_is_checked() -> None:
    headings = [line[3:] for _, line in prose_of(PAGE) if line.startswith("## ")]
    assert headings == list(NEEDED)
    lines = [line for _, line in prose_of(PAGE) if line.startswith("|")]
    assert len(lines) == len(ALL) + 2 * len(NEEDED), "a row whose first cell is not in backticks"


def test_what_is_not_built_yet_is_known_and_has_no_row() -> None:
    known = frozenset[str]().union(*NEEDED.values())
    assert known >= NOT_BUILT_YET
    rows = {subject.partition(": ")[2] for subject in ALL}
    assert not rows & NOT_BUILT_YET, "it has a row now: take it out of NOT_BUILT_YET"


def test_every_rule_has_a_test_of_a_client_from_outside() -> None:
    for rule, named in rows_of(PAGE, "What clients in the field do").items():
        assert any(test.startswith("tests/interop/") for test in named), rule


@pytest.mark.parametrize(
    ("test", "there"),
    [
        ("tests/unit/test_standard_table.py::test_a_name_is_looked_up_in_its_file", True),
        ("tests/system/test_subscriptions_command.py::TestWithANode::test_show_prints_everything", True),
        ("tests/system/test_subscriptions_command.py::TestNothing::test_show_prints_everything", False),
        ("tests/unit/test_standard_table.py::test_that_nobody_wrote", False),
        ("tests/unit/test_standard_table.py", False),
        ("tests/unit/test_none.py::test_x", False),
        ("tests/unit/test_standard_table.py::exists", False),
    ],
)
def test_a_name_is_looked_up_in_its_file(test: str, there: bool) -> None:
    assert exists(test) is there
