"""A payload as an event: its leaf elements and attributes by local name, at any depth.

Numbers are numbers, true and false truth values, all else text; what a publisher of JSON marked as text stays
text. A name that comes several times has several values. Attributes of our own namespace, of XML Schema's
instances and of XML itself say how a payload is written, and are none of the event's.
"""

from __future__ import annotations

import math
import re

from lxml import etree

from hpwsn.matching.predicates import Event
from hpwsn.matching.values import Scalar
from hpwsn_client.wsn.names import HPWSN, XML_NS, XSI, hp

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
