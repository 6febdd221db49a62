"""Answers cut out of a stream: whole, at every split, several in a row, and rubbish."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn_client.pipeline import HEAD_LIMIT, NotHttp, RawReply, ReplyReader

LIMIT = 10_000
CASES = {
    b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n": (202, b"", True),
    b"HTTP/1.1 200 OK\r\ncontent-length:5\r\nX: y\r\n\r\nhello": (200, b"hello", True),
    b"HTTP/1.1 204 \r\n\r\n": (204, b"", True),
    b"HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno": (503, b"no", False),
    b"HTTP/1.0 202 Accepted\r\nContent-Length: 0\r\n\r\n": (202, b"", False),
    b"HTTP/1.1 500 E\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n": (
        500,
        b"abc0123456789",
        True,
    ),
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nTrailer: x\r\n\r\n": (200, b"", True),
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n": (202, b"", True),
}


def read(*pieces: bytes) -> list[tuple[int, bytes, bool]]:
    reader = ReplyReader(LIMIT)
    return [seen(reply) for piece in pieces for reply in reader.feed(piece)]


def seen(reply: RawReply) -> tuple[int, bytes, bool]:
    return reply.status, reply.content, reply.keep_alive


@pytest.mark.parametrize("data", CASES, ids=range(len(CASES)))
def test_an_answer_is_the_same_at_every_split(data):
    for at in range(len(data) + 1):
        assert read(data[:at], data[at:]) == [CASES[data]]


@given(st.lists(st.sampled_from(list(CASES)), max_size=5), st.integers(1, 40))
def test_answers_in_a_row_come_in_order_however_they_are_cut(answers, size):
    data = b"".join(answers)
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    assert read(*pieces) == [CASES[answer] for answer in answers]


def test_an_answer_without_a_length_ends_with_the_connection():
    reader = ReplyReader(LIMIT)
    assert reader.feed(b"HTTP/1.1 200 OK\r\n\r\nhel") == []
    assert reader.feed(b"lo") == []
    reply = reader.end()
    assert reply is not None
    assert seen(reply) == (200, b"hello", False)


def test_a_connection_that_ends_between_or_within_answers_gives_none():
    for data in (b"", b"HTTP/1.1 20", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhel"):
        reader = ReplyReader(LIMIT)
        assert reader.feed(data) == []
        assert reader.end() is None


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 two hundred\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: \xb2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"H" * (HEAD_LIMIT + 1),
    ],
)
def test_what_is_no_answer_is_refused(data):
    with pytest.raises(NotHttp):
        read(data)


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 10001\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n2711\r\n",
        b"\r\n" + b"x" * 10_001,
    ],
)
def test_an_answer_above_the_limit_is_refused_before_it_has_come(head):
    with pytest.raises(NotHttp, match="larger than 10000 bytes"):
        read(b"HTTP/1.1 200 OK\r\n" + head)


@given(st.lists(st.binary(max_size=60), max_size=6))
def test_rubbish_is_refused_or_waits_and_never_breaks(pieces):
    reader = ReplyReader(LIMIT)
    try:
        for piece in (b"HTTP/1.1 200 OK\r\n", *pieces):
            reader.feed(piece)
        reader.end()
    except NotHttp:
        pass
