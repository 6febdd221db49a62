"""Hints for elements with the right name in a wrong namespace, a frequent mistake in SOAP written by hand.

The faults of the parsers name the element that is missing or unknown. These hints add which namespace was
meant: authors copy the namespace of the WSDL, of an earlier draft or of WS-Addressing, or leave it out.
"""

from collections.abc import Iterable

from lxml import etree

_STANDARDS = (
    "http://docs.oasis-open.org/ws",
    "http://www.ibm.com/xmlns/stdwip/web-services/",
    "http://schemas.xmlsoap.org/",
    "http://www.w3.org/2005/08/addressing",
    "http://www.w3.org/2003/05/soap-envelope",
)
"""How the namespaces of SOAP, WS-Addressing, WS-Notification and its drafts begin; extensions have others."""


def namespace_hint(found: Iterable[etree._Element], expected: Iterable[str]) -> str:
    """Which of the elements found is, but for its namespace, one of the expected Clark names.

    The text follows a fault's sentence; it is empty if there is no such element.
    """
    meant = {_local(tag): tag for tag in expected}
    for element in found:
        tag = meant.get(_local(element.tag))
        if tag is not None and tag != element.tag:
            return f"; {_local(tag)} is in {_namespace(element.tag)}, write it in {_namespace(tag)}"
    return ""


def is_mistaken(element: etree._Element, expected: Iterable[str]) -> bool:
    """Whether an element in a standard's namespace is one of the expected names in another namespace.

    It would be an extension, and ignored: a Filter so written would let everything through.
    """
    return _uri(element.tag).startswith(_STANDARDS) and bool(namespace_hint((element,), expected))


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def _uri(tag: str) -> str:
    return tag[1:].partition("}")[0] if tag.startswith("{") else ""


def _namespace(tag: str) -> str:
    uri = _uri(tag)
    return f"the namespace {uri}" if uri else "no namespace"
