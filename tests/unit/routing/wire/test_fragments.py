"""Fragments: whatever a network does to pieces, the message is whole, once, or given up."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from hpwsn.routing.wire.fragments import (
    LAST_INDEX,
    OVERHEAD,
    CompleteMessage,
    Fragment,
    Piece,
    Reassembly,
    cut_text,
    split_message,
)
from hpwsn_client.wsn.soap.xml import escape

contents = st.binary(min_size=1, max_size=400)


def reassembly(**changes: float) -> Reassembly:
    return Reassembly(**{"timeout": 5.0, "max_bytes": 1 << 20, "max_messages": 100, **changes})  # type: ignore[arg-type]


@given(st.lists(contents, min_size=1, max_size=5), st.integers(1, 50), st.randoms(), st.integers(1, 3))
def test_messages_of_many_senders_arrive_once_whatever_the_order_and_however_often(
    sent: list[bytes], room: int, chance: random.Random, copies: int
) -> None:
    pieces = [
        (sender, piece)
        for sender, content in enumerate(sent)
        for piece in split_message(7, content, room)
        for _ in range(copies if len(content) > room else 1)
    ]
    chance.shuffle(pieces)
    receiver = reassembly()
    arrived = [
        (sender, whole.content)
        for sender, piece in pieces
        if isinstance(whole := receiver.add(sender, piece, 0.0), CompleteMessage)
    ]
    assert sorted(arrived) == list(enumerate(sent))
    assert (receiver.bytes, len(receiver)) == (0, 0)


@given(contents, st.integers(1, 50), st.data())
def test_without_one_piece_there_is_no_message_and_the_memory_is_free_after_the_timeout(
    content: bytes, room: int, data: st.DataObject
) -> None:
    pieces = list(split_message(1, content, room))
    if len(pieces) == 1:
        return
    del pieces[data.draw(st.integers(0, len(pieces) - 1))]
    receiver = reassembly()
    assert [receiver.add("a", piece, 0.0) for piece in pieces] == [None] * len(pieces)
    receiver.expire(4.9)
    assert receiver.bytes == sum(len(piece.content) + OVERHEAD for piece in pieces)
    receiver.expire(5.0)
    assert (receiver.bytes, len(receiver), receiver.timed_out) == (0, 0, 1)


def test_a_piece_that_comes_after_its_message_was_given_up_begins_nothing() -> None:
    first, second = split_message(1, b"abcd", 2)
    receiver = reassembly()
    receiver.add("a", first, 0.0)
    assert receiver.add("a", second, 6.0) is None
    assert (len(receiver), receiver.duplicates) == (0, 1)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9), st.booleans(), st.binary(max_size=40))))
def test_the_memory_stays_within_its_bound_whatever_comes(
    arrivals: list[tuple[int, int, bool, bytes]],
) -> None:
    receiver = reassembly(max_bytes=1000, max_messages=3)
    for identification, index, more, content in arrivals:
        receiver.add("a", Fragment(identification, content, True, more, False, index), 0.0)
        assert receiver.bytes <= 1000
        assert len(receiver) <= 3


def test_the_message_that_waited_longest_makes_room_for_the_newest() -> None:
    receiver = reassembly(max_messages=2)
    parts = [list(split_message(number, b"abcd", 2)) for number in range(3)]
    for first, _ in parts:
        receiver.add("a", first, 0.0)
    assert receiver.crowded_out == 1
    results = [receiver.add("a", second, 0.0) for _, second in parts]
    assert results == [None, CompleteMessage(b"abcd"), CompleteMessage(b"abcd")]


def test_a_message_that_alone_is_over_the_bound_is_given_up_for_good() -> None:
    receiver = reassembly(max_bytes=1000)
    pieces = list(split_message(1, bytes(2000), 400))
    assert [receiver.add("a", piece, 0.0) for piece in pieces] == [None] * 5
    assert (receiver.bytes, receiver.crowded_out) == (0, 1)


@given(contents, st.integers(1, 50), st.randoms())
def test_with_partial_delivery_each_piece_comes_out_once_and_nothing_is_kept_of_it(
    content: bytes, room: int, chance: random.Random
) -> None:
    pieces = list(split_message(1, content, room, partial=True))
    if len(pieces) == 1:
        return
    twice = pieces * 2
    chance.shuffle(twice)
    receiver = reassembly(max_bytes=len(pieces) * OVERHEAD)
    out = [each.fragment for piece in twice if isinstance(each := receiver.add("a", piece, 0.0), Piece)]
    assert sorted(out, key=lambda piece: piece.index) == pieces


@pytest.mark.parametrize(
    ("index", "more"), [(3, True), (3, False), (0, False), (LAST_INDEX + 1, True), (-1, True)]
)
def test_a_piece_that_contradicts_the_others_is_left_out(index: int, more: bool) -> None:
    pieces = list(split_message(1, b"abc", 1))
    receiver = reassembly()
    for piece in pieces[1:]:
        receiver.add("a", piece, 0.0)
    assert receiver.add("a", Fragment(1, b"x", True, more, False, index), 0.0) is None
    assert receiver.malformed == 1
    assert receiver.add("a", pieces[0], 0.0) == CompleteMessage(b"abc")


def test_the_largest_index_is_99999_and_more_pieces_are_refused() -> None:
    assert list(split_message(1, bytes(LAST_INDEX + 1), 1))[-1].index == LAST_INDEX
    with pytest.raises(ValueError, match="more than 100000 pieces"):
        list(split_message(1, bytes(LAST_INDEX + 2), 1))


texts = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=300)


@given(texts, st.integers(16, 60))
def test_text_is_cut_where_neither_a_character_nor_a_reference_breaks(text: str, room: int) -> None:
    escaped = escape(text + "&<>京").encode()
    pieces = cut_text(escaped, room)
    assert b"".join(pieces) == escaped
    for piece in pieces:
        assert 0 < len(piece) <= room
        etree.fromstring(b"<a>%s</a>" % piece)
