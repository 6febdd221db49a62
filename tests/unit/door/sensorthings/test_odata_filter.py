"""The option $filter: comparisons as Python has them, times that bound a query, and errors for the rest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.door.sensorthings.odata_filter import MOST_TERMS, parse_filter
from hpwsn.door.sensorthings.thing_entities import measured
from hpwsn.sensors.readings.reading_times import parse_time, time_text
from hpwsn_client.wsn.soap.faults import SoapFault

NOON = parse_time("2026-01-31T12:00:00Z")
THING = {
    "name": "it's",
    "properties": {"kind": "weather", "tags": ["roof"], "interval": 5},
    "on": True,
    "@iot.id": "w1",
}


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("name eq 'it''s'", True),
        ("properties/kind eq 'weather' and properties/interval ge 5", True),
        ("properties/kind ne 'weather'", False),
        ("properties/kind gt 'weath'", True),
        ("on eq true", True),
        ("on ne false", True),
        ("on eq 'true'", False),
        ("@iot.id eq 'w1'", True),
        ("properties/interval eq '5'", False),
        ("properties/missing ne 1", False),
        ("not (properties/missing eq 1)", True),
        ("name/missing eq 1", False),
        ("properties/tags eq 'roof'", False),
        ("on eq false or on eq true and name eq 'no'", False),
        ("(on eq false or on eq true) and not name eq 'no'", True),
        ("name eq 2026-01-31T12:00:00Z", False),
        ("  on   eq true  ", True),
    ],
)
def test_a_thing_is_accepted(text, accepted):
    assert parse_filter(text).accepts(THING) is accepted


COMPARISONS = st.tuples(
    st.sampled_from(["result", "phenomenonTime", "resultTime"]),
    st.sampled_from(["eq", "ne", "gt", "ge", "lt", "le"]),
    st.integers(-2, 2),
)
FILTERS = st.recursive(
    COMPARISONS,
    lambda inner: st.tuples(st.sampled_from(["and", "or"]), inner, inner) | st.tuples(st.just("not"), inner),
    max_leaves=6,
)
PYTHON = {"eq": "==", "ne": "!=", "gt": ">", "ge": ">=", "lt": "<", "le": "<="}


def written(tree, python):
    if tree[0] in ("and", "or"):
        return f"({written(tree[1], python)} {tree[0]} {written(tree[2], python)})"
    if tree[0] == "not":
        return f"(not {written(tree[1], python)})"
    name, word, number = tree
    if python:
        return f"({'value' if name == 'result' else 'time'} {PYTHON[word]} {number})"
    return f"{name} {word} {number if name == 'result' else time_text(NOON + number)}"


@given(FILTERS)
def test_an_observation_is_accepted_as_python_does_and_only_within_the_times(tree):
    found, plain = parse_filter(written(tree, False)), written(tree, True)
    for time in range(-3, 4):
        for value in range(-3, 4):
            accepted = eval(plain, {"time": time, "value": value})
            assert found.accepts(measured(NOON + time, float(value))) is accepted
            inside = (found.start is None or found.start <= NOON + time) and (
                found.end is None or NOON + time < found.end
            )
            assert inside or not accepted


def test_comparisons_of_time_that_all_hold_bound_the_query():
    begin, end = "2026-01-31T12:00:00Z", "2026-01-31T14:00:00+01:00"
    found = parse_filter(f"phenomenonTime ge {begin} and result gt 1 and phenomenonTime lt {end}")
    assert (found.start, found.end) == (NOON, NOON + 3_600_000)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("result", "ends too early"),
        ("result gt", "ends too early"),
        ("result > 1", "is not understood from '> 1' on; write comparisons such as result gt 20"),
        ("1 gt result", "$filter has '1 gt result'"),
        ("result is 1", "$filter has 'result is 1'"),
        ("result gt temperature", "compares with 'temperature'"),
        ("result gt 1 result", "goes on with 'result' after its end"),
        ("(result gt 1", "a bracket that is not closed"),
        ("result gt 1)", "goes on with ')' after its end"),
        ("name eq 'open", "is not understood"),
        ("startswith(name,'a')", "is not understood|has"),
        ("phenomenonTime gt 2026-02-30T12:00:00Z", "has the time '2026-02-30T12:00:00Z'"),
        ("result gt 1e5x", "is not understood"),
        ("(" * (MOST_TERMS + 1), "is not understood"),
        ("not " * MOST_TERMS, "ends too early"),
    ],
)
def test_what_is_no_filter_is_said(text, said):
    with pytest.raises(SoapFault) as error:
        parse_filter(text)
    assert any(part in error.value.reason for part in said.split("|"))
    assert error.value.status == 400


@given(st.text(alphabet="()' andortgresult2026-01T:Z.", max_size=40))
def test_garbage_is_refused_and_never_breaks(text):
    try:
        parse_filter(text)
    except SoapFault as error:
        assert error.status == 400
