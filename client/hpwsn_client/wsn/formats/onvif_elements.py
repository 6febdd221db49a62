"""Parsing and encoding of the elements in ONVIF's messages: children by name, times and numbers.

Rejects unknown or repeated children, negative durations and invalid counts.
"""

import re
from datetime import datetime

from lxml import etree

from hpwsn_client.wsn.soap.faults import UnacceptableInitialTerminationTimeFault
from hpwsn_client.wsn.soap.names import TEV, WSNT, XSI
from hpwsn_client.wsn.soap.sequence import children_of
from hpwsn_client.wsn.soap.soap_faults import InvalidMessage
from hpwsn_client.wsn.soap.times import Duration, Termination, format_time, parse_time
from hpwsn_client.wsn.soap.wrong_namespace import namespace_hint
from hpwsn_client.wsn.soap.xml import escape
from hpwsn_client.wsn.topics.topic import shown

BLANKS = " \t\r\n"
_NIL = f"{{{XSI}}}nil"
is_int = re.compile(r"[+-]?[0-9]{1,18}").fullmatch


def parts_of(element: etree._Element, *names: str) -> list[etree._Element | None]:
    """The children with these names in ONVIF's namespace, None if absent; other names of it are rejected."""
    found: dict[str, etree._Element] = {}
    for child in children_of(element):
        name = child.tag.removeprefix(f"{{{TEV}}}")
        if name in names and name not in found:
            found[name] = child
        elif not child.tag.startswith("{") or name != child.tag:
            hint = namespace_hint((child,), (f"{{{TEV}}}{each}" for each in names))
            raise InvalidMessage(
                f"{element.tag} has the child {child.tag}, which is unknown or repeated; it may have"
                f" {', '.join(names) or 'none'}{hint}"
            )
    return [found.get(name) for name in names]


def is_nil(element: etree._Element) -> bool:
    return element.get(_NIL, "").strip(BLANKS) in ("true", "1")


def parse_initial_lifetime(element: etree._Element) -> Termination:
    if is_nil(element):
        return None
    try:
        return parse_time(text_of(element))
    except ValueError as error:
        raise UnacceptableInitialTerminationTimeFault(f"{error}") from None


def _time_of(element: etree._Element) -> datetime | Duration:
    try:
        return parse_time(text_of(element))
    except ValueError as error:
        raise InvalidMessage(f"{element.tag}: {error}") from None


def parse_moment(element: etree._Element) -> datetime:
    value = _time_of(element)
    if not isinstance(value, datetime):
        raise InvalidMessage(f"{element.tag} is a duration; give a time such as 2030-01-31T12:00:00Z")
    return value


def parse_span(element: etree._Element) -> Duration:
    value = _time_of(element)
    if not isinstance(value, Duration) or value.months < 0 or value.seconds < 0:
        raise InvalidMessage(
            f"{element.tag} is {shown(text_of(element))}; give a duration such as PT10S, not negative"
        )
    return value


def parse_count(element: etree._Element) -> int:
    text = text_of(element).strip(BLANKS)
    if not is_int(text) or not 0 < int(text) < 2**31:
        raise InvalidMessage(f"{element.tag} is {shown(text)}; give a whole number above zero")
    return int(text)


def text_of(element: etree._Element) -> str:
    if len(element):
        raise InvalidMessage(f"{element.tag} has the child {element[0].tag}; it may have only text")
    return element.text or ""


def texts_of(element: etree._Element, tag: str) -> tuple[str, ...]:
    return tuple((child.text or "").strip(BLANKS) for child in element.iterchildren(tag))


def leaf(name: str, value: object) -> bytes:
    return f"<tev:{name}>{escape(str(value))}</tev:{name}>".encode()


def time_leaf(name: str, value: datetime | Duration) -> bytes:
    return leaf(name, format_time(value))


def encode_tev(name: str, *parts: bytes) -> bytes:
    scope = f'xmlns:tev="{TEV}" xmlns:wsnt="{WSNT}"'
    return b"<tev:%b %b>%b</tev:%b>" % (name.encode(), scope.encode(), b"".join(parts), name.encode())
