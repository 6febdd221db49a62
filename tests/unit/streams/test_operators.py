"""What each operator means, over lists of events."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.streams.definition.builder import Service
from hpwsn.streams.definition.definition import Definition
from hpwsn.streams.definition.problems import DefinitionError
from hpwsn.streams.definition.schema import Event
from hpwsn.streams.plan.plan import build_plan, compute, watermark

SCHEMA = "c STRING, v INT, time TIMESTAMP"
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


def at(second: float) -> datetime:
    return NOON + timedelta(seconds=second)


def event(second: float, v: int | None, c: str = "a") -> Event:
    return {"c": c, "v": v, "time": at(second)}


def service(*ops: dict[str, Any], inputs: Sequence[str] = ("i",), schema: str = SCHEMA) -> Definition:
    built = Service("urn:x", topic="x")
    for name in inputs:
        built.input(name, source="topic", topic=name, schema=schema, lateness="2 s")
    for op in ops:
        built.op(**op)
    return built.definition()


def run(op: dict[str, Any], *events: Event) -> list[tuple[object, ...]]:
    """What one operator gives, as tuples; seconds from noon in place of times."""
    return shown(compute(service(op), {"i": events}))


def shown(events: Sequence[Event]) -> list[tuple[object, ...]]:
    return [
        tuple((one - NOON).total_seconds() if isinstance(one, datetime) else one for one in event.values())
        for event in events
    ]


STREAM = [event(0, 5), event(1, 3, "b"), event(4, None), event(6, 2), event(7, 9, "b"), event(11, 1)]


@pytest.mark.parametrize(
    ("condition", "values"),
    [
        ({"where": "v > 2"}, [5, 3, 9]),
        ({"where": "not v > 2"}, [None, 2, 1]),
        ({"where": "v in (1, 2) or c = 'b' and v < 4"}, [3, 2, 1]),
        ({"where": "exists(v) and time >= 2024-01-01T12:00:06Z"}, [2, 9, 1]),
        ({"attribute": "v", "is": "!=", "value": 9}, [5, 3, 2, 1]),
        ({"attribute": "time", "is": "<", "value": at(4)}, [5, 3]),
        ({"where": "c like 'A%'"}, []),
    ],
)
def test_a_filter_keeps_what_matches(condition: dict[str, object], values: list[int | None]) -> None:
    found = compute(service({"op": "filter", **condition}), {"i": STREAM})
    assert [one["v"] for one in found] == values


def test_a_projection_chooses_renames_and_adds() -> None:
    op = {
        "op": "project",
        "attributes": ["v", "c"],
        "rename": {"v": "speed"},
        "defaults": {"city": "B", "n": 1},
    }
    assert compute(service(op), {"i": STREAM[:1]}) == [{"speed": 5, "c": "a", "city": "B", "n": 1}]


def test_a_renamed_time_is_still_the_time_of_windows() -> None:
    project = {"op": "project", "attributes": ["time"], "rename": {"time": "at"}}
    found = compute(service(project, {"op": "count", "window": "10 s"}), {"i": STREAM})
    assert found == [{"count": 5, "at": at(0)}, {"count": 1, "at": at(10)}]


@pytest.mark.parametrize(
    ("function", "results"),
    [
        ("sum", [("a", 7, 0.0), ("b", 12, 0.0), ("a", 1, 10.0)]),
        ("count", [("a", 2, 0.0), ("b", 2, 0.0), ("a", 1, 10.0)]),
        ("min", [("a", 2, 0.0), ("b", 3, 0.0), ("a", 1, 10.0)]),
        ("max", [("a", 5, 0.0), ("b", 9, 0.0), ("a", 1, 10.0)]),
        ("avg", [("a", 3.5, 0.0), ("b", 6.0, 0.0), ("a", 1.0, 10.0)]),
    ],
)
def test_an_aggregate_is_over_each_window_of_each_group(
    function: str, results: list[tuple[object, ...]]
) -> None:
    op = {"op": function, "attribute": "v", "by": "c", "window": "10 s", "emit": "row"}
    assert run(op, *STREAM) == results


def test_a_count_without_attribute_counts_events_and_an_empty_sum_is_null() -> None:
    assert run({"op": "count", "window": "5 s"}, event(1, None)) == [(1, 0.0)]
    assert run({"op": "count", "attribute": "v", "window": "5 s"}, event(1, None)) == [(0, 0.0)]
    assert run({"op": "sum", "attribute": "v", "window": "5 s"}, event(1, None)) == [(None, 0.0)]


def test_windows_of_time_overlap_where_they_slide() -> None:
    found = run({"op": "count", "window": "10 s", "slide": "5 s"}, event(1, 1), event(6, 1))
    assert found == [(1, -5.0), (2, 0.0), (1, 5.0)]


def test_windows_of_rows_come_when_they_are_full_and_slide_by_rows() -> None:
    op = {"op": "sum", "attribute": "v", "window": "3 rows", "slide": "2 rows"}
    assert run(op, *(event(n, n) for n in range(1, 7))) == [(6, 3.0), (12, 5.0)]


def test_events_are_taken_into_windows_of_rows_by_their_time() -> None:
    op = {"op": "max", "attribute": "v", "window": "2 rows", "emit": "row"}
    assert run(op, event(3, 30), event(1, 10), event(2, 20), event(4, 40)) == [(20, 2.0), (40, 4.0)]


@pytest.mark.parametrize(
    ("function", "results"),
    [
        ("incrSum", [5, 8, 8, 10, 19, 20]),
        ("incrCount", [1, 2, 2, 3, 4, 5]),
        ("incrMin", [5, 3, 3, 2, 2, 1]),
        ("incrMax", [5, 5, 5, 5, 9, 9]),
        ("incrAvg", [5.0, 4.0, 4.0, 10 / 3, 19 / 4, 4.0]),
    ],
)
def test_an_increment_accumulates_over_all_so_far(function: str, results: list[float]) -> None:
    assert [row[0] for row in run({"op": function, "attribute": "v", "emit": "row"}, *STREAM)] == results


def test_an_increment_gives_a_result_at_the_end_of_each_window() -> None:
    rows = {"op": "incrSum", "attribute": "v", "window": "2 rows"}
    assert run(rows, *STREAM) == [(8, 1.0), (10, 6.0), (20, 11.0)]
    span = {"op": "incrSum", "attribute": "v", "by": "c", "window": "5 s"}
    assert run(span, *STREAM) == [("a", 5, 0.0), ("a", 7, 5.0), ("a", 8, 10.0), ("b", 3, 0.0), ("b", 12, 5.0)]


def test_a_sort_orders_each_window_with_what_is_missing_first() -> None:
    op = {"op": "sort", "attribute": "v", "window": "10 s", "rank": "place"}
    assert [row[1] for row in run(op, *STREAM)] == [None, 2, 3, 5, 9, 1]
    assert [row[3] for row in run(op, *STREAM)] == [1, 2, 3, 4, 5, 1]
    assert [row[1] for row in run({**op, "order": "desc"}, *STREAM)] == [9, 5, 3, 2, None, 1]
    assert [row[1] for row in run({**op, "window": "3 rows"}, *STREAM)] == [None, 3, 5, 1, 2, 9]


def test_a_merge_is_all_of_its_streams_and_they_must_agree() -> None:
    op = {"op": "merge", "input": "i", "with": ["j", "k"]}
    found = compute(service(op, inputs="ijk"), {"i": STREAM, "j": [], "k": STREAM[:2]})
    assert found == STREAM + STREAM[:2]


def test_a_join_pairs_within_windows_of_time() -> None:
    op = {"op": "join", "input": "i", "with": "j", "on": "c", "window": "5 s"}
    right = [event(2, 7), event(3, 8, "b"), event(5, 6, "b"), event(9, 1, "z")]
    found = compute(service(op, inputs="ij"), {"i": STREAM, "j": right})
    assert shown(found) == [
        ("a", 5, 0.0, 7, 2.0),
        ("a", None, 4.0, 7, 2.0),
        ("b", 3, 1.0, 8, 3.0),
        ("b", 9, 7.0, 6, 5.0),
    ]
    assert list(found[0]) == ["c", "v", "time", "j_v", "j_time"]


def test_a_join_without_on_is_the_product() -> None:
    op = {"op": "join", "input": "i", "with": "j", "window": "5 s"}
    assert len(compute(service(op, inputs="ij"), {"i": STREAM, "j": STREAM})) == 3 * 3 + 2 * 2 + 1


def test_a_join_of_rows_pairs_the_nth_windows_of_both() -> None:
    op = {"op": "join", "input": "i", "with": "j", "on": "v", "window": "2 rows"}
    left = [event(n, v) for n, v in enumerate([1, 2, 3, 4, 1])]
    right = [event(n, v) for n, v in enumerate([2, 9, 4, 3, 1])]
    found = compute(service(op, inputs="ij"), {"i": left, "j": right})
    assert [(one["v"], one["time"]) for one in found] == [(2, at(1)), (3, at(2)), (4, at(3))]


FUNCTIONS = """\
def repeat(event, times=2):
    return [{"v": event["v"], "time": event["time"]}] * times if event["v"] else None

def spread(events):
    return {"low": events[0]["v"], "high": events[-1]["v"]}
"""


def test_a_function_of_ones_own_is_called_with_events_or_with_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_operators.py").write_text(FUNCTIONS)
    monkeypatch.syspath_prepend(tmp_path)
    events = {"op": "function", "function": "own_operators:repeat", "schema": "v INT, time TIMESTAMP"}
    assert [one[0] for one in run({**events, "arguments": {"times": 1}}, *STREAM)] == [5, 3, 2, 9, 1]
    assert len(run(events, *STREAM)) == 10
    windows = {"op": "function", "function": "own_operators:spread", "schema": "low INT, high INT", "by": "c"}
    assert run({**windows, "window": "10 s"}, *STREAM) == [(5, 2), (3, 9), (1, 1)]
    assert run({**windows, "window": "2 rows"}, *STREAM) == [(5, None), (2, 1), (3, 9)]


def test_constraints_hold_for_all_that_comes_out() -> None:
    built = Service("urn:x", topic="x").input("i", source="topic", topic="i", schema=SCHEMA)
    built.constraint("v", "2 < v < 9").constraint("c", "in ('a', 'b')")
    assert [one["v"] for one in compute(built.definition(), {"i": STREAM})] == [5, 3]


def test_only_windows_that_the_watermark_has_passed_come_out_of_a_running_service() -> None:
    one = service({"op": "count", "window": "5 s"})
    assert watermark(one, {"i": STREAM}) == at(9)
    assert shown(compute(one, {"i": STREAM}, at(9))) == [(3, 0.0)]
    assert shown(compute(one, {"i": STREAM}, at(10))) == [(3, 0.0), (2, 5.0)]


def test_a_sum_of_decimals_is_exact() -> None:
    one = service({"op": "sum", "attribute": "v", "window": "5 s"}, schema="v DECIMAL(4,2), time TIMESTAMP")
    found = compute(one, {"i": [{"v": "0.10", "time": at(0)}, {"v": 0.2, "time": at(1)}]})
    assert found[0]["sum"] == Decimal("0.30")
    assert str(build_plan(one).output.schema) == "sum DECIMAL(14,2), time TIMESTAMP"


MACHINES = [
    {"op": "min", "attribute": "v", "window": "4 rows", "slide": "3 rows"},
    {"op": "max", "attribute": "v", "window": "4 rows", "slide": "3 rows", "emit": "row"},
    {"op": "incrMin", "attribute": "v", "window": "3 rows"},
    {"op": "incrAvg", "attribute": "v", "window": "3 rows"},
    {"op": "sort", "attribute": "v", "window": "2 rows"},
]


@given(st.lists(st.none() | st.integers(0, 9), max_size=30), st.sets(st.integers(0, 30)))
@pytest.mark.parametrize("op", MACHINES, ids=lambda op: op["op"])
def test_a_machine_gives_the_same_however_its_events_are_cut(
    op: dict[str, Any], values: list[int | None], cuts: set[int]
) -> None:
    events = [event(second, value) for second, value in enumerate(values)]
    definition = service(op)
    machine = build_plan(definition).nodes[0].step.state_machine()  # type: ignore[attr-defined]
    state, found = machine.start(), []
    for first, last in zip([0, *sorted(cuts)], [*sorted(cuts), 31], strict=True):
        found += machine.step(state, events[first:last])
    assert found == compute(definition, {"i": events})


@pytest.mark.parametrize(
    ("comparison", "values"),
    [("<", [3, 2, 1]), ("<=", [5, 3, 2, 1]), (">", [9]), (">=", [5, 9]), ("=", [5]), ("!=", [3, 2, 9, 1])],
)
def test_a_filter_has_six_comparisons_and_a_missing_value_satisfies_none(
    comparison: str, values: list[int]
) -> None:
    op = {"op": "filter", "attribute": "v", "is": comparison, "value": 5}
    assert [one["v"] for one in compute(service(op), {"i": STREAM})] == values


def test_a_default_is_only_for_a_new_attribute_and_a_renamed_one_must_exist() -> None:
    for wrong, words in (
        ({"defaults": {"v": 1}}, "v: exists already; defaults are for new attributes"),
        ({"rename": {"w": "x"}}, "w"),
        ({"attributes": ["v"], "rename": {"c": "k"}}, "c"),
    ):
        with pytest.raises(DefinitionError, match=words):
            build_plan(service({"op": "project", **wrong}))


def test_a_sorted_window_slides_in_rows_and_in_time() -> None:
    some = [event(0, 3), event(1, 1), event(2, 2), event(3, 4)]
    rows = {"op": "sort", "attribute": "v", "window": "3 rows", "slide": "1 row"}
    assert [one[1] for one in run(rows, *some)] == [1, 2, 3, 1, 2, 4]
    span = {"op": "sort", "attribute": "v", "order": "desc", "window": "2 s", "slide": "1 s"}
    assert [one[1] for one in run(span, *some)] == [3, 3, 1, 2, 1, 4, 2, 4]
    assert list(build_plan(service(rows)).output.schema.names) == ["c", "v", "time"]


def test_a_join_has_the_attributes_of_both_streams() -> None:
    built = Service("urn:x", topic="x").input("i", source="topic", topic="i", schema=SCHEMA)
    built.input("j", source="topic", topic="j", schema="c STRING, place STRING, time TIMESTAMP")
    built.op("join", input="i", with_="j", on="c", window="10 s", slide="5 s")
    right = [{"c": "a", "place": "north", "time": at(6)}]
    found = compute(built.definition(), {"i": STREAM, "j": right})
    # Two windows have both events, and a pair comes once for each.
    assert shown(found) == [
        ("a", 5, 0.0, "north", 6.0),
        ("a", None, 4.0, "north", 6.0),
        ("a", 2, 6.0, "north", 6.0),
        ("a", 2, 6.0, "north", 6.0),
        ("a", 1, 11.0, "north", 6.0),
    ]
