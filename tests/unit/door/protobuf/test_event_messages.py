"""Events in Protocol Buffers: round trips through JSON, garbage, limits."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.door.protobuf.event_messages import _Events, encode_messages, lines_of
from hpwsn_client.wsn.soap.soap_faults import SoapFault, TooLarge
from hpwsn_client.wsn.soap.xml import DEFAULT_LIMITS, Limits

TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | TEXT | st.integers(-(2**53), 2**53) | st.floats(-1e300, 1e300),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=10,
)
EVENTS = st.lists(st.dictionaries(TEXT, VALUES, max_size=4), min_size=1, max_size=4)


def _lines(body: bytes, limits: Limits = DEFAULT_LIMITS) -> list[object]:
    return [json.loads(line) for line in lines_of(body, limits, 4).decode().split("\n") if line]


@given(EVENTS)
def test_events_come_back_as_they_were_written(events: list[dict[str, object]]) -> None:
    body = encode_messages([json.dumps(event).encode() for event in events])
    assert _lines(body) == events


@given(st.binary(max_size=200))
def test_garbage_is_a_fault_or_events(data: bytes) -> None:
    try:
        found = _lines(data)
    except SoapFault as fault:
        assert fault.status in (400, 413)
    else:
        assert all(isinstance(event, dict) for event in found)


def test_the_type_is_that_of_the_file_for_users() -> None:
    text = (Path(__file__).parents[4] / "wsdl" / "events.proto").read_text()
    package = re.search(r"package (\S+);", text)
    message = re.search(r"message (\w+) \{\s+repeated (\S+) (\w+) = (\d+);", text)
    assert package is not None
    assert message is not None
    descriptor = _Events.DESCRIPTOR
    (field,) = descriptor.fields
    assert descriptor.full_name == f"{package[1]}.{message[1]}"
    assert (field.message_type.full_name, field.name) == (message[2], message[3])
    assert field.number == int(message[4])


def test_a_whole_number_is_an_integer_up_to_two_to_the_53() -> None:
    numbers = (60, 60.5, 2**53, 1e300)
    body = encode_messages([json.dumps({"x": number}).encode() for number in numbers])
    written = [b'{"x": 60}', b'{"x": 60.5}', b'{"x": 9007199254740992}', b'{"x": 1e+300}', b""]
    assert lines_of(body, DEFAULT_LIMITS, 4).split(b"\n") == written


def test_too_many_events_are_refused_at_the_edge() -> None:
    limits = Limits(messages=3)
    assert len(_lines(encode_messages([b"{}"] * 3), limits)) == 3
    with pytest.raises(TooLarge, match="3 events"):
        _lines(encode_messages([b"{}"] * 4), limits)


def test_events_that_grow_beyond_the_limit_are_refused() -> None:
    with pytest.raises(TooLarge, match="as JSON"):
        _lines(encode_messages([json.dumps({"a": "\u0001" * 100}).encode()]), Limits(body=100))


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")])
def test_numbers_that_json_does_not_have_are_refused(number: float) -> None:
    message = _Events()
    message.events.add().fields["x"].number_value = number
    with pytest.raises(SoapFault, match="JSON does not have"):
        lines_of(message.SerializeToString(), DEFAULT_LIMITS, 4)


def test_a_message_without_events_and_a_field_without_a_value_are_refused() -> None:
    with pytest.raises(SoapFault, match="no event"):
        lines_of(b"", DEFAULT_LIMITS, 4)
    message = _Events()
    message.events.add().fields["x"].SetInParent()
    with pytest.raises(SoapFault, match="no value"):
        lines_of(message.SerializeToString(), DEFAULT_LIMITS, 4)


def test_an_integer_beyond_a_double_cannot_be_read_so() -> None:
    with pytest.raises(SoapFault, match="read it as JSON") as caught:
        encode_messages([b'{"a": 1' + b"0" * 400 + b"}"])
    assert caught.value.status == 406
