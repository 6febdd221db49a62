"""Parsing of JSON events in a request: one object, an array of objects, or NDJSON (one object per line).

Accepts RFC 8259 in UTF-8, with numbers that fit a double or an integer. Rejects other input with its line and
column, requests without an event, and more events than the limit.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any, NoReturn

from hpwsn_client.wsn.formats.json_events import JsonObject
from hpwsn_client.wsn.soap.soap_faults import SoapFault, TooLarge
from hpwsn_client.wsn.soap.xml import DEFAULT_LIMITS, Limits
from hpwsn_client.wsn.topics.topic import shown

_BLANKS = " \t\r"


class MalformedJson(SoapFault):
    """The text is not valid JSON; line and column count from 1, and 0 means unknown."""

    default_status = 400

    def __init__(self, reason: str, line: int = 0, column: int = 0) -> None:
        place = f" (line {line}, column {column})" if line else ""
        super().__init__(reason + place)
        self.line = line
        self.column = column


def parse_events(data: bytes, limits: Limits = DEFAULT_LIMITS) -> list[JsonObject]:
    """Parse a JSON text: an object is one event, an array has one event for each item."""
    text = _decode(data)
    value = _load(text)
    events = value if isinstance(value, list) else [value]
    if not events:
        raise MalformedJson("the array is empty; send at least one object", 1, 1)
    _check_number(len(events), limits)
    for place, event in enumerate(events, 1):
        if not isinstance(event, dict):
            where = f"item {place}" if isinstance(value, list) else "it"
            raise MalformedJson(f"an event must be an object, and {where} is {_kind(event)}")
    return events


def parse_event_lines(data: bytes, limits: Limits = DEFAULT_LIMITS) -> list[JsonObject]:
    """Parse an NDJSON text; blank lines are skipped."""
    events: list[JsonObject] = []
    for number, line in enumerate(_decode(data).split("\n"), 1):
        if not line.strip(_BLANKS):
            continue
        _check_number(len(events) + 1, limits)
        events.append(parse_event_line(line, number))
    if not events:
        raise MalformedJson("there is no event; send at least one object, each on a line", 1, 1)
    return events


def parse_event_line(line: str, number: int = 1) -> JsonObject:
    """Parse one line of an NDJSON text, which is not blank."""
    event: JsonObject = _load(line, number)
    if not isinstance(event, dict):
        raise MalformedJson(f"an event must be an object, and this line is {_kind(event)}", number, 1)
    return event


def parse_object(data: bytes) -> JsonObject:
    """Parse a JSON text that is one object, whatever its purpose; no name may occur twice in an object."""
    found: JsonObject = parse_document(data)
    if not isinstance(found, dict):
        raise MalformedJson(f"the request must be a JSON object, and it is {_kind(found)}", 1, 1)
    return found


def parse_document(data: bytes) -> Any:
    """Parse any JSON text, whatever its purpose; no name may occur twice in an object."""
    return _load(_decode(data), decoder=_strict_decoder)


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        raise MalformedJson(f"byte 0x{data[error.start]:02x} is not UTF-8", line, column) from None


def _load(text: str, line: int = 1, decoder: json.JSONDecoder | None = None) -> Any:
    try:
        return (decoder or _decoder).decode(text)
    except json.JSONDecodeError as error:
        raise MalformedJson(f"this is not JSON: {error.msg}", line + error.lineno - 1, error.colno) from None
    except _Unacceptable as error:
        at = max(text.find(error.lexeme), 0)
        place = line + text.count("\n", 0, at), at - text.rfind("\n", 0, at)
        raise MalformedJson(f"{shown(error.lexeme)} is {error.reason}", *place) from None
    except RecursionError:
        raise MalformedJson("objects or arrays are nested too deep; flatten them", line, 1) from None


class _Unacceptable(Exception):
    def __init__(self, lexeme: str, reason: str) -> None:
        super().__init__(reason)
        self.lexeme = lexeme
        self.reason = reason


def _reject_constant(lexeme: str) -> NoReturn:
    raise _Unacceptable(lexeme, "not a JSON number; leave the field out, or send null")


def _float(lexeme: str) -> float:
    value = float(lexeme)
    if not math.isfinite(value):
        raise _Unacceptable(lexeme, "too large for a number; send it as text")
    return value


def _integer(lexeme: str) -> int:
    if len(lexeme) > 4000:
        raise _Unacceptable(lexeme, "too long for a number; send it as text")
    return int(lexeme)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise _Unacceptable(twice, "given twice in one object; leave one out")
    return found


_decoder = json.JSONDecoder(parse_float=_float, parse_int=_integer, parse_constant=_reject_constant)
_strict_decoder = json.JSONDecoder(
    parse_float=_float, parse_int=_integer, parse_constant=_reject_constant, object_pairs_hook=_object
)


def _check_number(number: int, limits: Limits) -> None:
    if number > limits.messages:
        raise TooLarge(
            f"there are more than the {limits.messages} events accepted at once; send several requests"
        )


def _kind(value: object) -> str:
    names = {list: "an array", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
