"""The model of the paper on stream data services: events, operators, requests, services."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpwsn.matching.language.constraints import parse_constraints, violations
from hpwsn.matching.language.predicate_parser import parse_predicates
from hpwsn.matching.language.predicates import Operator, Predicate
from hpwsn.streams.definition.builder import Service
from hpwsn.streams.definition.definition import Definition
from hpwsn.streams.definition.problems import DefinitionError
from hpwsn.streams.operators import KINDS
from hpwsn.streams.plan.plan import build_plan, compute
from tests.stream_cases import CASES, DATA, FUNCTIONS, definition
from tests.stream_examples import FLEETS, examples

OPERATORS = {
    "filter", "project", "sort", "sum", "count", "min", "max", "avg", "incrSum", "incrCount", "incrMin",
    "incrMax", "incrAvg", "merge", "join",
}  # fmt: skip
"""The operators of the paper."""
COMPARISONS = ("<", "<=", ">", ">=", "=", "!=")


@pytest.fixture(scope="module")
def definitions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Definition]]:
    folder: Path = tmp_path_factory.mktemp("functions")
    (folder / "operators_of_a_test.py").write_text(FUNCTIONS)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield {name: definition(ops) for name, ops in CASES.items()}
    sys.modules.pop("operators_of_a_test", None)


@pytest.mark.parametrize("case", CASES)
def test_all_events_of_a_stream_have_its_attributes(case: str, definitions: dict[str, Definition]) -> None:
    one = definitions[case]
    names, found = set(build_plan(one).output.schema.names), compute(one, DATA)
    assert found
    assert all(set(event) == names for event in found)


def test_an_operator_has_a_name_a_function_input_streams_and_an_output_stream() -> None:
    plan = build_plan(examples()["companionVehicles"])
    first, second = plan.nodes
    assert [(node.op.op, node.input_names, node.output_name) for node in plan.nodes] == [
        ("count", ("together",), "sightings"),
        ("count", ("sightings",), "cameras"),
    ]
    assert first.step.output == second.step.inputs[0]  # type: ignore[attr-defined]
    assert callable(first.step.run)


def test_there_are_all_operators_of_the_paper_and_users_can_add_theirs() -> None:
    assert set(KINDS) == OPERATORS | {"function", "sql"}


@pytest.mark.parametrize("comparison", COMPARISONS)
def test_a_request_has_predicates_of_attribute_operator_and_value(comparison: str) -> None:
    assert parse_predicates(f"speed {comparison} 60") == (
        (Predicate("speed", Operator(comparison), (60.0,)),),
    )


def test_a_request_in_any_nesting_is_a_disjunction_of_conjunctions() -> None:
    nested = "a > 1 and (b < 2 or (c = 3 and (d != 4 or (e >= 5 and f <= 6))))"
    found = {frozenset(map(str, conjunction)) for conjunction in parse_predicates(nested)}
    assert found == {
        frozenset({"a > 1", "b < 2"}),
        frozenset({"a > 1", "c = 3", "d != 4"}),
        frozenset({"a > 1", "c = 3", "e >= 5", "f <= 6"}),
    }


@pytest.mark.parametrize(
    ("request_", "outside"),
    [
        ("speed > 60", set()),
        ("speed <= 0", {"speed <= 0"}),
        ("longitude > 116 and (speed < 0 or latitude < 39)", {"speed < 0", "latitude < 39"}),
        ("speed > 60 and longitude > 130 and latitude > 32", {"longitude > 130"}),
        ("time < 2009-01-01", {'time < date "2009-01-01T00:00:00+00:00"'}),
        ("time >= 2009-01-01", set()),
    ],
)
def test_a_predicate_outside_the_constraints_is_found(request_: str, outside: set[str]) -> None:
    constraints = parse_constraints(examples()["inteGPS"].ranges)
    found = violations(constraints, parse_predicates(request_))
    assert {str(predicate) for one in found for predicate in one.predicates} == outside


def test_a_service_has_a_uri_inputs_operators_an_output_and_constraints() -> None:
    one = examples()["inteGPS"]
    plan = build_plan(one)
    assert one.uri == "urn:hpwsn:streams:inteGPS"
    assert tuple(one.inputs) == FLEETS
    assert [node.op.op for node in plan.nodes] == ["merge"]
    assert plan.output.schema == plan.inputs["buses"].schema
    assert set(one.ranges) == {"longitude", "latitude", "speed", "time"}


def test_inputs_are_raw_streams_or_other_services() -> None:
    services = examples()
    assert services["genTrafficFlow"].inputs["anpr"].source == "topic"
    flows = services["busiest"].inputs["flows"]
    assert (flows.source, flows.text("topic"), flows.text("service")) == (
        "service",
        services["genTrafficFlow"].topic,
        services["genTrafficFlow"].uri,
    )


@pytest.mark.parametrize("other", ["v INT", "v INT, c STRING, w INT", "v DOUBLE, c STRING"])
def test_a_merge_of_streams_of_different_attributes_is_refused(other: str) -> None:
    built = Service("urn:x", topic="x").input("i", source="topic", topic="i", schema="v INT, c STRING")
    built.input("j", source="topic", topic="j", schema=other).op("merge", input="i", with_="j")
    with pytest.raises(DefinitionError, match=r"operator 1 \(merge\)"):
        build_plan(built.definition())
