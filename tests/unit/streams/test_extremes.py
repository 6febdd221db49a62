"""min, max, incrMin and incrMax give the event that has the extreme value, by a definition in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cmp_to_key
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.streams.definition.builder import Service
from hpwsn.streams.definition.definition import Definition
from hpwsn.streams.definition.problems import DefinitionError
from hpwsn.streams.definition.schema import Event
from hpwsn.streams.plan.plan import build_plan, compute

SCHEMA = "c STRING, v INT, note STRING, time TIMESTAMP"
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


def event(second: float, v: int | None, note: str | None = None, c: str | None = "a") -> Event:
    return {"c": c, "v": v, "note": note, "time": NOON + timedelta(seconds=second)}


def second_of(one: Event) -> float:
    time = one["time"]
    assert isinstance(time, datetime)
    return (time - NOON).total_seconds()


def service(op: dict[str, Any], schema: str = SCHEMA) -> Definition:
    built = Service("urn:x", topic="x").input("i", source="topic", topic="i", schema=schema)
    return built.op(**op).definition()


def run(op: dict[str, Any], *events: Event) -> list[Event]:
    return compute(service(op), {"i": events})


SIX = [event(0, 5), event(1, 3, c="b"), event(4, None), event(6, 2), event(7, 9, c="b"), event(11, 1)]


@pytest.mark.parametrize(
    ("op", "places"),
    [
        ({"op": "min", "window": "10 s"}, [3, 5]),
        ({"op": "max", "window": "10 s"}, [4, 5]),
        ({"op": "max", "window": "10 s", "by": "c"}, [0, 4, 5]),
        ({"op": "max", "window": "10 s", "slide": "5 s"}, [0, 4, 4, 5]),
        ({"op": "min", "window": "3 rows"}, [1, 5]),
        ({"op": "max", "window": "3 rows", "slide": "1 row"}, [0, 1, 4, 4]),
        ({"op": "max", "window": "2 rows", "by": "c"}, [0, 3, 4]),
        ({"op": "incrMin"}, [0, 1, 1, 3, 3, 5]),
        ({"op": "incrMax"}, [0, 0, 0, 0, 4, 4]),
        ({"op": "incrMax", "window": "2 rows"}, [0, 0, 4]),
        ({"op": "incrMin", "window": "5 s"}, [1, 3, 5]),
        ({"op": "incrMax", "window": "5 s", "by": "c"}, [0, 0, 0, 1, 4]),
    ],
)
def test_the_event_with_the_extreme_value_comes_out_whole(op: dict[str, Any], places: list[int]) -> None:
    assert run({**op, "attribute": "v"}, *SIX) == [SIX[place] for place in places]
    assert run({**op, "attribute": "v", "emit": "event"}, *SIX) == [SIX[place] for place in places]


def test_the_output_has_the_attributes_and_the_time_of_the_input() -> None:
    for op in ("min", "max", "incrMin", "incrMax"):
        output = build_plan(service({"op": op, "attribute": "v", "window": "10 s"})).output
        assert (str(output.schema), output.time) == (SCHEMA, "time")


def test_constraints_hold_for_the_extreme_event() -> None:
    built = Service("urn:x", topic="x").input("i", source="topic", topic="i", schema=SCHEMA)
    built.op("max", attribute="v", window="10 s").constraint("v", "> 5").constraint("c", "= 'b'")
    assert compute(built.definition(), {"i": SIX}) == [SIX[4]]


def test_of_equal_values_the_earliest_is_taken_and_of_equal_times_the_first_of_a_sort() -> None:
    some = [event(2, 7, "late"), event(1, 7, "b"), event(1, 7, "a"), event(1, 7, None), event(0, 4, "z")]
    assert run({"op": "max", "attribute": "v", "window": "10 s"}, *some) == [event(1, 7, "b")]
    high = some[:4]
    assert run({"op": "min", "attribute": "v", "window": "10 s"}, *high) == [event(1, 7, None)]
    assert run({"op": "max", "attribute": "v", "window": "5 rows"}, *some) == [event(1, 7, "b")]


def test_an_equal_later_value_does_not_replace_the_last_output() -> None:
    for window in ({}, {"window": "5 s"}, {"window": "1 row"}):
        found = run({"op": "incrMax", "attribute": "v", **window}, event(0, 7), event(6, 7), event(11, 8))
        assert found == [event(0, 7), event(0, 7), event(11, 8)]


def test_a_window_without_values_gives_nothing_and_an_increment_its_last_output() -> None:
    some = [event(0, None), event(6, 4), event(12, None)]
    assert run({"op": "max", "attribute": "v", "window": "5 s"}, *some) == [event(6, 4)]
    assert run({"op": "max", "attribute": "v", "window": "1 row"}, *some) == [event(6, 4)]
    for window in ({}, {"window": "5 s"}):
        assert run({"op": "incrMin", "attribute": "v", **window}, *some) == [event(6, 4)] * 2


def test_only_windows_that_the_watermark_has_passed_come_out_of_a_running_service() -> None:
    until = NOON + timedelta(seconds=11)
    windows = service({"op": "max", "attribute": "v", "window": "5 s"})
    assert compute(windows, {"i": SIX}, until) == [SIX[0], SIX[4]]
    running = service({"op": "incrMin", "attribute": "v", "window": "5 s"})
    assert compute(running, {"i": SIX}, until) == [SIX[1], SIX[3]]


def test_a_late_event_belongs_to_its_window_and_wins_over_an_equal_one_that_came_before() -> None:
    late = [event(8, 7, "first to come"), event(2, 7, "earlier"), event(3, 9, "late and greatest")]
    assert run({"op": "max", "attribute": "v", "window": "10 s"}, *late[:2]) == [late[1]]
    assert run({"op": "max", "attribute": "v", "window": "10 s"}, *late) == [late[2]]


def test_events_without_a_time_are_compared_in_the_order_in_which_they_came() -> None:
    definition = service({"op": "max", "attribute": "v", "window": "3 rows"}, "v INT, note STRING")
    some = [{"v": 1, "note": "a"}, {"v": 2, "note": "z"}, {"v": 2, "note": "b"}]
    assert compute(definition, {"i": some}) == [some[1]]


@pytest.mark.parametrize(
    ("op", "words"),
    [
        ({"op": "sum", "attribute": "v", "emit": "event"}, "emit: sum gives a value, which no event has"),
        ({"op": "count", "emit": "event"}, "emit: count gives a value, which no event has"),
        ({"op": "incrAvg", "attribute": "v", "emit": "event"}, "emit: incrAvg gives a value, which no event"),
        ({"op": "max", "attribute": "v", "emit": "value"}, "emit: must be event or row, not 'value'"),
        ({"op": "max", "attribute": "v", "emit": 3}, "emit: must be a text, not 3"),
        ({"op": "min", "attribute": ["v", "c"]}, 'emit = "event" gives the event with the extreme of one'),
        ({"op": "min", "attribute": "v", "as": "w"}, 'as: names the value of emit = "row"; remove it'),
        ({"op": "incrMax", "attribute": "v", "slide": "5 s"}, "windows, which do not slide"),
        ({"op": "max", "attribute": "w"}, "w: i has no such attribute"),
    ],
)
def test_what_cannot_be_an_event_is_refused_by_its_name(op: dict[str, Any], words: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        build_plan(service({"window": "10 s", **op}))
    assert words in str(caught.value)


def test_all_errors_of_an_extreme_are_told_at_once() -> None:
    with pytest.raises(DefinitionError) as caught:
        build_plan(service({"op": "max", "attribute": "w", "emit": "all", "by": "q", "window": "5 apples"}))
    assert {one.attribute for one in caught.value.problems} == {"emit", "w", "q", "window"}


def test_a_row_of_sum_count_and_avg_may_be_asked_for_by_name() -> None:
    for op in ("sum", "count", "avg", "min", "max", "incrSum", "incrMin"):
        output = build_plan(service({"op": op, "attribute": "v", "window": "5 s", "emit": "row"})).output
        assert output.schema.names == (op, "time")


# Against a definition by comparison of all events with each other


def better(function: str, one: Event, other: Event) -> int:
    """Negative if `one` is the event of the two: by its value, its time, its attributes."""

    def compare(a: Any, b: Any) -> int:
        if a is None or b is None:
            return (a is not None) - (b is not None)
        return (a > b) - (a < b)

    way = 1 if function == "min" else -1
    by_value = way * compare(one["v"], other["v"])
    by_time = compare(one["time"], other["time"])
    return by_value or by_time or next((way * d for n in one if (d := compare(one[n], other[n]))), 0)


def best(function: str, events: Sequence[Event]) -> Event | None:
    known = [one for one in events if one["v"] is not None]
    return min(known, key=cmp_to_key(lambda a, b: better(function, a, b)), default=None)


EVENTS = st.lists(
    st.builds(
        event,
        st.integers(0, 30),
        st.none() | st.integers(0, 3),
        st.none() | st.sampled_from("xyz"),
        st.sampled_from(("a", "b", None)),
    ),
    max_size=25,
)


@given(EVENTS, st.sampled_from(("min", "max")), st.sampled_from(((10, 10), (10, 5), (6, 2))))
def test_time_windows_give_the_best_event_of_each(
    events: list[Event], function: str, span: tuple[int, int]
) -> None:
    length, slide = span
    op = {"op": function, "attribute": "v", "by": "c", "window": f"{length} s", "slide": f"{slide} s"}
    expected = []
    for start in range(-length + slide, 31, slide):
        inside = [e for e in events if start <= second_of(e) < start + length]
        for c in {e["c"] for e in inside}:
            found = best(function, [e for e in inside if e["c"] == c])
            expected += [] if found is None else [found]
    assert sorted(map(str, run(op, *events))) == sorted(map(str, expected))


def in_time(events: list[Event]) -> list[Event]:
    return sorted(events, key=lambda e: (e["time"], *((e[n] is not None, e[n]) for n in e)))


@given(EVENTS, st.sampled_from(("min", "max")), st.integers(1, 5), st.integers(1, 5))
def test_row_windows_give_the_best_event_of_each(
    events: list[Event], function: str, length: int, slide: int
) -> None:
    op = {"op": function, "attribute": "v", "window": f"{length} rows", "slide": f"{min(slide, length)} rows"}
    ordered = in_time(events)
    windows = [ordered[n : n + length] for n in range(0, len(ordered) - length + 1, min(slide, length))]
    expected = [found for window in windows if (found := best(function, window)) is not None]
    assert run(op, *events) == expected


@given(EVENTS, st.sampled_from(("min", "max")), st.integers(1, 4))
def test_an_increment_gives_the_best_event_of_all_windows_so_far(
    events: list[Event], function: str, length: int
) -> None:
    name, ordered = f"incr{function.title()}", in_time(events)
    ends = range(length, len(ordered) + 1, length)
    expected = [found for end in ends if (found := best(function, ordered[:end])) is not None]
    found = run({"op": name, "attribute": "v", "window": f"{length} rows"}, *events)
    # Of equal events in one instant, the last output stays.
    assert [(one["v"], one["time"]) for one in found] == [(one["v"], one["time"]) for one in expected]
    starts = sorted({second_of(e) // 10 * 10 for e in events})
    windows = [[e for e in events if second_of(e) < start + 10] for start in starts]
    expected = [found for window in windows if (found := best(function, window)) is not None]
    assert run({"op": name, "attribute": "v", "window": "10 s"}, *events) == expected
