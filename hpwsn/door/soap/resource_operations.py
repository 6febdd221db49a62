"""The SOAP operations on resources: the properties of the broker and of subscriptions, and their lifetimes.

They follow WS-ResourceProperties 1.2 and WS-ResourceLifetime 1.2, on which WS-Notification 1.3 builds.
Property documents are encoded and queried in threads, because they can be large. `TopicNamespacesDoor`
serves the TopicNamespace documents of WS-Topics 1.3, section 5, over plain HTTP.
"""

from __future__ import annotations

from datetime import UTC, datetime

from aiohttp import web

from hpwsn.background import in_thread
from hpwsn.broker.subscriptions.producer_conditions import PropertyDocument
from hpwsn.broker.subscriptions.subscription import Subscriber
from hpwsn.door.soap import contract
from hpwsn.door.soap.dispatch import Answer, Call, OperationGroup, operation
from hpwsn.door.soap.operation import SpyneContext, read
from hpwsn.door.soap.property_documents import broker_properties, subscription_properties
from hpwsn.topics.tree.topic_set import topic_namespace
from hpwsn.topics.tree.tree import TopicTree
from hpwsn_client.wsn.operations import lifetime as wsrf_rl
from hpwsn_client.wsn.operations import properties as wsrf_rp
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.soap.names import HPWSN_TOPICS, WSRF_RL, WSRF_RP
from hpwsn_client.wsn.topics.topic import shown


class BrokerProperties(OperationGroup):
    """The properties of the broker."""

    namespace = WSRF_RP

    @operation(contract.GetResourceProperty, name="GetResourceProperty")
    async def get_property(ctx: SpyneContext, call: Call) -> Answer:  # noqa: N805
        """Return the values of one property."""
        return await get_values(ctx, call, _broker_document(ctx))

    @operation(contract.GetMultipleResourceProperties)
    async def get_properties(ctx: SpyneContext, call: Call) -> Answer:  # noqa: N805
        """Return the values of several properties."""
        return await get_multiple_values(ctx, call, _broker_document(ctx))

    @operation(contract.QueryResourceProperties)
    async def query_properties(ctx: SpyneContext, call: Call) -> Answer:  # noqa: N805
        """Return what an XPath expression selects in the property document."""
        return await query_values(ctx, call, _broker_document(ctx))


class SubscriptionProperties(OperationGroup):
    """The properties of a subscription."""

    namespace = WSRF_RP

    @operation(contract.GetResourceProperty, name="GetResourceProperty")
    async def get_property(ctx: SpyneContext, call: Call) -> Answer:  # noqa: N805
        """Return the values of one property."""
        return await get_values(ctx, call, _subscription_document(ctx, call))

    @operation(contract.GetMultipleResourceProperties)
    async def get_properties(ctx: SpyneContext, call: Call) -> Answer:  # noqa: N805
        """Return the values of several properties."""
        return await get_multiple_values(ctx, call, _subscription_document(ctx, call))

    @operation(contract.QueryResourceProperties)
    async def query_properties(ctx: SpyneContext, call: Call) -> Answer:  # noqa: N805
        """Return what an XPath expression selects in the property document."""
        return await query_values(ctx, call, _subscription_document(ctx, call))


class SubscriptionLifetime(OperationGroup):
    """The operations of WS-ResourceLifetime on a subscription."""

    namespace = WSRF_RL

    @operation(contract.Destroy)
    async def destroy(ctx: SpyneContext, call: Call) -> wsrf_rl.DestroyResponse:  # noqa: N805
        """Destroy a subscription."""
        ctx.udc.broker.subscriptions.live(call.resource)
        read(ctx, call, wsrf_rl.Destroy)
        await ctx.udc.broker.subscriptions.unsubscribe(call.resource)
        return wsrf_rl.DestroyResponse()

    @operation(contract.SetTerminationTime)
    async def set_time(ctx: SpyneContext, call: Call) -> wsrf_rl.SetTerminationTimeResponse:  # noqa: N805
        """Set a new termination time; like Renew, it revives a subscription that has just expired."""
        broker = ctx.udc.broker
        broker.subscriptions.get(call.resource)
        request = read(ctx, call, wsrf_rl.SetTerminationTime)
        try:
            subscription = await broker.subscriptions.renew(call.resource, request.termination)
        except faults.UnacceptableTerminationTimeFault as fault:
            raise faults.TerminationTimeChangeRejectedFault(fault.description) from None
        end = subscription.terminates
        return wsrf_rl.SetTerminationTimeResponse(
            None if end is None else datetime.fromtimestamp(end, UTC), broker.now()
        )


def _broker_document(ctx: SpyneContext) -> PropertyDocument:
    return broker_properties(ctx.udc.broker.tree, ctx.udc.broker.registrations.required)


def _subscription_document(ctx: SpyneContext, call: Call) -> PropertyDocument:
    broker = ctx.udc.broker
    return subscription_properties(broker.subscriptions.live(call.resource), broker.now())


async def get_values(ctx: SpyneContext, call: Call, document: PropertyDocument) -> Answer:
    """Answer GetResourceProperty from a property document."""
    name = read(ctx, call, wsrf_rp.GetResourceProperty).name
    return await _values("GetResourcePropertyResponse", document, (name,))


async def get_multiple_values(ctx: SpyneContext, call: Call, document: PropertyDocument) -> Answer:
    """Answer GetMultipleResourceProperties from a property document."""
    names = read(ctx, call, wsrf_rp.GetMultipleResourceProperties).names
    return await _values("GetMultipleResourcePropertiesResponse", document, names)


async def _values(response: str, document: PropertyDocument, names: tuple[str, ...]) -> Answer:
    # A repeated name is answered once, so that a short request cannot get a large tree many times.
    distinct = tuple(dict.fromkeys(names))
    return Answer(await in_thread(lambda: wsrf_rp.join_values(response, document.of(distinct))))


async def query_values(ctx: SpyneContext, call: Call, document: PropertyDocument) -> Answer:
    """Answer QueryResourceProperties from a property document."""
    query = read(ctx, call, wsrf_rp.QueryResourceProperties).query
    found = await in_thread(document.query, query, ctx.udc.limits.body)
    return Answer(wsrf_rp.join_values("QueryResourcePropertiesResponse", found))


class TopicNamespacesDoor:
    """The request handler for /topics/namespace."""

    def __init__(self, tree: TopicTree[Subscriber]) -> None:
        self._tree = tree

    def routes(self) -> list[web.RouteDef]:
        """Return the routes for the node's web application."""
        return [web.get("/topics/namespace", self._describe)]

    async def _describe(self, request: web.Request) -> web.Response:
        uri = request.query.get("uri") or HPWSN_TOPICS
        document = await in_thread(topic_namespace, self._tree.root, uri)
        if document is None:
            return web.Response(status=404, text=f"there are no topics in the namespace {shown(uri)}\n")
        return web.Response(body=document, content_type="text/xml", charset="utf-8")
