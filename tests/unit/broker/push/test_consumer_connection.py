"""What a reply means, without a socket: each one whole, at every split, and as rubbish."""

import asyncio
import socket
import ssl
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.broker.push.consumer_connection import (
    Connection,
    OrdinaryReplies,
    explain_refusal,
    parse_retry_after,
)
from hpwsn.broker.push.request import Outcome, OutcomeKind, Ticket, parse_target

URL = "http://consumer/path"
LIMIT = 1000


class Wire(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.unsent = 0

    def write(self, data: bytes) -> None:
        self.written += data

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def abort(self) -> None:
        """Closed by the peer of the test, see Listener.close."""


class Listener:
    """Owns one connection with one post on it, and keeps what it tells."""

    def __init__(self, body: bytes | list[bytes] = b"") -> None:
        self.outcome: Outcome | None = None
        self.reusable: bool | None = None
        self.wire = Wire()
        self.ticket = Ticket(lambda ticket: False, URL, b"A: b\r\n", body, lambda outcome: None)
        self.ticket.target = parse_target(URL)
        self.connection = Connection(self, ("http", "consumer", 80), LIMIT)
        self.connection.connection_made(self.wire)
        self.connection.take(self.ticket)
        self.connection.write()

    def feed(self, *pieces: bytes) -> None:
        for piece in pieces:
            if self.outcome is None:
                self.connection.data_received(piece)

    def close(self) -> None:
        if self.outcome is None:
            self.connection.connection_lost(None)

    def opened(self, connection: Connection) -> None:
        pass

    def spoiled(self, connection: Connection) -> None:
        pass

    def answered(self, connection: Connection, outcome: Outcome, reusable: bool) -> None:
        assert self.outcome is None
        self.outcome, self.reusable = outcome, reusable

    def lost(self, connection: Connection, outcome: Outcome | None) -> None:
        assert self.outcome is None
        self.outcome, self.reusable = outcome, False


K = OutcomeKind
REPLIES = [
    (b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", K.DELIVERED, 202, b"", True),
    (b"HTTP/1.1 204 No Content\r\n\r\n", K.DELIVERED, 204, b"", True),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes", K.DELIVERED, 200, b"yes", True),
    (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nyes\r\n4\r\n, it\r\n0\r\n\r\n",
        K.DELIVERED, 200, b"yes, it", True,
    ),
    (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", K.DELIVERED, 200, b"until the end", False),
    (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", K.DELIVERED, 200, b"", False),
    (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", K.DELIVERED, 200, b"", False),
    (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", K.DELIVERED, 200, b"", True),
    (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 P\r\n\r\nHTTP/1.1 202 A\r\nContent-Length: 0\r\n\r\n",
        K.DELIVERED, 202, b"", True,
    ),
    (b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno", K.CLIENT_ERROR, 404, b"no", True),
    (b"HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\nno", K.SERVER_ERROR, 500, b"no", True),
    (b"HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n", K.GARBAGE, 302, b"", True),
    (b"HTTP/1.1 100 Continue\r\n\r\n", K.GARBAGE, 100, b"", False),
    (
        b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
        K.GARBAGE, 101, b"", False,
    ),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", K.LOST, 200, b"", False),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf", K.LOST, 200, b"", False),
    (b"HTTP/1.1 200 OK\r\nContent-Le", K.LOST, None, b"", False),
    (b"", K.LOST, None, b"", False),
    (b"220 mail.example.com ESMTP\r\n", K.GARBAGE, None, b"", False),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", K.GARBAGE, 200, b"", False),
    (b"HTTP/1.1 200 OK\r\nA: " + b"a" * LIMIT, K.GARBAGE, None, b"", False),
    (b"HTTP/1.1 503 Busy\r\n\r\n" + b"a" * LIMIT, K.SERVER_ERROR, 503, b"a", False),
]  # fmt: skip


@pytest.mark.parametrize(("reply", "kind", "status", "body", "reusable"), REPLIES)
def test_a_reply_means_the_same_at_every_split(reply, kind, status, body, reusable):
    splits = [(reply[:at], reply[at:]) for at in range(1, len(reply))]
    for pieces in [(reply,), *splits, tuple(bytes([byte]) for byte in reply)]:
        listener = Listener()
        listener.feed(*(piece for piece in pieces if piece))
        listener.close()
        assert listener.outcome is not None
        assert (listener.outcome.kind, listener.outcome.status) == (kind, status)
        assert listener.outcome.body.startswith(body)
        assert listener.reusable is reusable


@given(st.lists(st.sampled_from(REPLIES), min_size=1, max_size=8))
def test_a_reply_that_was_seen_before_means_the_same_again(replies):
    for reply, kind, status, body, reusable in replies:
        listener = Listener()
        listener.feed(reply)
        listener.close()
        assert listener.outcome is not None
        assert (listener.outcome.kind, listener.outcome.status, listener.reusable) == (kind, status, reusable)
        assert listener.outcome.body.startswith(body)


def test_one_connection_reads_on_after_replies_that_it_knew():
    known, other = (reply for reply, *_ in (REPLIES[0], REPLIES[9]))
    listener = Listener()
    for reply, status in ((known, 202), (known, 202), (other, 404), (known, 202), (other, 404)):
        listener.outcome = None
        listener.connection.take(listener.ticket)
        listener.connection.write()
        listener.feed(reply[:20], reply[20:]) if reply is other else listener.feed(reply)
        assert listener.outcome is not None
        assert (listener.outcome.status, listener.reusable) == (status, True)


def test_a_known_reply_before_the_request_is_out_ends_the_connection():
    for _ in range(2):
        listener = Listener()
        listener.wire.unsent = 1
        listener.feed(REPLIES[0][0])
        assert listener.outcome is not None
        assert listener.reusable is False


def test_only_so_many_ordinary_replies_are_remembered():
    replies = OrdinaryReplies()
    delivered = Outcome(OutcomeKind.DELIVERED, 202, "another")
    listener = Listener()
    listener.feed(REPLIES[0][0])
    ordinary = listener.outcome
    replies.learn(b"odd", delivered)
    replies.learn(b"x" * (OrdinaryReplies.LONGEST + 1), ordinary)
    assert replies.get(b"odd") is None
    for number in range(OrdinaryReplies.MOST):
        replies.learn(b"%d" % number, ordinary)
    assert replies.get(b"0") is ordinary
    replies.learn(b"one more", ordinary)
    assert (replies.get(b"0"), replies.get(b"one more")) == (None, ordinary)


@given(st.binary(max_size=200), st.sampled_from([reply for reply, *_ in REPLIES]), st.data())
def test_rubbish_gives_an_outcome_and_nothing_else(rubbish: bytes, reply: bytes, data: st.DataObject):
    at = data.draw(st.integers(0, len(reply)))
    listener = Listener()
    listener.feed(reply[:at] + rubbish + reply[at:])
    listener.close()
    assert isinstance(listener.outcome, Outcome)


def test_a_request_is_joined_from_what_was_prepared():
    listener = Listener([b"<a>", b"b", b"</a>"])
    expected = b"POST /path HTTP/1.1\r\nHost: consumer\r\nA: b\r\nContent-Length: 8\r\n\r\n<a>b</a>"
    assert listener.wire.written == expected
    assert Listener(b"<a>b</a>").wire.written == expected


def test_a_reply_with_more_behind_it_counts_but_ends_the_connection():
    listener = Listener()
    listener.feed(REPLIES[0][0] + b"HTTP/1.1 500 Oops\r\n")
    assert listener.outcome is not None
    assert listener.outcome.status == 202
    assert listener.reusable is False


def test_a_reply_before_the_request_was_sent_ends_the_connection():
    listener = Listener()
    listener.wire.unsent = 1
    listener.feed(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
    assert listener.outcome is not None
    assert listener.outcome.kind is OutcomeKind.CLIENT_ERROR
    assert listener.reusable is False


def test_only_the_start_of_a_body_is_kept():
    listener = Listener()
    listener.connection._limit = 10_000
    listener.feed(b"HTTP/1.1 500 Oops\r\nContent-Length: 5000\r\n\r\n", b"a" * 1500, b"b" * 3500)
    assert listener.outcome is not None
    assert listener.outcome.body == b"a" * 1500 + b"b" * 548


def test_the_reason_names_the_address_and_the_status():
    listener = Listener()
    listener.feed(b"HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n")
    assert listener.outcome == Outcome(
        OutcomeKind.SERVER_ERROR, 503, "POST http://consumer/path: status 503", retry_after=7.0
    )


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (b"120", 120.0), (b" 0 ", 0.0), (b"9" * 400, 1e9), (b"-1", None), (b"soon", None), (b"", None),
        (b"1.5", None), (b"\xb2", None), (b"Sun, 06 Nov 1994 08:49:37 GMT", 0.0),
        (b"Sun, 06 Nov 1994 08:49:37 -0000", 0.0), (b"Sun, 99 Nov 1994 08:49:37 GMT", None),
    ],
)  # fmt: skip
def test_retry_after_is_read_in_both_forms(value: bytes, seconds: float | None):
    assert parse_retry_after(value) == seconds


def test_retry_after_with_a_date_is_the_time_from_now():
    later = datetime.now(UTC) + timedelta(seconds=100)
    seconds = parse_retry_after(format_datetime(later, usegmt=True).encode())
    assert seconds is not None
    assert 90 < seconds <= 100


@pytest.mark.parametrize(
    ("url", "key", "head"),
    [
        ("http://a", ("http", "a", 80), "POST / HTTP/1.1\r\nHost: a\r\n"),
        ("HTTP://A:80/b", ("http", "a", 80), "POST /b HTTP/1.1\r\nHost: a\r\n"),
        ("http://a:8080/b?c=d&e", ("http", "a", 8080), "POST /b?c=d&e HTTP/1.1\r\nHost: a:8080\r\n"),
        ("http://a?b", ("http", "a", 80), "POST /?b HTTP/1.1\r\nHost: a\r\n"),
        ("http://a/b#c", ("http", "a", 80), "POST /b HTTP/1.1\r\nHost: a\r\n"),
        ("https://a/%20", ("https", "a", 443), "POST /%20 HTTP/1.1\r\nHost: a\r\n"),
        ("http://[::1]:81/", ("http", "::1", 81), "POST / HTTP/1.1\r\nHost: [::1]:81\r\n"),
        ("http://京.example/京", ("http", "xn--1lq.example", 80),
         "POST /%E4%BA%AC HTTP/1.1\r\nHost: xn--1lq.example\r\n"),
    ],
)  # fmt: skip
def test_a_url_is_made_ready(url: str, key: tuple[str, str, int], head: str):
    target = parse_target(url)
    assert (target.key, target.head) == (key, head.encode())


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "http://"),
        ("consumer/path", "http://"),
        ("ftp://a/", "http://"),
        ("http://", "no host"),
        ("http:///path", "no host"),
        ("http://user:secret@a/", "user name"),
        ("http://a/ b", "spaces"),
        ("http://a/\r\nX: y", "control"),
        ("http://a/" + "b" * 9000, "8192"),
        ("http://a:0/", "from 1 to 65535"),
        ("http://a:99999/", "[Pp]ort"),
        ("http://a:b/", "[Pp]ort"),
        ("http://[::1/", "not a URL"),
        ("http://a_b!/", "not a host"),
        ("http://" + "京" * 70 + "/", "."),
        ("http://a/\ud800", "."),
    ],
)
def test_a_url_that_cannot_be_posted_to_is_refused_with_a_reason(url: str, words: str):
    with pytest.raises(ValueError, match=words):
        parse_target(url)


@given(st.text(max_size=50))
def test_no_url_can_add_a_line_to_the_request(text: str):
    try:
        target = parse_target(f"http://{text}")
    except ValueError:
        return
    assert target.head.count(b"\r\n") == 2
    assert target.head.count(b"\n") == target.head.count(b"\r") == 2
    assert target.head.count(b" ") == 3


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConnectionRefusedError(111, "Connect call failed ('127.0.0.1', 1)"), "connection refused"),
        (socket.gaierror(-2, "Name or service not known"), "the host name is not known"),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong"), "TLS failed"),
        (OSError("Multiple exceptions: a, b"), "Multiple exceptions: a, b"),
        (ValueError(), "ValueError"),
    ],
)
def test_a_refusal_is_told_in_words(error: Exception, words: str):
    assert explain_refusal(error).startswith(words)
