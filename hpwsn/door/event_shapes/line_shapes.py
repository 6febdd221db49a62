"""JSON events of a request as payloads: many at once by their shape (learned_shapes).

Only ordinary requests are converted here: lines of objects in UTF-8, or an array of objects that can be split
into lines. For all others, and for every error, `payloads_of` returns None, and the caller parses the request
in full (json_text, json_events), which is the reference.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hpwsn.door.event_shapes.learned_shapes import Converter, Cut, Field, Key, Kind, LearnedShapes
from hpwsn.door.event_shapes.leaves import (
    CLOSE,
    DECIMAL,
    JSON_SCALAR,
    NOT_LITERAL,
    OPEN,
    TEXT,
    element_rest,
    start_tag,
)
from hpwsn.notification import END
from hpwsn_client.wsn.formats.json_events import ENVELOPE_LEVELS, encode_event
from hpwsn_client.wsn.formats.json_text import parse_event_line
from hpwsn_client.wsn.soap.soap_faults import SoapFault
from hpwsn_client.wsn.soap.xml import Limits

_BOM = b"\xef\xbb\xbf"
_NOT_XML = b"\xef\xbf"
"""The first bytes of U+FFFE and U+FFFF, which XML does not allow, and of some other characters."""
_member = re.compile(rb'([{,][ \t]*+)"([^"\\\x00-\x1f]++)"([ \t]*+:[ \t]*+)(%b)([ \t]*+)' % JSON_SCALAR).match
# Members whose names and values need neither escapes nor marks.
_NAME = rb"[A-Za-z_][A-Za-z0-9_.-]*+"
_VALUE = rb'"%b%b"|%b(?=[ \t,}])' % (NOT_LITERAL % b'"', TEXT, DECIMAL)
_members = re.compile(rb'"(%b)"[ \t]*+:[ \t]*+(%b)' % (_NAME, _VALUE)).findall
_MEMBER = rb'[ \t]*+"%b"[ \t]*+:[ \t]*+(?:%b)[ \t]*+' % (_NAME, _VALUE)
_is_flat = re.compile(rb"[ \t]*+\{%b(?:,%b)*+\}[ \t\r]*+" % (_MEMBER, _MEMBER)).fullmatch
_end = re.compile(rb"[ \t]*+\}[ \t\r]*+").fullmatch
_is_decimal = re.compile(DECIMAL).fullmatch
_is_text = re.compile(rb'"' + NOT_LITERAL % b'"' + TEXT + rb'"').fullmatch


class LineForm:
    """Each line becomes a payload with END; a blank line becomes nothing."""

    terminator = b"\n"

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._accepts_flat = limits.depth > ENVELOPE_LEVELS

    def convert_slowly(self, item: bytes) -> tuple[bytes, Key | None]:
        """A line of any shape."""
        if not item.strip(b" \t\r"):
            return b"", None
        if self._accepts_flat and _is_flat(item) is not None:
            members = _members(item)
            names = tuple([name for name, _ in members])
            if len(set(names)) == len(names):
                fields = [b"<%b>%b</%b>" % (name, value.strip(b'"'), name) for name, value in members]
                return OPEN + b"".join(fields) + CLOSE + END, names
        event = parse_event_line(item.decode())
        return encode_event(event, self._limits) + END, tuple(event)

    def read_shape(self, item: bytes) -> list[Field] | None:
        """The fields of a flat object, with the white space around their names."""
        fields, at = [], 0
        while (member := _member(item, at)) is not None:
            before, name, colon, value, after = member.groups()
            lead = re.escape(before) + b'"' + re.escape(name) + b'"' + re.escape(colon)
            fields.append(Field(name.decode(), _kind(value), lead))
            if after:
                return None
            at = member.end()
        names = {field.name for field in fields}
        return fields if _end(item, at) and names and len(names) == len(fields) else None

    def compile_cut(self, fields: Sequence[Field]) -> Cut:
        """The conversion to payloads."""
        expression, places = [rb"(?m)^"], [OPEN]
        converters: dict[int, Converter] = {}
        for at, field in enumerate(fields):
            opening, closing = start_tag(field.name)
            opening = opening.replace(b"%", b"%%")
            expression.append(field.lead + _value(field.kind))
            if field.kind == "any":
                converters[at] = _element(closing)
                places.append(opening + b"%b")
            else:
                places.append(opening + b">%b" + closing)
        expression.append(rb"[ \t]*+\}[ \t\r]*+\n")
        template = b"".join((*places, CLOSE, END))
        return Cut(fields, b"".join(expression), template, range(len(fields)), converters)


def _kind(value: bytes) -> Kind:
    if _is_decimal(value):
        return "literal"
    return "text" if _is_text(value) else "any"


def _value(kind: Kind) -> bytes:
    """An expression with one group."""
    if kind == "literal":
        return b"(" + DECIMAL + rb")(?=[ \t,}])"
    if kind == "text":
        return b'"' + NOT_LITERAL % b'"' + b"(" + TEXT + b')"'
    return b"(" + JSON_SCALAR + rb")(?=[ \t,}])"


def _element(closing: bytes) -> Converter:
    def convert(value: bytes) -> bytes:
        event = parse_event_line(f'{{"":{value.decode()}}}')
        return element_rest(event[""], closing)  # type: ignore[arg-type]

    return convert


class LineShapes:
    """Converts requests, and learns from them."""

    def __init__(self, limits: Limits, growth: int) -> None:
        self._limits = limits
        self._most_bytes = growth * limits.body
        self._shapes = LearnedShapes(LineForm(limits))

    def payloads_of(self, data: bytes, *, array: bool) -> tuple[bytes, int] | None:
        """All payloads of a request, with END after each, and their number; None for the slow way."""
        lines = _split_array(data) if array else data.removeprefix(_BOM)
        if lines is None or not _is_plain(lines):
            return None
        lines = lines if lines.endswith(b"\n") else lines + b"\n"
        count = lines.count(b"\n")
        if count > self._limits.messages:
            return None
        try:
            payloads = list(filter(None, self._shapes.convert(lines, count)))
        except SoapFault:
            return None
        joined = b"".join(payloads)
        return (joined, len(payloads)) if 0 < len(joined) <= self._most_bytes else None


def _is_plain(data: bytes) -> bool:
    """Whether the lines are UTF-8 without characters that XML does not allow, or that begin a text."""
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return _NOT_XML not in data and not data.startswith(_BOM) and b"\n" + _BOM not in data


def _split_array(data: bytes) -> bytes | None:
    """The objects of an array, each on a line, or a single object; None if that is not certain.

    If each line is an object, then the split was right: a piece of an object or of a string is not one.
    """
    text = data.strip(b" \t\r\n")
    if text.startswith(b"{"):
        return None if b"\n" in text else text
    if not text.startswith(b"[") or not text.endswith(b"]"):
        return None
    inner = text[1:-1].strip(b" \t\r\n").replace(b"},\n", b"}, ")
    if not inner or b"\n" in inner:
        return None
    return inner.replace(b"}, {", b"}\n{").replace(b"},{", b"}\n{")
