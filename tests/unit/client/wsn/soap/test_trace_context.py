"""W3C Trace Context, by a table of headers and by random ones."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn_client.wsn.soap.trace_context import (
    LONGEST_TRACEPARENT,
    LONGEST_TRACESTATE,
    MOST_MEMBERS,
    encode_traces,
    http_headers,
    main_trace,
    parse_trace,
    parse_traceparent,
    parse_traces,
    traceparent_of,
)
from hpwsn_client.wsn.soap.xml import parse_xml

TRACE_ID, PARENT_ID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
VALID = f"00-{TRACE_ID}-{PARENT_ID}-01"
OTHER = f"00-{TRACE_ID[::-1]}-{PARENT_ID}-00"


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (VALID, VALID),
        (f"  {VALID}\t", VALID),
        (f"00-{TRACE_ID}-{PARENT_ID}-00", f"00-{TRACE_ID}-{PARENT_ID}-00"),
        (f"00-{TRACE_ID}-{PARENT_ID}-ff", f"00-{TRACE_ID}-{PARENT_ID}-ff"),
        # A later version: its first fields count, and only the sampled flag is known.
        (f"01-{TRACE_ID}-{PARENT_ID}-01", VALID),
        (f"cc-{TRACE_ID}-{PARENT_ID}-03-what-comes-later", VALID),
        (f"cc-{TRACE_ID}-{PARENT_ID}-02-", f"00-{TRACE_ID}-{PARENT_ID}-00"),
        # Malformed.
        (f"cc-{TRACE_ID}-{PARENT_ID}-01.later", None),
        (f"cc-{TRACE_ID}-{PARENT_ID}-01-{'x' * LONGEST_TRACEPARENT}", None),
        (f"{VALID}-more", None),
        (f"ff-{TRACE_ID}-{PARENT_ID}-01", None),
        (f"00-{'0' * 32}-{PARENT_ID}-01", None),
        (f"00-{TRACE_ID}-{'0' * 16}-01", None),
        (VALID.upper(), None),
        (VALID[:-1], None),
        (f"0-{TRACE_ID}-{PARENT_ID}-01", None),
        (f"00-{TRACE_ID}g-{PARENT_ID}-01", None),
        (VALID.replace("-", "_"), None),
        ("", None),
        ("٠" * 55, None),
    ],
)
def test_a_traceparent_is_read_by_its_version_and_ignored_if_malformed(text: str, meant: str | None) -> None:
    assert parse_traceparent(text) == meant


@pytest.mark.parametrize(
    ("states", "meant"),
    [
        ([], ""),
        ([""], ""),
        (["congo=t61rcWkgMzE"], "congo=t61rcWkgMzE"),
        (["rojo=1, ,congo=2", "a@b=3"], "rojo=1,congo=2,a@b=3"),
        (["Rojo=1"], ""),
        (["rojo"], ""),
        (["rojo=a=b"], ""),
        (["rojo=1--2"], ""),
        (
            [",".join(f"k{n}=1" for n in range(MOST_MEMBERS))],
            ",".join(f"k{n}=1" for n in range(MOST_MEMBERS)),
        ),
        ([",".join(f"k{n}=1" for n in range(MOST_MEMBERS + 1))], ""),
        (["a=" + "x" * 254 + ",b=" + "x" * 253], "a=" + "x" * 254 + ",b=" + "x" * 253),
        (["a=" + "x" * 254 + ",b=" + "x" * 254], "a=" + "x" * 254 + ",b=" + "x" * 254),
        (["a=" + "x" * 254 + ",b=" + "x" * 252 + ",c"], ""),
    ],
)
def test_a_malformed_tracestate_is_left_out(states: list[str], meant: str) -> None:
    expected = meant if len(meant) <= LONGEST_TRACESTATE else ""
    assert parse_trace([VALID], states) == f"{VALID} {expected}".rstrip()


def test_several_traceparents_are_none() -> None:
    assert parse_trace([VALID, VALID]) is None
    assert parse_trace([]) is None


def test_a_trace_is_sent_as_the_headers_it_came_by() -> None:
    trace = parse_trace([VALID], ["a=1"])
    assert trace is not None
    assert http_headers(trace) == {"traceparent": VALID, "tracestate": "a=1"}
    assert http_headers(VALID) == {"traceparent": VALID}


def test_the_first_sampled_trace_stands_for_all() -> None:
    assert main_trace([None, OTHER, VALID]) == VALID
    assert main_trace([None, OTHER]) == OTHER


@pytest.mark.parametrize(
    ("text", "count", "meant"),
    [
        (VALID, 2, [VALID, VALID]),
        (f"{VALID} - {OTHER}", 3, [VALID, None, OTHER]),
        (f"{VALID} nonsense", 2, [VALID, None]),
        (f"{VALID} {OTHER}", 3, []),
        ("nonsense", 1, [None]),
        ("", 1, []),
    ],
)
def test_the_soap_header_has_one_trace_for_all_or_one_for_each(
    text: str, count: int, meant: list[str | None]
) -> None:
    assert parse_traces(text, count) == meant


valid = st.builds(
    lambda trace, parent, flags: f"00-{trace:032x}-{parent:016x}-{flags:02x}",
    st.integers(1, 2**128 - 1),
    st.integers(1, 2**64 - 1),
    st.integers(0, 255),
)


@given(valid)
def test_every_valid_traceparent_is_kept(text: str) -> None:
    assert parse_traceparent(text) == text


@given(st.one_of(st.text(), st.text("0123456789abcdef-" + string.whitespace, max_size=300)))
def test_garbage_never_raises_and_gives_a_valid_traceparent_or_none(text: str) -> None:
    found = parse_traceparent(text)
    assert found is None or parse_traceparent(found) == found
    assert parse_trace([VALID], [text]) is not None
    assert len(parse_traces(text, 3)) in (0, 3)


@given(st.lists(st.one_of(st.none(), valid), min_size=1, max_size=5).filter(any))
def test_what_the_soap_header_says_is_read_back(given_traces: list[str | None]) -> None:
    header = parse_xml(encode_traces(given_traces))
    assert parse_traces(header.text or "", len(given_traces)) == [
        None if each is None else traceparent_of(each) for each in given_traces
    ]
