"""A payload inside its publisher's document: what belongs to it, and how it is taken out whole.

Owns two rules. Comments and processing instructions stay within a payload, the element that a Message
holds, since they are its publisher's content; everywhere else they leave no trace in the tree, since in SOAP
they may not change a message's meaning (SOAP 1.1 section 3, SOAP 1.2 part 1 section 5). And a payload keeps
what `xml:lang`, `xml:space` and `xml:base` around it say of it, as XInclude 1.0 section 4.5 has it for an
element that is taken out of its document.
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
_AROUND = _BODIES | {
    *(f"{{{soap}}}Envelope" for soap in (SOAP11, SOAP12)),
    f"{{{SERVICEMIX}}}WsnProcess",
    f"{{{TEV}}}PullMessagesResponse",
    *map(wsnt, ("Notify", "GetMessagesResponse", "NotificationMessage")),
}
"""What a payload may be inside of, at any distance."""
_HOLDERS = tuple(map(wsnt, ("Message", "GetCurrentMessageResponse")))
"""What holds payloads themselves."""

MOST_AROUND = 100_000
"""Comments and processing instructions around the payloads of one message, which are removed one by one."""
_PARTS = 5
"""Elements that a notification has around its payload: NotificationMessage, and four within."""

_LANG, _SPACE, _BASE = (f"{{{XML_NS}}}{name}" for name in ("lang", "space", "base"))


def parse_message_xml(
    data: bytes, limits: Limits = DEFAULT_LIMITS, charset: str | None = None, *, raw: bool = False
) -> etree._Element:
    """Parse a document that may hold payloads: in these alone comments and processing instructions stay.

    With `raw` the element in a SOAP Body is a payload too, unless it is a message that has payloads.
    """
    if not _may_have_comments(data):
        return parse_xml(data, limits, charset)
    root = parse_xml(data, limits, charset, comments=True)
    if not raw and next(root.iter(*_HOLDERS), None) is None:
        return parse_xml(data, limits, charset)
    _clean_around(root, raw, limits)
    return root


def _may_have_comments(data: bytes) -> bool:
    """Whether a document may have comments or processing instructions; where it has zeros it is UTF-16."""
    return b"<!--" in data or data.find(b"<?", 1) >= 0 or b"\0" in data


def _clean_around(root: etree._Element, raw: bool, limits: Limits) -> None:
    """Remove comments and processing instructions from all but payloads."""
    # No recursion: a tree may be deeper than Python's stack.
    waiting, room = [root], MOST_AROUND
    # Each is looked at, so what no parser of a message would take is refused before.
    parts = _PARTS * limits.messages + MOST_AROUND
    while waiting:
        element = waiting.pop()
        around = element.tag in _AROUND
        own = around or element.tag in _HOLDERS
        found = list(islice(_own(element) if own else element.iter(etree.Comment, etree.PI), room + 1))
        if len(found) > room:
            raise InvalidMessage(
                f"there are more than {MOST_AROUND} comments and processing instructions around payloads:"
                " leave them out"
            )
        room -= len(found)
        for parent in dict.fromkeys(each.getparent() for each in found):
            if parent is not None:
                _remove_children(parent)
        if around:
            parts -= len(element)
            if parts < 0:
                raise InvalidMessage(
                    f"the message has more parts than {limits.messages} notifications have: send several"
                )
            left = raw and element.tag in _BODIES
            waiting += [child for child in element if not left or child.tag in _AROUND]


def _own(element: etree._Element) -> Iterator[etree._Element]:
    """The comments and processing instructions that an element holds itself."""
    return element.iterchildren(etree.Comment, etree.PI)


def _remove_children(parent: etree._Element) -> None:
    """Remove those that an element holds itself; the texts around them become one.

    Each is taken out with the text behind it: lxml reads texts that are left side by side in quadratic time.
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
    """Set the text behind a child, or before all of them."""
    if place is None:
        parent.text = text
    else:
        place.tail = text


def encode_standalone(element: etree._Element) -> bytes:
    """Serialise a payload so that it stands alone, with what is said of it around it."""
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
    """How many characters each payload within the element takes over from it and from what is around it."""
    around = (element, *element.iterancestors())
    return sum(len(each.get(name) or "") for each in around for name in (_LANG, _SPACE, _BASE))


def _inherited(element: etree._Element) -> dict[str, str]:
    """The attributes of XML itself that an element has from those around it."""
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
            base = found[_BASE] = _joined(outer, base)
    return found


def _joined(outer: str, base: str) -> str:
    try:
        return urljoin(outer, base)
    except ValueError:
        raise InvalidMessage(
            f"xml:base {outer[:80]!r} around the payload is no address: correct it, or leave it out"
        ) from None
