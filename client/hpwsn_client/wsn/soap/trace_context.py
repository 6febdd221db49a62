"""W3C Trace Context (level 1): the headers `traceparent` and `tracestate`, and our SOAP header. Pure.

A trace is one text: a valid traceparent of version 00, and after a blank the tracestate, if there is one. A
malformed traceparent is ignored, never an error, and so is a malformed tracestate. A later version is read
by its first four fields and continued as version 00, as the recommendation asks (section 3.2.4).

The SOAP header hp:Traceparent has one traceparent for all messages of a Notify, or one for each message in
their order, separated by blanks, with `-` for a message without one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from hpwsn_client.wsn.soap.names import HPWSN, hp

TRACEPARENT = hp("Traceparent")
LENGTH = 55
"""Characters of a traceparent of version 00."""
LONGEST_TRACEPARENT = 256
"""Characters of a traceparent of a later version, beyond which it is ignored."""
LONGEST_TRACESTATE = 512
"""Characters of a tracestate, beyond which it is left out; the recommendation asks for at least 512."""
MOST_MEMBERS = 32
"""Members of a tracestate."""
TRACE = r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(?: [\x21-\x7e][\x20-\x7e]{0,511})?"
"""A regular expression for a trace."""

_NONE = "-"
_BLANK = " \t\r\n"
_parent = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-[\x21-\x7e]*)?"
).fullmatch
_member = re.compile(
    r"[a-z0-9][a-z0-9_\-*/@]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
).fullmatch


def parse_traceparent(text: str) -> str | None:
    """The traceparent as version 00; None if it is malformed."""
    text = text.strip(_BLANK) if len(text) <= LONGEST_TRACEPARENT else ""
    found = _parent(text)
    if found is None:
        return None
    version, trace_id, parent_id, flags, more = found.groups()
    if version == "00":
        return None if more else text
    # Of a later version only the meaning of the sampled flag is known.
    return f"00-{trace_id}-{parent_id}-{int(flags, 16) & 1:02x}"


def parse_trace(traceparents: Sequence[str], tracestates: Sequence[str] = ()) -> str | None:
    """The trace of a request with these header values; None unless it has exactly one valid traceparent."""
    traceparent = parse_traceparent(traceparents[0]) if len(traceparents) == 1 else None
    if traceparent is None:
        return None
    state = _parse_state(",".join(tracestates)) if tracestates else ""
    return f"{traceparent} {state}" if state else traceparent


def _parse_state(text: str) -> str:
    """The members of a tracestate; empty if it is malformed or too long."""
    members = [member for each in text.split(",") if (member := each.strip(" \t"))]
    state = ",".join(members)
    # A mark, which is an XML comment, cannot hold "--".
    if len(state) > LONGEST_TRACESTATE or len(members) > MOST_MEMBERS or "--" in state:
        return ""
    return state if all(map(_member, members)) else ""


def traceparent_of(trace: str) -> str:
    """The traceparent of a trace."""
    return trace[:LENGTH]


def tracestate_of(trace: str) -> str:
    """The tracestate of a trace; empty without one."""
    return trace[LENGTH + 1 :]


def is_sampled(trace: str) -> bool:
    """Whether the publisher records this trace."""
    return bool(int(trace[LENGTH - 2 : LENGTH], 16) & 1)


def main_trace(traces: Iterable[str | None]) -> str:
    """The trace that stands for all: the first that is sampled, else the first; one must be there."""
    given = [trace for trace in traces if trace is not None]
    return next(filter(is_sampled, given), given[0])


def http_headers(trace: str) -> dict[str, str]:
    """The HTTP headers of a trace."""
    state = tracestate_of(trace)
    return {"traceparent": traceparent_of(trace), **({"tracestate": state} if state else {})}


def encode_traces(traces: Sequence[str | None]) -> bytes:
    """The SOAP header for messages with these traces, at least one of which has one."""
    texts = [_NONE if trace is None else traceparent_of(trace) for trace in traces]
    written = texts[0] if len(set(texts)) == 1 else " ".join(texts)
    return f'<hp:Traceparent xmlns:hp="{HPWSN}">{written}</hp:Traceparent>'.encode()


def parse_traces(text: str, count: int) -> list[str | None]:
    """The traceparent of each of `count` messages; empty unless the header has one, or one for each."""
    texts = text.split()
    if len(texts) != count and len(texts) != 1:
        return []
    traces = [parse_traceparent(each) for each in texts]
    return traces * count if len(traces) == 1 else traces
