"""Elements as their schema lists them: named children in order, then extensions of other namespaces.

Owns nothing of the messages themselves. Refuses what the schemas of WS-Notification refuse: text between
elements, children that are unknown, repeated or out of order, and extensions that are in no namespace or in
the standard's own.
"""

from lxml import etree

from hpwsn_client.wsn.soap.names import WSNT, XSI, wsnt
from hpwsn_client.wsn.soap.soap_faults import InvalidMessage

_OURS = f"{{{WSNT}}}"
_NIL = f"{{{XSI}}}nil"


def parse_sequence(
    element: etree._Element, *names: str
) -> tuple[list[etree._Element | None], list[etree._Element]]:
    """The children of these names, None for each that is absent, and the extensions after them."""
    expected = [wsnt(name) for name in names]
    found: dict[str, etree._Element] = {}
    extensions: list[etree._Element] = []
    for child in children_of(element):
        if not extensions and child.tag in expected:
            del expected[: expected.index(child.tag) + 1]
            found[child.tag] = child
        elif is_extension(child):
            extensions.append(child)
        else:
            raise misplaced(element, child, *names)
    return [found.get(wsnt(name)) for name in names], extensions


def children_of(element: etree._Element) -> list[etree._Element]:
    """The child elements, where there is nothing but white space between them."""
    children = list(element)
    _check_blank(element, element.text)
    for child in children:
        _check_blank(element, child.tail)
    return children


def _check_blank(element: etree._Element, text: str | None) -> None:
    if text is not None and not text.isspace():
        raise InvalidMessage(f"{element.tag} has the text {text.strip()[:80]!r}, where only elements may be")


def is_extension(child: etree._Element) -> bool:
    """Whether the schema's `##other` allows the element."""
    return child.tag.startswith("{") and not child.tag.startswith(_OURS)


def misplaced(element: etree._Element, child: etree._Element, *names: str) -> InvalidMessage:
    """The fault for a child that is not where the schema has it."""
    order = (
        f"in this order: {', '.join(names)}" if names else "elements of other namespaces than the standard's"
    )
    return InvalidMessage(
        f"{element.tag} has the child {child.tag}, unknown there or out of place; it may have, each once, "
        f"{order}"
    )


def required(element: etree._Element, child: etree._Element | None, name: str) -> etree._Element:
    """The child, which must be there."""
    if child is None:
        raise InvalidMessage(f"{element.tag} has no {name}, and must have one")
    return child


def text_of(element: etree._Element) -> str:
    """The text of an element that may hold nothing else."""
    if len(element):
        raise InvalidMessage(f"{element.tag} has a child {element[0].tag}, where only text may be")
    return element.text or ""


def is_nil(element: etree._Element) -> bool:
    """Whether an element says that it stands for nothing."""
    return element.get(_NIL, "").strip(" \t\r\n") in ("true", "1")


def encode_sequence(name: str, *parts: bytes) -> bytes:
    """Write an element of the standard around parts that are written already."""
    return b'<wsnt:%b xmlns:wsnt="%b">%b</wsnt:%b>' % (
        name.encode(),
        WSNT.encode(),
        b"".join(parts),
        name.encode(),
    )
