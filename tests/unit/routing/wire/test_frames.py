"""Frames: what goes in comes out, for those who have the key, and garbage is nothing worse than malformed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.routing.wire.fragments import LAST_INDEX, Fragment
from hpwsn.routing.wire.frames import (
    MAGIC,
    Kind,
    MalformedFrame,
    WrongTag,
    encode_fragments,
    encode_frame,
    encode_pair,
    greeting_key,
    overhead,
    parse_fragments,
    parse_frame,
    parse_pair,
    session_key,
)

KEY = greeting_key(b"secret", "a", "b")
numbers = st.integers(0, 2**64 - 1)
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=60)
fragments = st.builds(
    Fragment,
    numbers,
    st.binary(max_size=50),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.integers(0, LAST_INDEX),
)


@given(st.sampled_from(Kind), names, numbers, numbers, st.binary(max_size=80))
def test_a_frame_comes_back_as_it_was(kind: Kind, name: str, session: int, counter: int, body: bytes) -> None:
    data = encode_frame(kind, name.encode(), session, counter, body, KEY)
    frame = parse_frame(data)
    frame.check(KEY)
    assert (frame.kind, frame.sender, frame.session, frame.counter, frame.body) == (
        kind,
        name,
        session,
        counter,
        body,
    )
    assert len(data) == len(body) + overhead(name)


@given(st.binary(max_size=60), st.data())
def test_a_frame_in_which_one_bit_is_different_is_refused(body: bytes, data: st.DataObject) -> None:
    frame = bytearray(encode_frame(Kind.DATA, b"node", 1, 2, body, KEY))
    bit = data.draw(st.integers(0, 8 * len(frame) - 1))
    frame[bit // 8] ^= 1 << bit % 8
    with pytest.raises((MalformedFrame, WrongTag)):
        parse_frame(bytes(frame)).check(KEY)


@given(st.binary(max_size=60), st.data())
def test_a_frame_that_is_cut_is_refused(body: bytes, data: st.DataObject) -> None:
    frame = encode_frame(Kind.DATA, b"node", 1, 2, body, KEY)
    with pytest.raises((MalformedFrame, WrongTag)):
        parse_frame(frame[: data.draw(st.integers(0, len(frame) - 1))]).check(KEY)


@given(st.binary(max_size=100))
def test_garbage_is_malformed_or_has_a_wrong_tag(garbage: bytes) -> None:
    for data in (garbage, MAGIC + garbage):
        with pytest.raises((MalformedFrame, WrongTag)):
            parse_frame(data).check(KEY)


@given(st.lists(fragments, max_size=5))
def test_fragments_come_back_as_they_were(sent: list[Fragment]) -> None:
    assert list(parse_fragments(encode_fragments(sent))) == sent


@given(st.binary(max_size=100))
def test_garbage_in_place_of_fragments_is_malformed_or_fragments(garbage: bytes) -> None:
    try:
        read = list(parse_fragments(garbage))
    except MalformedFrame:
        return
    assert encode_fragments(read) == garbage


@given(numbers, numbers)
def test_two_numbers_come_back_and_other_lengths_are_refused(first: int, second: int) -> None:
    body = encode_pair(first, second)
    assert parse_pair(body) == (first, second)
    for wrong in (body[:-1], body + b"x"):
        with pytest.raises(MalformedFrame):
            parse_pair(wrong)


def test_every_key_is_for_one_direction_one_pair_of_names_and_one_session() -> None:
    keys = {
        greeting_key(b"s", "a", "b"),
        greeting_key(b"s", "b", "a"),
        greeting_key(b"s", "ab", ""),
        greeting_key(b"t", "a", "b"),
        session_key(b"s", "a", "b", 1, 2),
        session_key(b"s", "a", "b", 2, 1),
        session_key(b"s", "b", "a", 1, 2),
    }
    assert len(keys) == 7
