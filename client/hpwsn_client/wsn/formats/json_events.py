"""The mapping between JSON events and XML payloads.

An object is encoded as `hp:event` with an unqualified child for each field, or `hp:field` if the name is not
an XML name. Arrays become repeated children, and objects become nested elements. Where this is ambiguous (the
text "21", null, an array of one), an attribute in HPwsn's namespace gives the type, so that JSON readers get
the published object. Other XML becomes an object too: leaf elements by local name, repeated ones as arrays,
numbers as numbers. Rejects characters that XML does not allow, and events that are too deep or too large.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from lxml import etree

from hpwsn_client.wsn.soap.names import HPWSN, XML_NS, XSI, hp
from hpwsn_client.wsn.soap.soap_faults import InvalidMessage, SoapFault, TooLarge
from hpwsn_client.wsn.soap.xml import (
    DEFAULT_LIMITS,
    NCNAME,
    STORED_LIMITS,
    Limits,
    escape,
    escape_attribute,
    parse_xml,
)
from hpwsn_client.wsn.topics.topic import shown

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
JsonObject: TypeAlias = "dict[str, JsonValue]"
_Parse: TypeAlias = "Callable[[str], JsonValue]"

ENVELOPE_LEVELS = 5
"""Ancestors of a payload in a delivery, which count towards the limit of depth."""

EVENT_OPEN = f'<hp:event xmlns:hp="{HPWSN}">'
EVENT_CLOSE = "</hp:event>"

_EVENT, _FIELD, _ITEM, _TEXT = map(hp, ("event", "field", "item", "text"))
_TYPE, _ARRAY = hp("type"), hp("array")
_NIL = f"{{{XSI}}}nil"
_NOT_DATA = tuple(f"{{{uri}}}" for uri in (HPWSN, XSI, XML_NS))
_BLANKS = " \t\r\n"
_LONGEST_NUMBER = 4000

_is_name = re.compile(NCNAME).fullmatch
_is_number = re.compile(r"-?(?:0|[1-9][0-9]*)((?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)").fullmatch
_ESCAPED = r"&<>\x00-\x1f\ud800-\udfff\ufffe\uffff"
# Text that needs neither an escape nor a mark: it does not begin like a number, true or false.
_is_plain = re.compile(rf"[^-0-9tf\s{_ESCAPED}][^{_ESCAPED}]*").fullmatch
_NESTED = (list, dict)
_LITERALS = {"true": True, "false": False}


def encode_event(event: Mapping[str, JsonValue], limits: Limits = DEFAULT_LIMITS) -> bytes:
    """Encode an event as the payload of a notification, at most `limits.body` characters."""
    writer = _Writer(limits.body, limits.depth - ENVELOPE_LEVELS)
    writer.put(EVENT_OPEN)
    writer.fields(event, 1)
    writer.put(EVENT_CLOSE)
    return "".join(writer.parts).encode()


class _Writer:
    """Collects XML and limits its size, because a long name is repeated for each item of an array."""

    def __init__(self, size: int, depth: int) -> None:
        self.parts: list[str] = []
        self._size = self._room = size
        self._depth = depth

    def put(self, text: str) -> None:
        self._room -= len(text)
        if self._room < 0:
            raise TooLarge(f"an event has more than {self._size} characters as XML; send a smaller one")
        self.parts.append(text)

    def fields(self, members: Mapping[str, JsonValue], level: int) -> None:
        if level > self._depth:
            raise InvalidMessage(
                f"the event is nested deeper than the {self._depth} levels accepted; flatten it"
            )
        for name, value in members.items():
            opening, closing = tags_of(name)
            if not isinstance(value, _NESTED):
                self.put(opening + encode_scalar(value, closing))
            elif isinstance(value, list) and value:
                mark = ' hp:array="true"' if len(value) == 1 else ""
                for item in value:
                    self.element(opening + mark, item, closing, level)
            else:
                self.element(opening, value, closing, level)

    def element(self, opening: str, value: JsonValue, closing: str, level: int) -> None:
        if not isinstance(value, _NESTED):
            self.put(opening + encode_scalar(value, closing))
        elif not value:
            self.put(f'{opening} hp:type="{"array" if isinstance(value, list) else "object"}"/>')
        elif isinstance(value, dict):
            self.put(opening + ">")
            self.fields(value, level + 1)
            self.put(closing)
        else:
            self.put(opening + ">")
            self.items(value, level + 1)
            self.put(closing)

    def items(self, values: list[JsonValue], level: int) -> None:
        """Encode the items of an array inside an array, which is one more level."""
        if level > self._depth:
            raise InvalidMessage(
                f"the event is nested deeper than the {self._depth} levels accepted; flatten it"
            )
        for value in values:
            self.element("<hp:item", value, "</hp:item>", level)


def tags_of(name: str) -> tuple[str, str]:
    """The start tag of a field up to its name, without `>`, and its end tag."""
    if (name.isascii() and name.isidentifier()) or _is_name(name):
        return f"<{name}", f"</{name}>"
    try:
        return f'<hp:field name="{escape_attribute(name)}"', "</hp:field>"
    except ValueError as error:
        raise InvalidMessage(f"the field {shown(name)} cannot be encoded as XML: {error}") from None


def encode_scalar(value: bool | int | float | str | None, closing: str) -> str:
    """The rest of a field's element after the name in its start tag."""
    if isinstance(value, str):
        return _string(value, closing)
    if value is None:
        return ' hp:type="null"/>'
    if isinstance(value, bool):
        return f">{'true' if value else 'false'}{closing}"
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidMessage(f"{value} is not a JSON number; leave it out, or send null")
    return f">{value!r}{closing}"


def _string(text: str, closing: str) -> str:
    if _is_plain(text):
        return f">{text}{closing}"
    mark = "" if parse_literal(text) is text else ' hp:type="string"'
    try:
        return f"{mark}>{escape(text)}{closing}"
    except ValueError as error:
        raise InvalidMessage(f"the text {shown(text)} cannot be encoded as XML: {error}") from None


def decode_event(payload: bytes) -> JsonObject:
    """Decode a stored payload; a payload that is too deep gives its XML as text."""
    try:
        return _decode(parse_xml(payload, STORED_LIMITS))
    except (SoapFault, RecursionError):
        return {"text": payload.decode("utf-8", "replace")}


def _decode(root: etree._Element) -> JsonObject:
    if root.tag == _TEXT and not len(root):
        return {"text": root.text or ""}
    if root.tag == _EVENT:
        return _members(root, parse_literal)
    if len(root) or _has_only_attributes(root):
        return _members(root, parse_number)
    return {_local(root.tag): _value(root, parse_number), **dict(_attributes(root))}


def parse_number(text: str) -> JsonValue:
    """A number if the text is a JSON number, else the text itself."""
    bare = text.strip(_BLANKS)
    number = _is_number(bare)
    if number is None or len(bare) > _LONGEST_NUMBER:
        return text
    value = float(bare) if number[1] else int(bare)
    return value if isinstance(value, int) or math.isfinite(value) else text


def parse_literal(text: str) -> JsonValue:
    """Like parse_number, but also true and false, which occur in an hp:event."""
    found = _LITERALS.get(text.strip(_BLANKS))
    return parse_number(text) if found is None else found


def _members(element: etree._Element, parse: _Parse) -> JsonObject:
    found: dict[str, list[JsonValue]] = {}
    arrays: set[str] = set()
    for child in element:
        name = child.get("name", "") if child.tag == _FIELD else _local(child.tag)
        found.setdefault(name, []).append(_value(child, parse))
        if child.get(_ARRAY) is not None:
            arrays.add(name)
    for name, value in _attributes(element):
        found.setdefault(name, [value])
    return {
        name: values if len(values) > 1 or name in arrays else values[0] for name, values in found.items()
    }


def _value(element: etree._Element, parse: _Parse) -> JsonValue:
    if len(element):
        if all(child.tag == _ITEM for child in element):
            return list(map(_value, element, [parse] * len(element)))
        return _members(element, parse)
    kind = element.get(_TYPE)
    if kind == "null" or element.get(_NIL) in ("true", "1"):
        return None
    if kind == "array":
        return []
    if kind == "object":
        return {}
    text = element.text or ""
    if kind == "string":
        return text
    return _members(element, parse) if _has_only_attributes(element) else parse(text)


def _has_only_attributes(element: etree._Element) -> bool:
    """Whether a leaf element has attributes and no text."""
    return not (element.text or "").strip(_BLANKS) and any(_attributes(element))


def _attributes(element: etree._Element) -> Iterator[tuple[str, JsonValue]]:
    for name, text in element.attrib.items():
        if not str(name).startswith(_NOT_DATA) and not (element.tag == _FIELD and name == "name"):
            yield _local(str(name)), parse_number(str(text))


def _local(name: str) -> str:
    return name.rpartition("}")[2]
