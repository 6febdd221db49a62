"""Parsing of elements by an XML Schema sequence: named children in order, then extensions.

Rejects what the schemas of WS-Notification reject: text between elements; unknown, repeated or misplaced
children; and extensions in no namespace or in the standard's namespace.
"""

from lxml import etree

from hpwsn_client.wsn.soap.names import WSNT, XSI, wsnt
from hpwsn_client.wsn.soap.soap_faults import InvalidMessage
from hpwsn_client.wsn.soap.wrong_namespace import is_mistaken, namespace_hint

_STANDARD = f"{{{WSNT}}}"
_NIL = f"{{{XSI}}}nil"


def parse_sequence(
    element: etree._Element, *names: str
) -> tuple[list[etree._Element | None], list[etree._Element]]:
    """The children with these names, None for each that is absent, and the extensions after them."""
    expected = [wsnt(name) for name in names]
    found: dict[str, etree._Element] = {}
    extensions: list[etree._Element] = []
    for child in children_of(element):
        if not extensions and child.tag in expected:
            del expected[: expected.index(child.tag) + 1]
            found[child.tag] = child
        elif is_extension(child) and not is_mistaken(child, map(wsnt, names)):
            extensions.append(child)
        else:
            raise misplaced(element, child, *names)
    return [found.get(wsnt(name)) for name in names], extensions


def children_of(element: etree._Element) -> list[etree._Element]:
    """The child elements; InvalidMessage if there is text between them."""
    children = list(element)
    _check_blank(element, element.text)
    for child in children:
        _check_blank(element, child.tail)
    return children


def _check_blank(element: etree._Element, text: str | None) -> None:
    if text is not None and not text.isspace():
        raise InvalidMessage(f"{element.tag} has the text {text.strip()[:80]!r}; it may have only elements")


def is_extension(child: etree._Element) -> bool:
    """Whether the element is an extension: in a namespace, and not in the standard's."""
    return child.tag.startswith("{") and not child.tag.startswith(_STANDARD)


def misplaced(element: etree._Element, child: etree._Element, *names: str) -> InvalidMessage:
    """The fault for a child that is unknown, repeated or out of order."""
    hint = namespace_hint((child,), (wsnt(name.split(" ")[0]) for name in names))
    order = f"each once and in this order: {', '.join(names)}" if names else "elements of other namespaces"
    return InvalidMessage(
        f"{element.tag} has the child {child.tag}, which is unknown or misplaced; it may have {order}{hint}"
    )


def required(
    element: etree._Element, child: etree._Element | None, name: str, namespace: str = WSNT
) -> etree._Element:
    """Return the child; InvalidMessage if it is None."""
    if child is None:
        hint = namespace_hint(element, (f"{{{namespace}}}{name}",))
        raise InvalidMessage(f"{element.tag} has no {name}{hint or '; add one'}")
    return child


def text_of(element: etree._Element) -> str:
    """The text of an element; InvalidMessage if it has child elements."""
    if len(element):
        raise InvalidMessage(f"{element.tag} has the child {element[0].tag}; it may have only text")
    return element.text or ""


def is_nil(element: etree._Element) -> bool:
    """Whether the element has xsi:nil."""
    return element.get(_NIL, "").strip(" \t\r\n") in ("true", "1")


def encode_sequence(name: str, *parts: bytes) -> bytes:
    """Encode an element of WS-BaseNotification around encoded parts."""
    return b'<wsnt:%b xmlns:wsnt="%b">%b</wsnt:%b>' % (
        name.encode(),
        WSNT.encode(),
        b"".join(parts),
        name.encode(),
    )
