"""Messages between routers: round trips, cuts, garbage."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.routing.wire.router_messages import (
    Ack,
    Interest,
    InterestRequest,
    Leg,
    MalformedMessage,
    Message,
    Publication,
    PublicationId,
    ResendRequest,
    Scope,
    Subject,
    Version,
    Versions,
    encode_messages,
    parse_messages,
)

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=60)
u64 = st.integers(0, 2**64 - 1)
subjects = st.builds(Subject, st.sampled_from(Scope), names)
patterns = st.lists(st.text(st.characters(codec="utf-8"), max_size=30), max_size=5).map(tuple)
numbers = st.lists(u64, min_size=1, max_size=5).map(tuple)
publications = st.builds(
    Publication,
    st.builds(PublicationId, names, u64, u64),
    st.none() | names,
    st.binary(max_size=100),
    st.integers(0, 7),
    st.sampled_from(Leg),
    st.integers(0, 255),
    u64,
)
interests = st.one_of(
    st.builds(Interest, subjects, u64, st.integers(1, 2**64 - 1), st.just(0), patterns),
    st.builds(
        Interest, subjects, u64, st.integers(10, 99), st.integers(1, 9), patterns, patterns, st.booleans()
    ),
)
messages: st.SearchStrategy[Message] = st.one_of(
    publications,
    interests,
    st.builds(Ack, st.sampled_from(Leg), names, u64, numbers),
    st.builds(ResendRequest, st.sampled_from(Leg), names, u64, numbers),
    st.builds(Versions, st.lists(st.builds(Version, subjects, u64, u64), max_size=4).map(tuple)),
    st.builds(InterestRequest, st.lists(subjects, max_size=4).map(tuple)),
)


@given(st.lists(messages, max_size=4))
def test_messages_are_read_as_they_were_written(some: list[Message]) -> None:
    assert parse_messages(encode_messages(some)) == some


@given(messages, st.data())
def test_a_payload_that_is_cut_is_refused_unless_it_ends_between_messages(
    message: Message, data: st.DataObject
) -> None:
    payload = encode_messages([message])
    at = data.draw(st.integers(2, len(payload) - 1))
    with pytest.raises(MalformedMessage):
        parse_messages(payload[:at])


@given(st.binary(max_size=200))
def test_garbage_is_refused_and_never_breaks_anything(garbage: bytes) -> None:
    try:
        parse_messages(b"\x01" + garbage)
    except MalformedMessage as error:
        assert str(error)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x02",
        b"\x01\x63\x00\x00\x00\x00",
        b"\x01\x01\x00\x00\x00\x02ab",
        # An interest that says it has four thousand million patterns.
        b"\x01\x04\x00\x00\x00\x24"
        + b"\x01\x01"
        + bytes(7)
        + b"\x01"
        + bytes(7)
        + b"\x01"
        + bytes(8)
        + b"\x01n"
        + b"\xff" * 8,
    ],
)
def test_another_version_kind_or_size_is_refused(payload: bytes) -> None:
    with pytest.raises(MalformedMessage):
        parse_messages(payload)
