"""Readings as runs on their topics, and the way back."""

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.notification import END, INTERNAL, Run, split_payloads
from hpwsn.sensors.readings.reading import Reading
from hpwsn.sensors.readings.reading_run import (
    ReadingRun,
    SensorRuns,
    event_of,
    numbered_readings,
    reading_of,
    readings_of,
    run_of,
)
from hpwsn_client.wsn.formats.json_events import decode_event, encode_event
from hpwsn_client.wsn.topics.topic_expressions import Topic

TOPIC = Topic.parse("sensors:weather:s1")
PLACED = Reading("s1", "weather", 1795053784567, {"temperature": 21.5, "humidity": 0.25}, 12.5, -41.0)
BARE = Reading("s1", "weather", 0, {"temperature": -1e-7})
EVENT: dict[str, Any] = {
    "sensor": "s1",
    "kind": "weather",
    "time": "2026-11-19T02:03:04.567Z",
    "longitude": 12.5,
    "latitude": -41.0,
    "temperature": 21.5,
    "humidity": 0.25,
}

NAMES = st.from_regex(r"[A-Za-z_é][A-Za-z0-9_.é-]{0,8}", fullmatch=True)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
QUANTITIES = NAMES.filter(
    lambda name: name not in ("sensor", "kind", "time", "longitude", "latitude", "offset", "day")
)


@st.composite
def readings(draw: st.DrawFn) -> Reading:
    place = draw(st.none() | st.tuples(NUMBERS, NUMBERS))
    return Reading(
        draw(NAMES),
        draw(NAMES),
        draw(st.integers(-62135596800000, 253402300799999)),
        draw(st.dictionaries(QUANTITIES, NUMBERS, min_size=1, max_size=4)),
        *(place or (None, None)),
    )


def without_readings(run: Run) -> Run:
    """The run as it comes from the log."""
    return Run(run.topic, run.before, run.payloads, run.size)


def published(*events: dict[str, Any], topic: Topic = TOPIC) -> Run:
    payloads = [encode_event(event) for event in events]
    return Run(topic, b"", END.join([*payloads, b""]), len(events))


def test_a_reading_is_the_event_of_the_contract() -> None:
    assert event_of(PLACED) == EVENT
    assert "longitude" not in event_of(BARE)


def test_the_payload_of_a_run_is_the_event() -> None:
    run = SensorRuns("s1", "weather", TOPIC).run((PLACED, BARE))
    assert run.size == 2
    assert [decode_event(payload) for payload in split_payloads(run.payloads)] == [EVENT, event_of(BARE)]
    assert readings_of(run) == (PLACED, BARE)


@given(readings())
def test_a_run_from_the_log_has_the_same_readings(reading: Reading) -> None:
    run = run_of(reading, Topic.parse(f"sensors:{reading.kind}:{reading.sensor}"))
    assert readings_of(without_readings(run)) == (reading,)
    assert run.first.payload == encode_event(event_of(reading))


@given(readings())
def test_an_event_is_read_back_as_its_reading(reading: Reading) -> None:
    assert reading_of(event_of(reading)) == reading


def test_an_event_that_a_publisher_wrote_in_another_order_is_a_reading() -> None:
    run = published({"temperature": 21, "time": "1970-01-01T00:00:01Z", "kind": "weather", "sensor": "s1"})
    assert readings_of(run) == (Reading("s1", "weather", 1000, {"temperature": 21.0}),)


@pytest.mark.parametrize(
    "change",
    [
        {"sensor": "s2"},
        {"kind": "seismic"},
        {"time": "yesterday"},
        {"time": 5},
        {"sensor": None},
        {"temperature": "warm"},
        {"temperature": True},
        {"temperature": None},
        {"temperature": {"value": 5}},
        {"temperature": 10**400},
        {"offset": 5},
        {"longitude": "east"},
    ],
)
def test_an_event_of_another_form_is_not_a_reading(change: dict[str, Any]) -> None:
    assert readings_of(published({**EVENT, **change})) == (None,)


@pytest.mark.parametrize("missing", ["sensor", "kind", "time", "longitude"])
def test_an_event_without_a_field_is_not_a_reading(missing: str) -> None:
    event = {name: value for name, value in EVENT.items() if name != missing}
    assert readings_of(published(event)) == (None,)


def test_an_event_without_a_value_is_not_a_reading() -> None:
    event = {name: EVENT[name] for name in ("sensor", "kind", "time")}
    assert readings_of(published(event)) == (None,)


@pytest.mark.parametrize(
    "measured",
    [
        b"<t>1</t><t>2</t>",
        b"<t>1</u>",
        b"<t>1e999</t>",
        b"<time>5</time>",
        b"<day>5</day>",
        b"",
    ],
)
def test_a_payload_that_looks_like_a_reading_is_not_one(measured: bytes) -> None:
    payload = encode_event({name: EVENT[name] for name in ("sensor", "kind", "time")})
    payload = payload.replace(b"</hp:event>", measured + b"</hp:event>")
    assert readings_of(Run(TOPIC, b"", payload + END, 1)) == (None,)


@given(st.binary(max_size=60).filter(lambda garbage: END not in garbage))
def test_a_payload_of_garbage_is_not_a_reading(garbage: bytes) -> None:
    assert readings_of(Run(TOPIC, b"", garbage + END, 1)) == (None,)


def test_the_largest_numbers_are_values() -> None:
    reading = BARE._replace(values={"low": -sys.float_info.max, "high": sys.float_info.max})
    assert readings_of(without_readings(run_of(reading, TOPIC))) == (reading,)


@pytest.mark.parametrize(
    "topic", ["sensors:weather", "sensors:weather:s1:more", "virtual:weather:s1", "{urn:x}sensors:weather:s1"]
)
def test_a_reading_on_another_topic_is_not_one(topic: str) -> None:
    assert readings_of(published(EVENT, topic=Topic.parse(topic))) == (None,)


def test_a_run_that_is_extended_keeps_the_reading_of_each_member() -> None:
    run = run_of(PLACED, TOPIC)
    run.extend([run_of(BARE, TOPIC), published({"hello": "world"}), without_readings(run_of(BARE, TOPIC))])
    assert run.size == 4
    assert run.readings == (PLACED, BARE, None, BARE)
    assert readings_of(without_readings(run)) == run.readings


def test_readings_are_numbered_as_in_the_log() -> None:
    hidden = run_of(PLACED, TOPIC)
    hidden.target = INTERNAL
    runs = [published(EVENT, {"hello": 1}, topic=Topic.parse("hall")), run_of(PLACED, TOPIC), hidden]
    runs.append(published({"hello": 1}, EVENT))
    assert list(numbered_readings(7, runs)) == [(9, PLACED), (12, PLACED)]


def test_only_runs_of_readings_have_them_without_parsing() -> None:
    assert isinstance(run_of(BARE, TOPIC), ReadingRun)
