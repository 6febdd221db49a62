"""Bodies of frames: there and back, and whatever does not fit to the byte is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.workers import bodies
from hpwsn.workers.bodies import (
    NUMBERS,
    FullReply,
    FullRequest,
    Offer,
    Settled,
    TopicCache,
    decode_full,
    decode_publish,
    decode_reply,
    decode_seen,
    decode_settled,
    encode_full,
    encode_publish,
    encode_reply,
    encode_seen,
    encode_settled,
)
from hpwsn.workers.frames import BadFrame
from hpwsn.workers.terms import Terms, encode_terms, parse_terms
from hpwsn_client.wsn.notify_scan import Encoded
from hpwsn_client.wsn.soap import SoapVersion
from hpwsn_client.wsn.topics import Topic

TOPICS = (None, Topic("urn:a", ("x", "y")), Topic.parse("A:B:C"), Topic("urn:c", ("é", "{urn:b}z")))
number = st.integers(0, NUMBERS - 1)


@st.composite
def notifies(draw: st.DrawFn) -> tuple[list[Offer], list[Encoded]]:
    offers, messages = [], []
    for _ in range(draw(st.integers(1, 4))):
        count = draw(st.integers(0, 3))
        id_ = draw(st.none() | st.text(st.characters(codec="utf-8"), min_size=1, max_size=5))
        offers.append(Offer(draw(number), draw(number), draw(number), count, id_))
        for _ in range(count):
            content = draw(st.binary(max_size=30))
            start, end = sorted(draw(st.tuples(*[st.integers(0, len(content))] * 2)))
            messages.append(Encoded(draw(st.sampled_from(TOPICS)), content, start, end, id_))
    return offers, messages


@given(notifies())
def test_notifies_come_out_as_they_went_in(sent: tuple[list[Offer], list[Encoded]]) -> None:
    cache, body = TopicCache(), encode_publish(*sent)
    assert decode_publish(body, cache) == sent
    assert decode_publish(body, cache) == sent
    for wrong in (body[:-1], body + b"x"):
        with pytest.raises(BadFrame):
            decode_publish(wrong, TopicCache())


@given(number, st.lists(number), st.lists(number))
def test_outcomes_come_out_as_they_went_in(serial: int, stored: list[int], refused: list[int]) -> None:
    found = decode_settled(encode_settled(Settled(serial, stored, refused)))
    assert (found.serial, [*found.stored], [*found.refused]) == (serial, stored, refused)
    assert decode_seen(encode_seen(serial)) == serial


@given(number, st.sampled_from(SoapVersion), st.sampled_from([None, "utf-8"]), st.binary())
def test_requests_come_out_as_they_went_in(
    mark: int, version: SoapVersion, charset: str | None, data: bytes
) -> None:
    request = FullRequest(mark, version, charset, data)
    assert decode_full(encode_full(request)) == request


@given(number, st.integers(100, 599), st.dictionaries(st.text(), st.text()), st.binary())
def test_answers_come_out_as_they_went_in(
    mark: int, status: int, headers: dict[str, str], body: bytes
) -> None:
    reply = FullReply(mark, status, headers, body)
    assert decode_reply(encode_reply(reply)) == reply


def _decode_publish(body: bytes) -> object:
    return decode_publish(body, TopicCache())


@given(
    st.sampled_from(
        (
            lambda body: decode_publish(body, TopicCache()),
            decode_settled,
            decode_seen,
            decode_full,
            decode_reply,
        )
    ),
    st.binary(max_size=80) | st.lists(st.integers(0, 9)).map(lambda n: b"".join(i.to_bytes(4) for i in n)),
)
def test_garbage_is_refused_in_words(decode: Callable[[bytes], object], body: bytes) -> None:
    try:
        decode(body)
    except BadFrame as wrong:
        assert str(wrong)


def test_tables_larger_than_the_body_are_refused_before_they_are_read() -> None:
    with pytest.raises(BadFrame, match="the tables have"):
        decode_publish(b"\xff" * 12, TopicCache())


def test_topics_that_are_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "TOPICS", 2)
    cache = TopicCache()
    for name in (b"A", b"B", b"C", b"A", b"C"):
        assert cache.find(name) == Topic.parse(name.decode())
        assert len(cache._known) <= 2


def test_terms_reach_the_door_as_they_are() -> None:
    terms = Terms(1, 2, 10, 1.5, 2.0, 1000, 8, 9, 10, "info", "json", "a", "b", "c", 5, 6, 7)
    assert parse_terms(encode_terms(terms)) == terms
    assert terms.limits.messages == 10
