"""docs/papers.md against the code: a row for each claim of the three papers, and tests that exist.

The claims have no other list in the repository, so it is here: the parts, message formats and test cases of
the thesis, the model, operators, services, algorithms and measurements of the paper on stream data services,
and the parts of the one on sensor virtualisation. Operators and examples come from the code too, so that a
new one needs a row.
"""

from __future__ import annotations

import pytest

from hpwsn.streams.operators import KINDS
from tests.documents import ROOT, prose_of
from tests.tested_claims import exists, rows_of

PAGE = ROOT / "docs" / "papers.md"
EXAMPLES = frozenset(path.stem for path in (ROOT / "hpwsn" / "streams" / "examples").glob("*.toml"))
OURS = frozenset({"sql", "function", "busiest"})
"""Operators and examples that are not of the paper; `function` is its claim that users add operators."""

NEEDED: dict[str, frozenset[str]] = {
    "The broker: parts": frozenset(
        (
            "standalone endpoint",
            "start-up order",
            "four messages",
            "subscribe flow",
            "repeated subscription",
            "unsubscribe frees everything",
            "internal publisher",
            "early drop",
            "unknown topic",
            "asynchronous push",
            "order of a subscription",
            "topic paths",
            "one virtual root",
            "subtree",
            "publishing is one look-up",
            "topic node",
            "breadth-first load",
            "reliable notify",
            "UDP and TCP",
            "policy of a topic",
            "fragmentation",
            "Identification and Fragment",
            "reassembly",
            "pieces are hidden",
            "clusters",
            "representative",
            "forwarding by interest",
            "client package",
            "one object, many subscriptions",
            "topic-tree editor",
            "live edits",
            "monitoring",
            "no DOM on the hot path",
            "outcome of a delivery",
            "receipts",
            "contract of the compatibility endpoint",
            "large messages",
        )
    ),
    "The broker: message formats": frozenset(
        ("WsnProcess", "CreatePullPoint", "Subscribe", "Unsubscribe", "NotificationMessage")
    ),
    "The broker: test cases": frozenset(
        (
            *(f"functional-0{number}" for number in range(1, 7)),
            "performance-01",
            "performance-02",
            "stability-01",
        )
    ),
    "The broker: future work": frozenset(
        ("JSON", "Protocol Buffers", "Linux", "performance-test system", "user interfaces")
    ),
    "Stream services: model": frozenset(
        (
            "event",
            "constraint",
            "operator",
            "request",
            "normal form",
            "outside the constraints",
            "service",
            "inputs",
            "service agent",
            "requests of a service",
            "privacy",
            "windows",
        )
    ),
    "Stream services: operators": frozenset(
        (
            *("filter", "project", "sort", "merge", "join", "function"),
            *("sum", "count", "min", "max", "avg"),
            *("incrSum", "incrCount", "incrMin", "incrMax", "incrAvg"),
        )
    ),
    "Stream services: examples": frozenset(("getANPR", "genTrafficFlow", "inteGPS", "companionVehicles")),
    "Stream services: matching tree": frozenset(
        (
            "paths in alphabetical order",
            "shared prefixes",
            "leaves",
            "predicate lists",
            "settled predicates",
            "children",
            "changes at run time",
            "parallel form",
            "linear partition",
            "partition by visits",
            "bound",
            "PreIndex",
        )
    ),
    "Stream services: delivery modes": frozenset(("polling", "long connection", "push")),
    "Stream services: measurements": frozenset(
        (
            "service latency",
            "random requests",
            "one service per request",
            "same events",
            "matching rate",
            "load of four methods",
            "delivery modes by rate",
        )
    ),
    "Sensor virtualisation": frozenset(
        (
            "three layers",
            "gateways",
            "raw data is filtered",
            "data as events",
            "registry",
            "virtual sensors",
            "general subscribers",
            "special subscribers",
            "normal patterns and unusual states",
            "overlapping and discrete values",
            "category matching",
            "repository",
            "data only for subscriptions",
            "environmental networks",
            "authentication of devices",
        )
    ),
}


ALL = {
    f"{section}: {subject}": named for section in NEEDED for subject, named in rows_of(PAGE, section).items()
}


@pytest.mark.parametrize("section", NEEDED)
def test_every_claim_has_a_row_and_every_row_a_claim(section: str) -> None:
    assert rows_of(PAGE, section).keys() == NEEDED[section]


@pytest.mark.parametrize("named", ALL.values(), ids=ALL)
def test_every_row_names_tests_that_exist(named: list[str]) -> None:
    assert named, "the last cell of the row must name a test, as `tests/…/test_x.py::test_y`"
    assert [test for test in named if not exists(test)] == []


def test_operators_and_examples_of_the_code_have_a_row() -> None:
    assert set(KINDS) - OURS <= NEEDED["Stream services: operators"]
    assert NEEDED["Stream services: examples"] == EXAMPLES - OURS


def test_every_table_of_the_page_is_checked() -> None:
    headings = [line[3:] for _, line in prose_of(PAGE) if line.startswith("## ")]
    assert headings == list(NEEDED)
    lines = [line for _, line in prose_of(PAGE) if line.startswith("|")]
    assert len(lines) == len(ALL) + 2 * len(NEEDED), "a row whose first cell is not in backticks"
