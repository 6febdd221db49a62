"""The messages of WS-ResourceProperties 1.2 (schema rp-2).

They are GetResourceProperty, GetMultipleResourceProperties, QueryResourceProperties and their responses. A
property name is a Clark name, and a value is an encoded element. The evaluation of queries is in queries.py.
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
from hpwsn_client.wsn.soap.wrong_namespace import namespace_hint
from hpwsn_client.wsn.soap.xml import encode_element, escape, escape_attribute, prefixed, qname_text


@dataclass(frozen=True, slots=True)
class GetResourceProperty:
    """A request for the values of one property."""

    name: str


@dataclass(frozen=True, slots=True)
class GetResourcePropertyResponse:
    """The values of the property, possibly none."""

    values: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class GetMultipleResourceProperties:
    """A request for the values of several properties."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GetMultipleResourcePropertiesResponse:
    """The values of the properties, in the order of the request."""

    values: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class QueryResourceProperties:
    """A request to evaluate a query on the resource properties document."""

    query: ContentFilter


@dataclass(frozen=True, slots=True)
class QueryResourcePropertiesResponse:
    """The elements that the query found; `text` is the text between them, which other brokers send."""

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
    """Parse a GetResourceProperty, which has only a QName."""
    return GetResourceProperty(_parse_name(element))


def encode_get_resource_property(message: GetResourceProperty) -> bytes:
    """Encode a GetResourceProperty."""
    name, declaration = prefixed(message.name)
    return encode_rp("GetResourceProperty", name.encode(), declaration)


def parse_get_multiple(element: etree._Element) -> GetMultipleResourceProperties:
    """Parse a GetMultipleResourceProperties."""
    names = children_of(element)
    if not names or any(child.tag != rp("ResourceProperty") for child in names):
        raise InvalidMessage(
            f"{element.tag} must have one or more wsrf-rp:ResourceProperty, and nothing else"
            f"{namespace_hint(names, (rp('ResourceProperty'),))}"
        )
    return GetMultipleResourceProperties(tuple(map(_parse_name, names)))


def encode_get_multiple(message: GetMultipleResourceProperties) -> bytes:
    """Encode a GetMultipleResourceProperties."""
    names = ((name.encode(), declaration) for name, declaration in map(prefixed, message.names))
    return encode_rp(
        "GetMultipleResourceProperties", b"".join(encode_rp("ResourceProperty", *name) for name in names)
    )


def parse_query_request(element: etree._Element) -> QueryResourceProperties:
    """Parse a QueryResourceProperties; without a Dialect the expression is in XPath 1.0."""
    children = children_of(element)
    if [child.tag for child in children] != [rp("QueryExpression")]:
        hint = namespace_hint(children, (rp("QueryExpression"),))
        raise InvalidMessage(f"{element.tag} must have one wsrf-rp:QueryExpression, and nothing else{hint}")
    return QueryResourceProperties(parse_query(children[0], InvalidQueryExpressionFault))


def encode_query_request(message: QueryResourceProperties) -> bytes:
    """Encode a QueryResourceProperties."""
    query = message.query
    # A default namespace, because the expression may bind any prefix.
    scope = "".join(f' xmlns:{prefix}="{escape_attribute(uri)}"' for prefix, uri in query.namespaces)
    expression = (
        f'<QueryExpression xmlns="{WSRF_RP}"{scope} Dialect="{escape_attribute(query.dialect)}">'
        f"{escape(query.expression)}</QueryExpression>"
    )
    return encode_rp("QueryResourceProperties", expression.encode())


def parse_query_response(element: etree._Element) -> QueryResourcePropertiesResponse:
    """Parse a QueryResourcePropertiesResponse."""
    text = "".join((element.text or "", *(child.tail or "" for child in element)))
    return QueryResourcePropertiesResponse(tuple(map(encode_element, element)), text.strip(" \t\r\n"))


def encode_query_response(message: QueryResourcePropertiesResponse) -> bytes:
    """Encode a QueryResourcePropertiesResponse."""
    return encode_rp(
        "QueryResourcePropertiesResponse", escape(message.text).encode() + b"".join(message.found)
    )


def encode_rp(name: str, content: bytes, declaration: str = "") -> bytes:
    """Encode an element of WS-ResourceProperties with the prefix rp, which `prefixed` never uses."""
    return b'<rp:%b xmlns:rp="%b"%b>%b</rp:%b>' % (
        name.encode(),
        WSRF_RP.encode(),
        declaration.encode(),
        content,
        name.encode(),
    )


def join_values(response: str, values: Iterable[bytes]) -> bytes:
    """Encode a response with this name around encoded values."""
    return encode_rp(response, b"".join(values))


def _parse_name(element: etree._Element) -> str:
    if len(element):
        raise InvalidMessage(f"{element.tag} has the child {element[0].tag}; it may have only a QName")
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
