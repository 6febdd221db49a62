"""The client's operations of WS-ResourceProperties 1.2 and WS-ResourceLifetime 1.2.

They read the properties of the broker and of its subscriptions, and set lifetimes. A property name is
prefixed, such as `wsnt:FixedTopicSet`, or a Clark name. Values are XML elements. The default resource is the
broker.
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
    """The operations that are common to all resources."""

    async def get_resource_property(
        self, name: str, resource: Endpoint | None = None, *, namespaces: Namespaces | None = None
    ) -> list[etree._Element]:
        """The values of a property, possibly none; InvalidResourcePropertyQNameFault if it is unknown."""
        request = GetResourceProperty(property_name(name, namespaces))
        action = _action("GetResourceProperty")
        answer = await self._request(
            self._resource_epr(resource), action, request, GetResourcePropertyResponse
        )
        return _elements(answer.values)

    async def get_resource_properties(
        self, names: Sequence[str], resource: Endpoint | None = None, *, namespaces: Namespaces | None = None
    ) -> list[etree._Element]:
        """The values of several properties, in the order of their names."""
        if isinstance(names, str) or not names:
            raise ValueError(f"{names!r} is not a list of names; for one property use get_resource_property")
        request = GetMultipleResourceProperties(tuple(property_name(name, namespaces) for name in names))
        action = _action("GetMultipleResourceProperties")
        answer = await self._request(
            self._resource_epr(resource), action, request, GetMultipleResourcePropertiesResponse
        )
        return _elements(answer.values)

    async def query_resource_properties(
        self,
        query: str | ContentFilter,
        resource: Endpoint | None = None,
        *,
        namespaces: Namespaces | None = None,
    ) -> list[etree._Element]:
        """Evaluate XPath on the resource properties document; the standard's prefixes are bound."""
        request = QueryResourceProperties(content_filter(query, {**_PREFIXES, **(namespaces or {})}))
        action = _action("QueryResourceProperties")
        answer = await self._request(
            self._resource_epr(resource), action, request, QueryResourcePropertiesResponse
        )
        return _elements(answer.found)

    async def get_topics(self) -> list[Topic]:
        """The broker's current topics, from its TopicSet property."""
        sets = await self.get_resource_property(TOPIC_SET)
        return [topic for topic_set in sets for topic in parse_topic_set(topic_set)]

    async def set_termination_time(self, resource: Endpoint, expires: Expires = None) -> datetime | None:
        """Set a new lifetime (None means no expiry) and return the termination time."""
        request = SetTerminationTime(termination(expires))
        action = _action("SetTerminationTime")
        answer = await self._request(endpoint(resource), action, request, SetTerminationTimeResponse)
        if hasattr(resource, "terminates"):
            resource.terminates = answer.termination_time
        return answer.termination_time

    async def destroy(self, resource: Endpoint) -> None:
        """Destroy a resource immediately."""
        await self._request(endpoint(resource), _action("Destroy"), Destroy(), DestroyResponse)

    def _resource_epr(self, resource: Endpoint | None) -> EndpointReference:
        return self._broker if resource is None else endpoint(resource)


def _action(operation: str) -> str:
    return f"{WSRF_PORT_TYPES[operation]}/{operation}Request"


def _elements(values: Sequence[bytes]) -> list[etree._Element]:
    return [parse_xml(value, STORED_LIMITS) for value in values]
