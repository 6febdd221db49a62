"""Which heads are ordinary, and that nothing else is taken for one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.door.listener import request_head as heads
from hpwsn.door.listener.request_head import Head, Heads, may_be_ordinary, read_head
from hpwsn_client.wsn.soap.envelope import SoapVersion

LIMIT = 1000
PLAIN = ("Host: x", "Content-Type: text/xml; charset=utf-8", "Content-Length: 12")


def head(*lines: str, start: str = "POST /wsn HTTP/1.1") -> bytes:
    return "\r\n".join((start, *lines)).encode("latin-1")


def test_an_ordinary_head_tells_length_and_type() -> None:
    assert read_head(head(*PLAIN), LIMIT) == Head(12, False, "utf-8", SoapVersion.SOAP11)
    soap12 = 'Content-Type: application/soap+xml; charset=utf-8; action="urn:x"'
    assert read_head(head("Host: x", soap12, "Content-Length: 0", "Connection: Close"), LIMIT) == Head(
        0, True, "utf-8", SoapVersion.SOAP12
    )


@pytest.mark.parametrize(
    "line",
    [
        'SOAPAction: ""',
        "User-Agent: zeep/4 (www.python-zeep.org)",
        "Accept: */*",
        "Accept-Encoding: gzip",
        "Connection: keep-alive",
        "X-Own: anything = ok",
    ],
)
def test_what_does_not_change_the_exchange_may_be_there(line: str) -> None:
    assert read_head(head(*PLAIN, line), LIMIT) is not None


@pytest.mark.parametrize(
    "line",
    [
        "Transfer-Encoding: chunked",
        "Content-Encoding: gzip",
        "Expect: 100-continue",
        "Upgrade: h2c",
        "Connection: upgrade",
        "Connection: close, keep-alive",
        "Content-Length: 12",
        "Content-Type: text/xml",
        "Host: y",
        "Trailer: x",
        "Authorization: Basic eA==",
        " folded",
        "Bad Header: x",
        "X: é",
        "X-Long: " + "y" * heads.LONGEST,
        "\r\n".join(["X: y"] * heads.MOST_HEADERS),
    ],
)
def test_anything_else_is_left_to_the_full_lane(line: str) -> None:
    assert read_head(head(*PLAIN, line), LIMIT) is None


@pytest.mark.parametrize(
    "start", ["GET /wsn HTTP/1.1", "POST /wsn HTTP/1.0", "POST /wsn/ HTTP/1.1", "POST /wsn?wsdl HTTP/1.1"]
)
def test_another_method_address_or_version_is_left_to_the_full_lane(start: str) -> None:
    assert read_head(head(*PLAIN, start=start), LIMIT) is None


def test_a_body_may_be_as_long_as_the_limit() -> None:
    lines = PLAIN[:2]
    assert read_head(head(*lines, f"Content-Length: {LIMIT}"), LIMIT) is not None
    for length in (str(LIMIT + 1), "", "-1", "+1", "0x1", "1 2", "9" * 19):
        assert read_head(head(*lines, f"Content-Length: {length}"), LIMIT) is None


@pytest.mark.parametrize("missing", range(3))
def test_a_head_without_host_type_or_length_is_left_to_the_full_lane(missing: int) -> None:
    assert read_head(head(*PLAIN[:missing], *PLAIN[missing + 1 :]), LIMIT) is None


def test_an_ordinary_head_may_be_ordinary_at_every_byte_of_it() -> None:
    whole = head(*PLAIN) + b"\r\n"
    assert all(may_be_ordinary(whole[:at]) for at in range(1, len(whole)))


@pytest.mark.parametrize(
    "begun", [b"GET", b"POST /x", b"POST /wsn HTTP/1.1\nHo", b"POST /wsn HTTP/1.1\r\nA b: "]
)
def test_a_head_that_cannot_become_ordinary_is_seen_early(begun: bytes) -> None:
    assert not may_be_ordinary(begun)


@given(st.binary(max_size=200))
def test_rubbish_is_never_ordinary(data: bytes) -> None:
    assert read_head(data, LIMIT) is None
    assert read_head(
        head("Host: x", "Content-Length: 12") + b"\r\n" + data, LIMIT
    ) is None or data.lower().startswith(b"content-type")


def test_what_is_remembered_is_bounded() -> None:
    known = Heads(LIMIT)
    for number in range(heads.REMEMBERED * 2):
        assert known.find(head(*PLAIN, f"X-Number: {number}")) is not None
    assert len(known._known) <= heads.REMEMBERED


TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
UNTRACED = Head(12, False, "utf-8", SoapVersion.SOAP11)


@pytest.mark.parametrize(
    ("lines", "trace"),
    [
        ((f"traceparent: {TRACE}",), TRACE),
        ((f"TraceParent:{TRACE}  ",), TRACE),
        ((f"traceparent: {TRACE}", "tracestate: a=1", "Tracestate: b=2"), f"{TRACE} a=1,b=2"),
        ((f"traceparent: {TRACE}", f"traceparent: {TRACE}"), None),
        (("traceparent: nonsense", "tracestate: a=1"), None),
        (("traceparent:",), None),
        (("tracestate: a=1",), None),
    ],
)
def test_a_head_with_a_trace_stays_in_the_lane(lines: tuple[str, ...], trace: str | None) -> None:
    known = Heads(LIMIT)
    for place in range(len(PLAIN) + 1):
        found = known.find(head(*PLAIN[:place], *lines, *PLAIN[place:]))
        assert found == UNTRACED._replace(trace=trace)
    assert known.find(head(*PLAIN)) == UNTRACED


def test_heads_that_differ_in_the_trace_only_are_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []
    monkeypatch.setattr(heads, "read_head", lambda head, limit: parsed.append(head) or UNTRACED)
    known = Heads(LIMIT)
    traces = [f"00-{number:032x}-{number:016x}-01" for number in range(1, 100)]
    found = [known.find(head(*PLAIN, f"traceparent: {trace}")) for trace in traces]
    assert [each and each.trace for each in found] == traces
    assert parsed == [head(*PLAIN)]


@given(st.binary(min_size=55, max_size=55))
def test_a_head_like_the_last_one_with_a_trace_is_read_as_if_it_were_the_first(value: bytes) -> None:
    known = Heads(LIMIT)
    assert known.find(head(*PLAIN, f"traceparent: {TRACE}")) == UNTRACED._replace(trace=TRACE)
    alike = head(*PLAIN, "traceparent: ") + value
    assert known.find(alike) == Heads(LIMIT).find(alike)


@pytest.mark.parametrize(
    "line",
    [
        f"traceparent: {TRACE}\r\n folded",
        "traceparent: caf\xe9",
        "tracestate: " + "a" * heads.LONGEST,
        "traceparent : x",
    ],
)
def test_an_odd_trace_line_leaves_the_lane(line: str) -> None:
    assert Heads(LIMIT).find(head(*PLAIN, line)) is None


def test_a_push_that_would_loop_leaves_the_lane_and_others_stay() -> None:
    known = Heads(LIMIT, lambda mark: mark == "own http://n")
    for more in ((), (f"traceparent: {TRACE}",)):
        assert known.find(head(*PLAIN, "hpwsn-PUSHED-by:  own http://n", *more)) is None
        assert known.find(head(*PLAIN, "Hpwsn-Pushed-By: other http://n", *more)) is not None
