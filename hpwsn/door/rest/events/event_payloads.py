"""Events of a request, in JSON or XML, as payloads; JSON of a very large request is parsed in a process.

To parse 100 MB of JSON holds the interpreter lock for longer than others can wait, in whatever thread. So a
child process parses a request above `ELSEWHERE` bytes, reads it from its standard input and writes the
payloads to its standard output. Its standard error has the number of events, or what is wrong with them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import astuple, replace

from hpwsn.notification import END
from hpwsn_client.wsn.formats.json_events import ENVELOPE_LEVELS, encode_event
from hpwsn_client.wsn.formats.json_text import MalformedJson, parse_event_lines, parse_events
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.soap.xml import Limits, encode_element, parse_xml

JSON_TYPE, LINES_TYPE = "application/json", "application/x-ndjson"
XML_TYPES = ("application/xml", "text/xml")
GROWTH = 4
"""Maximum size of a request's events in XML, as a multiple of `server.body_limit`."""
ELSEWHERE = 16 << 20
"""Bytes of a request above which a process parses it."""

_PARSERS = {JSON_TYPE: parse_events, LINES_TYPE: parse_event_lines}
_MALFORMED = "malformed"


def payloads_of(data: bytes, content_type: str, limits: Limits) -> tuple[bytes, int]:
    """The payloads of a request, with END after each, and their number."""
    events = _PARSERS[content_type](data, limits)
    room = GROWTH * limits.body
    payloads = []
    for event in events:
        try:
            payloads.append(encode_event(event, replace(limits, body=max(room, 1))))
        except faults.TooLarge as error:
            reason = f"the events have more than {GROWTH * limits.body} characters as XML"
            raise faults.TooLarge(f"{reason}; send several requests") from error
        room -= len(payloads[-1])
    return END.join((*payloads, b"")), len(payloads)


def xml_payload(data: bytes, charset: str | None, limits: Limits) -> tuple[bytes, int]:
    """The element of a request as a payload, with END after it, and 1."""
    room = replace(limits, depth=max(limits.depth - ENVELOPE_LEVELS, 1))
    return encode_element(parse_xml(data, room, charset, comments=True)) + END, 1


def payloads_elsewhere(data: bytes, content_type: str, limits: Limits) -> tuple[bytes, int]:
    """As `payloads_of`, in a process; it blocks: use a thread."""
    command = [sys.executable, "-m", __name__, content_type, *map(str, astuple(limits))]
    ended = subprocess.run(command, input=data, capture_output=True, check=False)
    try:
        told = json.loads(ended.stderr)
        if ended.returncode == 0:
            return ended.stdout, int(told["count"])
    except (ValueError, KeyError):
        raise RuntimeError(f"the process for JSON failed: {ended.stderr[-500:]!r}") from None
    if told["kind"] == _MALFORMED:
        raise _malformed(told["reason"], told["line"], told["column"])
    raise faults.SoapFault(told["reason"], status=told["status"])


def _malformed(reason: str, line: int, column: int) -> MalformedJson:
    fault = MalformedJson(reason)
    fault.line, fault.column = line, column
    return fault


def main(arguments: Sequence[str]) -> int:
    """What the process does."""
    content_type, *numbers = arguments
    try:
        payloads, count = payloads_of(sys.stdin.buffer.read(), content_type, Limits(*map(int, numbers)))
    except MalformedJson as fault:
        place = {"line": fault.line, "column": fault.column}
        sys.stderr.write(json.dumps({"kind": _MALFORMED, "reason": fault.reason, **place}))
        return 1
    except faults.SoapFault as fault:
        sys.stderr.write(json.dumps({"kind": "", "reason": fault.reason, "status": fault.status}))
        return 1
    sys.stdout.buffer.write(payloads)
    sys.stderr.write(json.dumps({"count": count}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
