"""Requests against the constraints of a stream service: what no event can be is refused, all else is not."""

import pytest

from hpwsn.matching.language.constraints import check_constraints, parse_constraints, violations
from hpwsn.matching.language.normal_form import expression_holds
from hpwsn.matching.language.predicate_parser import PredicateError, parse_predicates
from hpwsn.matching.language.predicates import disjunction_holds
from hpwsn_client.wsn.soap.faults import InvalidFilterFault
from hpwsn_client.wsn.soap.names import wsnt

GPS = parse_constraints(
    {
        "speed": "> 0",
        "longitude": "115.25 < longitude < 117.30",
        "direction": "between 0 and 360",
        "vid": "like '京%'",
        "lane": "in (1, 2, 3)",
        "time": ">= 2010-01-01",
    }
)


@pytest.mark.parametrize(
    "text",
    [
        "speed > 60",
        "speed > -5",
        "longitude between 100 and 116",
        "direction = 360 or speed < 1",
        "vid = '京B34C91' and time > 2026-01-01",
        "lane != 2 and lane >= 2",
        "not speed > 60",
        "altitude < 0",
        "exists(speed)",
        "within(longitude, latitude, 115, 39, 118, 41)",
    ],
)
def test_what_some_event_can_be_may_be_asked_for(text):
    assert violations(GPS, parse_predicates(text)) == ()
    check_constraints(GPS, parse_predicates(text))


@pytest.mark.parametrize(
    ("text", "outside"),
    [
        ("speed < 0", ["speed < 0 lies outside the constraint speed: > 0"]),
        ("speed <= 0", ["speed <= 0 lies outside the constraint speed: > 0"]),
        ("not speed > 0", ["not speed > 0 lies outside the constraint speed: > 0"]),
        ("speed = 'fast'", ['speed = "fast" lies outside the constraint speed: > 0']),
        ("not exists(speed)", ["not exists(speed) lies outside the constraint speed: > 0"]),
        (
            "speed > 60 and longitude >= 117.30",
            ["longitude >= 117.3 lies outside the constraint longitude: 115.25 < longitude < 117.30"],
        ),
        (
            "direction > 360 or lane = 4 and speed > 1",
            [
                "direction > 360 lies outside the constraint direction: between 0 and 360",
                "lane = 4 lies outside the constraint lane: in (1, 2, 3)",
            ],
        ),
        (
            "lane > 1 and lane < 2",
            ["lane < 2 and lane > 1 lies outside the constraint lane: in (1, 2, 3)"],
        ),
        ("time < 2009-12-31", ["time < date"]),
    ],
)
def test_each_predicate_outside_is_named_with_its_constraint(text, outside):
    found = [str(violation) for violation in violations(GPS, parse_predicates(text))]
    assert len(found) == len(outside)
    assert all(
        shown.startswith(expected) for shown, expected in zip(sorted(found), sorted(outside), strict=True)
    )
    with pytest.raises(InvalidFilterFault, match="outside the constraint") as refused:
        check_constraints(GPS, parse_predicates(text))
    assert refused.value.unknown_filters == (wsnt("MessageContent"),)


@pytest.mark.parametrize(
    ("attribute", "text", "words"),
    [
        ("speed", ">> 0", "speed = '>> 0'.*column"),
        ("speed", "lane > 0", "about lane"),
        ("speed", "> 1 and lane > 0", "about lane"),
        ("speed", "> 1 and speed < 0", "never match"),
        ("speed", "", "speed = ''"),
    ],
)
def test_a_constraint_that_cannot_be_used_is_named(attribute, text, words):
    with pytest.raises(PredicateError, match=words):
        parse_constraints({attribute: text})


RANGES = ["> 1", "<= 3", "between 1 and 3", "in (0, 2, 4)", "!= 2", "0 < a < 4", "< 1 or a > 3"]
REQUESTS = [
    "a > 2",
    "a < 1",
    "a = 2",
    "a != 3",
    "not a >= 2",
    "a in (1, 3)",
    "a between 2 and 5",
    "a > 1 and a < 3",
]


@pytest.mark.parametrize("range_", RANGES)
@pytest.mark.parametrize("request_", REQUESTS)
def test_a_request_is_outside_where_no_value_is_within_both(range_, request_):
    (constraint,) = parse_constraints({"a": range_})
    asked = parse_predicates(request_)
    possible = [{"a": step / 2} for step in range(-4, 14)]
    within = [event for event in possible if expression_holds(constraint.expression, event)]
    had = [event for event in within if disjunction_holds(asked, event)]
    assert bool(violations((constraint,), asked)) is not bool(had)
