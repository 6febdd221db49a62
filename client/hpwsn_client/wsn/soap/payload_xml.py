"""Extraction of payloads from a message document without loss of content.

Comments and processing instructions are kept inside a payload, because they belong to the publisher's
content. Elsewhere they are removed, because SOAP gives them no meaning (SOAP 1.1 section 3, SOAP 1.2 part 1
section 5). A payload also keeps the `xml:lang`, `xml:space` and `xml:base` that it inherits from its
ancestors, by the rules of XInclude 1.0 section 4.5.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from urllib.parse import urljoin

from lxml import etree

from hpwsn_client.wsn.soap.names import SERVICEMIX, SOAP11, SOAP12, TEV, XML_NS, wsnt
from hpwsn_client.wsn.soap.soap_faults import InvalidMessage
from hpwsn_client.wsn.soap.xml import DEFAULT_LIMITS, Limits, encode_element, parse_xml

_BODIES = frozenset(f"{{{soap}}}Body" for soap in (SOAP11, SOAP12))
_ANCESTORS = _BODIES | {
    *(f"{{{soap}}}Envelope" for soap in (SOAP11, SOAP12)),
    f"{{{SERVICEMIX}}}WsnProcess",
    f"{{{TEV}}}PullMessagesResponse",
    *map(wsnt, ("Notify", "GetMessagesResponse", "NotificationMessage")),
}
"""Elements that may be ancestors of a payload."""
_PARENTS = tuple(map(wsnt, ("Message", "GetCurrentMessageResponse")))
"""Elements that may be the parent of a payload."""

MOST_AROUND = 100_000
"""Maximum number of comments and processing instructions outside the payloads of one message.

Each of them is removed separately, which takes time.
"""
_ELEMENTS_PER_MESSAGE = 5
"""Elements of a notification outside its payload: NotificationMessage and its four children."""

_LANG, _SPACE, _BASE = (f"{{{XML_NS}}}{name}" for name in ("lang", "space", "base"))


def parse_message_xml(
    data: bytes, limits: Limits = DEFAULT_LIMITS, charset: str | None = None, *, raw: bool = False
) -> etree._Element:
    """Parse a document with payloads; comments and processing instructions are kept only inside payloads.

    With `raw`, the element in a SOAP Body is a payload too, unless it is a message that has payloads.
    """
    if not _may_have_comments(data):
        return parse_xml(data, limits, charset)
    root = parse_xml(data, limits, charset, comments=True)
    if not raw and next(root.iter(*_PARENTS), None) is None:
        return parse_xml(data, limits, charset)
    _remove_outside_payloads(root, raw, limits)
    return root


def _may_have_comments(data: bytes) -> bool:
    """Whether a document may have comments or processing instructions; zero bytes mean UTF-16."""
    return b"<!--" in data or data.find(b"<?", 1) >= 0 or b"\0" in data


def _remove_outside_payloads(root: etree._Element, raw: bool, limits: Limits) -> None:
    """Remove comments and processing instructions outside payloads."""
    # No recursion: a tree may be deeper than Python's stack.
    waiting, room = [root], MOST_AROUND
    # Each element is visited, so reject early what the message parser would reject anyway.
    parts = _ELEMENTS_PER_MESSAGE * limits.messages + MOST_AROUND
    while waiting:
        element = waiting.pop()
        is_ancestor = element.tag in _ANCESTORS
        direct = is_ancestor or element.tag in _PARENTS
        found = list(islice(_direct(element) if direct else element.iter(etree.Comment, etree.PI), room + 1))
        if len(found) > room:
            raise InvalidMessage(
                f"there are more than {MOST_AROUND} comments and processing instructions outside payloads;"
                " leave them out"
            )
        room -= len(found)
        for parent in dict.fromkeys(each.getparent() for each in found):
            if parent is not None:
                _remove_children(parent)
        if is_ancestor:
            parts -= len(element)
            if parts < 0:
                raise InvalidMessage(
                    f"the message has more elements than {limits.messages} notifications have; send several"
                )
            is_payload = raw and element.tag in _BODIES
            waiting += [child for child in element if not is_payload or child.tag in _ANCESTORS]


def _direct(element: etree._Element) -> Iterator[etree._Element]:
    """The comments and processing instructions that are children of the element."""
    return element.iterchildren(etree.Comment, etree.PI)


def _remove_children(parent: etree._Element) -> None:
    """Remove the comments and processing instructions among the children, and join the texts between them.

    The text after each is removed with it, because lxml reads adjacent text nodes in quadratic time.
    """
    kept: etree._Element | None = None
    texts: dict[etree._Element | None, list[str]] = {}
    for child in list(parent):
        if isinstance(child.tag, str):
            kept = child
            continue
        if kept not in texts:
            texts[kept] = [(parent.text if kept is None else kept.tail) or ""]
        texts[kept].append(child.tail or "")
        parent.remove(child)
    for place, parts in texts.items():
        _set_text(parent, place, "".join(parts) or None)


def _set_text(parent: etree._Element, place: etree._Element | None, text: str | None) -> None:
    """Set the text after a child; None means the text before the first child."""
    if place is None:
        parent.text = text
    else:
        place.tail = text


def encode_standalone(element: etree._Element) -> bytes:
    """Encode a payload as a self-contained element, with the xml: attributes that it inherits."""
    wanted = _inherited(element)
    if not wanted:
        return encode_element(element)
    own = {name: element.get(name) for name in wanted}
    for name, value in wanted.items():
        element.set(name, value)
    data = encode_element(element)
    for name, before in own.items():
        if before is None:
            del element.attrib[name]
        else:
            element.set(name, before)
    return data


def inherited_size(element: etree._Element) -> int:
    """Characters of the xml: attributes that each payload in the element inherits."""
    around = (element, *element.iterancestors())
    return sum(len(each.get(name) or "") for each in around for name in (_LANG, _SPACE, _BASE))


def _inherited(element: etree._Element) -> dict[str, str]:
    """The xml: attributes that an element inherits from its ancestors."""
    found: dict[str, str] = {}
    base = element.get(_BASE, "")
    for around in element.iterancestors():
        if not around.keys():
            continue
        for name in (_LANG, _SPACE):
            value = around.get(name)
            if value is not None and element.get(name) is None:
                found.setdefault(name, value)
        outer = around.get(_BASE)
        if outer:
            base = found[_BASE] = _join_uri(outer, base)
    return found


def _join_uri(outer: str, base: str) -> str:
    try:
        return urljoin(outer, base)
    except ValueError:
        raise InvalidMessage(
            f"the xml:base {outer[:80]!r} of the payload is not a URI; correct it, or leave it out"
        ) from None
