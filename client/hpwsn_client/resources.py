"""The broker and its subscriptions as resources: their properties (WS-ResourceProperties 1.2) and lifetimes
(WS-ResourceLifetime 1.2).

A property is named as the standard writes it, `wsnt:FixedTopicSet`, or as a Clark name; its values are
elements as they came. Where no resource is given, it is the broker.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from lxml import etree

from hpwsn_client.arguments import (
    Endpoint,
    Expires,
    Namespaces,
    content_filter,
    endpoint,
    property_name,
    termination,
)
from hpwsn_client.transport import Caller
from hpwsn_client.wsn.operations.filters import ContentFilter
from hpwsn_client.wsn.operations.lifetime import (
    Destroy,
    DestroyResponse,
    SetTerminationTime,
    SetTerminationTimeResponse,
)
from hpwsn_client.wsn.operations.properties import (
    GetMultipleResourceProperties,
    GetMultipleResourcePropertiesResponse,
    GetResourceProperty,
    GetResourcePropertyResponse,
    QueryResourceProperties,
    QueryResourcePropertiesResponse,
)
from hpwsn_client.wsn.soap.addressing import EndpointReference
from hpwsn_client.wsn.soap.names import PREFIXES, WSRF_PORT_TYPES, WSTOP, XML_NS
from hpwsn_client.wsn.soap.xml import STORED_LIMITS, parse_xml
from hpwsn_client.wsn.topics.topic import Topic, parse_topic_set

TOPIC_SET = f"{{{WSTOP}}}TopicSet"
_PREFIXES = {prefix: uri for uri, prefix in PREFIXES.items() if uri != XML_NS}


class ResourceCaller(Caller):
    """The operations that every resource has."""

    async def get_resource_property(
        self, name: str, resource: Endpoint | None = None, *, namespaces: Namespaces | None = None
    ) -> list[etree._Element]:
        """The values of one property, perhaps none; InvalidResourcePropertyQNameFault for an unknown one."""
        request = GetResourceProperty(property_name(name, namespaces))
        action = _action("GetResourceProperty")
        answer = await self._request(self._at(resource), action, request, GetResourcePropertyResponse)
        return _elements(answer.values)

    async def get_resource_properties(
        self, names: Sequence[str], resource: Endpoint | None = None, *, namespaces: Namespaces | None = None
    ) -> list[etree._Element]:
        """The values of several properties, in the order of their names."""
        if isinstance(names, str) or not names:
            raise ValueError(f"{names!r} is no list of properties; for one there is get_resource_property")
        request = GetMultipleResourceProperties(tuple(property_name(name, namespaces) for name in names))
        action = _action("GetMultipleResourceProperties")
        answer = await self._request(
            self._at(resource), action, request, GetMultipleResourcePropertiesResponse
        )
        return _elements(answer.values)

    async def query_resource_properties(
        self,
        query: str | ContentFilter,
        resource: Endpoint | None = None,
        *,
        namespaces: Namespaces | None = None,
    ) -> list[etree._Element]:
        """What an XPath finds in the document of all properties; the standard's prefixes are bound in it."""
        asked = QueryResourceProperties(content_filter(query, {**_PREFIXES, **(namespaces or {})}))
        action = _action("QueryResourceProperties")
        answer = await self._request(self._at(resource), action, asked, QueryResourcePropertiesResponse)
        return _elements(answer.found)

    async def get_topics(self) -> list[Topic]:
        """The topics that the broker has at this moment, as its TopicSet tells them."""
        sets = await self.get_resource_property(TOPIC_SET)
        return [topic for one in sets for topic in parse_topic_set(one)]

    async def set_termination_time(self, resource: Endpoint, expires: Expires = None) -> datetime | None:
        """Set a resource's lifetime anew (None: for ever) and return its end."""
        request = SetTerminationTime(termination(expires))
        action = _action("SetTerminationTime")
        answer = await self._request(endpoint(resource), action, request, SetTerminationTimeResponse)
        if hasattr(resource, "terminates"):
            resource.terminates = answer.termination_time
        return answer.termination_time

    async def destroy(self, resource: Endpoint) -> None:
        """End a resource at once."""
        await self._request(endpoint(resource), _action("Destroy"), Destroy(), DestroyResponse)

    def _at(self, resource: Endpoint | None) -> EndpointReference:
        return self._broker if resource is None else endpoint(resource)


def _action(operation: str) -> str:
    return f"{WSRF_PORT_TYPES[operation]}/{operation}Request"


def _elements(values: Sequence[bytes]) -> list[etree._Element]:
    return [parse_xml(value, STORED_LIMITS) for value in values]
