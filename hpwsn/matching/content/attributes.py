"""A payload as an event: the values of its leaf elements and XML attributes, by local name at any depth.

Text that is a number becomes a number, `true` and `false` become booleans, and the rest stays text, as does
every JSON string. A repeated name has several values. XML attributes in HPwsn's namespace, in `xml:` and in
`xsi:` describe the encoding of a payload and are not part of the event.

Most sensor events are flat: one element with leaves that have no XML attributes. `flat_event` reads these
from the bytes, since parsing would cost more than the rest of the matching. It returns None for any other
payload (XML attributes, nesting, prefixes, references, CDATA, comments), which `event_of` reads from the
parsed tree. Both give the same event. `flat_event` expects well-formed XML: every `<` then belongs to a leaf
that was read or to the enclosing element.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache

from lxml import etree

from hpwsn.matching.language.predicates import Event
from hpwsn.matching.language.values import Scalar
from hpwsn_client.wsn.soap.names import HPWSN, XML_NS, XSI, hp

MOST_VALUES = 10_000
"""Maximum number of values of an event; the rest of the payload is ignored."""

_FIELD, _ITEM, _TEXT, _TYPE = hp("field"), hp("item"), hp("text"), hp("type")
_NIL = f"{{{XSI}}}nil"
_NOT_DATA = tuple(f"{{{uri}}}" for uri in (HPWSN, XSI, XML_NS))
_EMPTY = frozenset({"null", "array", "object"})
_is_number = re.compile(r"\s*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\s*", re.ASCII).fullmatch
_LITERALS: dict[str, bool] = {"true": True, "false": False}

MAX_FLAT_BYTES = 8192
"""Larger payloads are rarely flat, and are parsed without trying."""
MAX_HEAD = 256
"""Maximum length of a start tag in characters; results for a thousand start tags are cached."""

# The first group matches the usual form of numbers, with too few digits to overflow.
_leaves = re.compile(r"<([^<>/:\s!?]+)>(?:([+-]?[0-9]{1,99}(?:\.[0-9]{0,99})?)|([^<&\r]*))</\1>").findall
_is_head = re.compile(
    r"<[^\s<>/&\"']+(?:\s+xmlns(?::[^\s=<>/&\"']+)?\s*=\s*(?:\"[^\"<&]*\"|'[^'<&]*'))*\s*"
).fullmatch
_OUR_EVENT = f'<hp:event xmlns:hp="{HPWSN}"'


def event_of(payload: etree._Element) -> Event:
    """Return the event of a parsed payload."""
    if payload.tag == _TEXT:
        return {"text": "".join(map(str, payload.itertext()))}
    values: dict[str, list[Scalar]] = {}
    room = MOST_VALUES
    for element in payload.iter("*"):
        for name, value in _values(element):
            values.setdefault(name, []).append(value)
            room -= 1
        if room <= 0:
            break
    return {name: several[0] if len(several) == 1 else tuple(several) for name, several in values.items()}


def _values(element: etree._Element) -> list[tuple[str, Scalar]]:
    if not element.keys():
        # The usual case; reading the XML attributes would cost more than the rest.
        return [] if len(element) else [(_name(element), read_scalar(element.text or ""))]
    found = [
        (_local(str(name)), read_scalar(str(text)))
        for name, text in element.attrib.items()
        if not str(name).startswith(_NOT_DATA) and not (element.tag == _FIELD and name == "name")
    ]
    if not len(element):
        value = _leaf(element, bool(found))
        if value is not None:
            found.append((_name(element), value))
    return found


def _leaf(element: etree._Element, has_attributes: bool) -> Scalar | None:
    text, kind = element.text or "", element.get(_TYPE)
    if kind == "string":
        return text
    if kind in _EMPTY or element.get(_NIL) in ("true", "1"):
        return None
    if has_attributes and not text.strip():
        return None
    return read_scalar(text)


def read_scalar(text: str) -> Scalar:
    """Return the number or boolean that a text represents, or the text itself."""
    if _is_number(text):
        number = float(text)
        return text if math.isinf(number) else number
    literal = _LITERALS.get(text.strip())
    return text if literal is None else literal


def _name(element: etree._Element) -> str:
    """Return the local name, or the name of the field or array that the element belongs to."""
    while element.tag == _ITEM:
        parent = element.getparent()
        if parent is None:
            break
        element = parent
    return element.get("name", "") if element.tag == _FIELD else _local(element.tag)


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def flat_event(payload: bytes) -> Event | None:
    """Return the event of a flat, well-formed payload; None for any other payload."""
    if len(payload) > MAX_FLAT_BYTES:
        return None
    text = payload.decode()
    found = _leaves(text)
    if text.count("<") != 2 * len(found) + 2 or not _is_plain_head(text[: text.find(">")]):
        return None
    values = {name: float(number) if number else read_scalar(other) for name, number, other in found}
    # A repeated name has several values, which only event_of reads.
    return values if len(values) == len(found) > 0 else None


@lru_cache(maxsize=1024)
def _is_plain_head(head: str) -> bool:
    """Whether a start tag has only a name and namespace declarations that do not affect the event."""
    if len(head) > MAX_HEAD or not _is_head(head):
        return False
    return HPWSN not in head or head == _OUR_EVENT
