"""Reading the properties of a resource: WS-ResourceProperties 1.2 (schema rp-2).

Owns GetResourceProperty, GetMultipleResourceProperties, QueryResourceProperties and their responses. A name
is kept as a Clark name, a value as the element that it travels as. What properties there are is for whoever
has the resource; how a query is carried out is in queries.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from lxml import etree

from hpwsn_client.wsn.operations.filters import ContentFilter, parse_query
from hpwsn_client.wsn.soap.faults import InvalidQueryExpressionFault
from hpwsn_client.wsn.soap.names import WSRF_RP, rp
from hpwsn_client.wsn.soap.sequence import children_of
from hpwsn_client.wsn.soap.soap_faults import InvalidMessage
from hpwsn_client.wsn.soap.xml import encode_element, escape, escape_attribute, prefixed, qname_text


@dataclass(frozen=True, slots=True)
class GetResourceProperty:
    """A request for the values of one property."""

    name: str


@dataclass(frozen=True, slots=True)
class GetResourcePropertyResponse:
    """Its values, perhaps none."""

    values: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class GetMultipleResourceProperties:
    """A request for the values of several properties."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GetMultipleResourcePropertiesResponse:
    """Their values, in the order of the request."""

    values: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class QueryResourceProperties:
    """A request for what a query finds in the document of all properties."""

    query: ContentFilter


@dataclass(frozen=True, slots=True)
class QueryResourcePropertiesResponse:
    """The elements that were found; `text` is what other brokers write between them."""

    found: tuple[bytes, ...] = ()
    text: str = ""


PropertiesMessage = (
    GetResourceProperty
    | GetResourcePropertyResponse
    | GetMultipleResourceProperties
    | GetMultipleResourcePropertiesResponse
    | QueryResourceProperties
    | QueryResourcePropertiesResponse
)


def parse_get_resource_property(element: etree._Element) -> GetResourceProperty:
    """Read a GetResourceProperty, which is nothing but a QName."""
    return GetResourceProperty(_parse_name(element))


def encode_get_resource_property(message: GetResourceProperty) -> bytes:
    """Write a GetResourceProperty."""
    name, declaration = prefixed(message.name)
    return encode_rp("GetResourceProperty", name.encode(), declaration)


def parse_get_multiple(element: etree._Element) -> GetMultipleResourceProperties:
    """Read a GetMultipleResourceProperties."""
    names = children_of(element)
    if not names or any(child.tag != rp("ResourceProperty") for child in names):
        raise InvalidMessage(
            f"{element.tag} must have one or more wsrf-rp:ResourceProperty, and nothing else"
        )
    return GetMultipleResourceProperties(tuple(map(_parse_name, names)))


def encode_get_multiple(message: GetMultipleResourceProperties) -> bytes:
    """Write a GetMultipleResourceProperties."""
    names = ((name.encode(), declaration) for name, declaration in map(prefixed, message.names))
    return encode_rp(
        "GetMultipleResourceProperties", b"".join(encode_rp("ResourceProperty", *name) for name in names)
    )


def parse_query_request(element: etree._Element) -> QueryResourceProperties:
    """Read a QueryResourceProperties; without a Dialect the expression is in XPath 1.0."""
    children = children_of(element)
    if [child.tag for child in children] != [rp("QueryExpression")]:
        raise InvalidMessage(f"{element.tag} must have one wsrf-rp:QueryExpression, and nothing else")
    return QueryResourceProperties(parse_query(children[0], InvalidQueryExpressionFault))


def encode_query_request(message: QueryResourceProperties) -> bytes:
    """Write a QueryResourceProperties."""
    query = message.query
    # In no prefix of ours: an expression may use any of them for something else.
    scope = "".join(f' xmlns:{prefix}="{escape_attribute(uri)}"' for prefix, uri in query.namespaces)
    expression = (
        f'<QueryExpression xmlns="{WSRF_RP}"{scope} Dialect="{escape_attribute(query.dialect)}">'
        f"{escape(query.expression)}</QueryExpression>"
    )
    return encode_rp("QueryResourceProperties", expression.encode())


def parse_query_response(element: etree._Element) -> QueryResourcePropertiesResponse:
    """Read a QueryResourcePropertiesResponse."""
    text = "".join((element.text or "", *(child.tail or "" for child in element)))
    return QueryResourcePropertiesResponse(tuple(map(encode_element, element)), text.strip(" \t\r\n"))


def encode_query_response(message: QueryResourcePropertiesResponse) -> bytes:
    """Write a QueryResourcePropertiesResponse."""
    return encode_rp(
        "QueryResourcePropertiesResponse", escape(message.text).encode() + b"".join(message.found)
    )


def encode_rp(name: str, content: bytes, declaration: str = "") -> bytes:
    """Write an element of WS-ResourceProperties; no QName that `prefixed` makes has its prefix."""
    return b'<rp:%b xmlns:rp="%b"%b>%b</rp:%b>' % (
        name.encode(),
        WSRF_RP.encode(),
        declaration.encode(),
        content,
        name.encode(),
    )


def join_values(response: str, values: Iterable[bytes]) -> bytes:
    """A response of that name around values that are written already."""
    return encode_rp(response, b"".join(values))


def _parse_name(element: etree._Element) -> str:
    if len(element):
        raise InvalidMessage(f"{element.tag} has a child {element[0].tag}, where only a QName may be")
    return qname_text(element, element.text)


def _parse_values(element: etree._Element) -> tuple[bytes, ...]:
    return tuple(map(encode_element, children_of(element)))


PROPERTIES_PARSERS: dict[str, Callable[[etree._Element], PropertiesMessage]] = {
    rp("GetResourceProperty"): parse_get_resource_property,
    rp("GetResourcePropertyResponse"): lambda el: GetResourcePropertyResponse(_parse_values(el)),
    rp("GetMultipleResourceProperties"): parse_get_multiple,
    rp("GetMultipleResourcePropertiesResponse"): (
        lambda el: GetMultipleResourcePropertiesResponse(_parse_values(el))
    ),
    rp("QueryResourceProperties"): parse_query_request,
    rp("QueryResourcePropertiesResponse"): parse_query_response,
}
PROPERTIES_ENCODERS: dict[type[Any], Callable[[Any], bytes]] = {
    GetResourceProperty: encode_get_resource_property,
    GetResourcePropertyResponse: lambda m: join_values("GetResourcePropertyResponse", m.values),
    GetMultipleResourceProperties: encode_get_multiple,
    GetMultipleResourcePropertiesResponse: (
        lambda m: join_values("GetMultipleResourcePropertiesResponse", m.values)
    ),
    QueryResourceProperties: encode_query_request,
    QueryResourcePropertiesResponse: encode_query_response,
}
