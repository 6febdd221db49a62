"""A payload as an event: its leaf elements and attributes by local name, at any depth.

Numbers are numbers, true and false truth values, all else text; what a publisher of JSON marked as text
stays text. A name that comes several times has several values. Attributes of our own namespace, of XML
Schema's instances and of XML itself say how a payload is written, and are none of the event's.

The event of an ordinary payload, read off its bytes: an element that holds leaves without attributes.

Most events of sensors are so, and a tree of one costs more than all else that is done for it. The unusual
(attributes, nested elements, prefixes, references, CDATA, comments) gives None, and is the business of
hpwsn.matching.content.attributes, with which this agrees. Takes only what a parser has found well-formed
before: each `<` is then part of a leaf that was read, or of the two tags around them.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache

from lxml import etree

from hpwsn.matching.language.predicates import Event
from hpwsn.matching.language.values import Scalar
from hpwsn_client.wsn.soap.names import HPWSN, XML_NS, XSI, hp

LONGEST = 8192
"""Bytes of a payload up to which it is tried: what is larger is seldom flat."""
LONGEST_HEAD = 256
"""Characters of a first tag that is looked at; a thousand of them are remembered."""

# A number as most are written is told apart at once; it has too few digits to be infinite.
_leaves = re.compile(r"<([^<>/:\s!?]+)>(?:([+-]?[0-9]{1,99}(?:\.[0-9]{0,99})?)|([^<&\r]*))</\1>").findall
_is_head = re.compile(
    r"<[^\s<>/&\"']+(?:\s+xmlns(?::[^\s=<>/&\"']+)?\s*=\s*(?:\"[^\"<&]*\"|'[^'<&]*'))*\s*"
).fullmatch
_OUR_EVENT = f'<hp:event xmlns:hp="{HPWSN}"'


def flat_event(payload: bytes) -> Event | None:
    """The event that a payload is, if that can be seen without a parser."""
    if len(payload) > LONGEST:
        return None
    text = payload.decode()
    found = _leaves(text)
    if text.count("<") != 2 * len(found) + 2 or not _is_plain(text[: text.find(">")]):
        return None
    values = {name: float(number) if number else read_scalar(other) for name, number, other in found}
    # A name that comes twice has two values.
    return values if len(values) == len(found) > 0 else None


@lru_cache(maxsize=1024)
def _is_plain(head: str) -> bool:
    """Whether the first tag says nothing but its name and declarations of namespaces that mean nothing."""
    if len(head) > LONGEST_HEAD or not _is_head(head):
        return False
    return HPWSN not in head or head == _OUR_EVENT


MOST_VALUES = 10_000
"""Values of one event; what comes after these is not looked at."""

_FIELD, _ITEM, _TEXT, _TYPE = hp("field"), hp("item"), hp("text"), hp("type")
_NIL = f"{{{XSI}}}nil"
_NOT_DATA = tuple(f"{{{uri}}}" for uri in (HPWSN, XSI, XML_NS))
_EMPTY = frozenset({"null", "array", "object"})
_is_number = re.compile(r"\s*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\s*", re.ASCII).fullmatch
_LITERALS: dict[str, bool] = {"true": True, "false": False}


def event_of(payload: etree._Element) -> Event:
    """The event that a payload is."""
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
        # Most are so, and a look for attributes costs more than all else here.
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
    """A text as the number or the truth value that it is, else the text itself."""
    if _is_number(text):
        number = float(text)
        return text if math.isinf(number) else number
    literal = _LITERALS.get(text.strip())
    return text if literal is None else literal


def _name(element: etree._Element) -> str:
    """The local name, or what the field or the array that it belongs to is called."""
    while element.tag == _ITEM:
        parent = element.getparent()
        if parent is None:
            break
        element = parent
    return element.get("name", "") if element.tag == _FIELD else _local(element.tag)


def _local(name: str) -> str:
    return name.rpartition("}")[2]
