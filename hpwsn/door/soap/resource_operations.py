"""The SOAP operations on resources: the properties of the broker and of subscriptions, and their
lifetimes.

WS-ResourceProperties 1.2 and WS-ResourceLifetime 1.2, which WS-Notification 1.3 builds on. Documents are
written and queried in threads of their own.

TopicNamespace documents over HTTP: the topics of one namespace, as WS-Topics 1.3 section 5 has them.
"""

from __future__ import annotations

from datetime import UTC, datetime

from aiohttp import web
from spyne import AnyXml, ComplexModel, Service, Unicode

from hpwsn.background import in_thread
from hpwsn.broker.subscriptions.producer_conditions import PropertyDocument
from hpwsn.broker.subscriptions.subscription import Subscriber
from hpwsn.door.soap.dispatch import Answer, Call
from hpwsn.door.soap.operation import SpyneContext, operation, read
from hpwsn.door.soap.property_documents import broker_properties, subscription_properties
from hpwsn.topics.tree.topic_set import topic_namespace
from hpwsn.topics.tree.tree import TopicTree
from hpwsn_client.wsn.operations import lifetime as wsrf_rl
from hpwsn_client.wsn.operations import properties as wsrf_rp
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.soap.names import HPWSN_TOPICS, WSRF_RL, WSRF_RP
from hpwsn_client.wsn.topics.topic import shown


class TopicNamespacesDoor:
    """The address /topics/namespace."""

    def __init__(self, tree: TopicTree[Subscriber]) -> None:
        self._tree = tree

    def routes(self) -> list[web.RouteDef]:
        """What to add to the node's web application."""
        return [web.get("/topics/namespace", self._describe)]

    async def _describe(self, request: web.Request) -> web.Response:
        uri = request.query.get("uri") or HPWSN_TOPICS
        document = await in_thread(topic_namespace, self._tree.root, uri)
        if document is None:
            return web.Response(status=404, text=f"there are no topics in the namespace {shown(uri)}\n")
        return web.Response(body=document, content_type="text/xml", charset="utf-8")


class GetMultipleResourceProperties(ComplexModel):
    __namespace__ = WSRF_RP
    ResourceProperty = Unicode(min_occurs=1, max_occurs="unbounded", nillable=False)


class QueryResourceProperties(ComplexModel):
    __namespace__ = WSRF_RP
    QueryExpression = AnyXml(min_occurs=1, nillable=False)


class Destroy(ComplexModel):
    __namespace__ = WSRF_RL
    Extension = AnyXml


class SetTerminationTime(ComplexModel):
    __namespace__ = WSRF_RL
    RequestedTerminationTime = Unicode
    RequestedLifetimeDuration = Unicode


class BrokerProperties(Service):
    """The broker's own properties."""

    namespace = WSRF_RP

    @operation(Unicode, name="GetResourceProperty")
    async def get_property(ctx: SpyneContext, call: Call) -> Answer:  # noqa: N805
        """The values of one property."""
        return await get_values(ctx, call, _of_broker(ctx))

    @operation(GetMultipleResourceProperties)
    async def get_properties(ctx: SpyneContext, call: Call) -> Answer:  # noqa: N805
        """The values of several properties."""
        return await get_multiple_values(ctx, call, _of_broker(ctx))

    @operation(QueryResourceProperties)
    async def query_properties(ctx: SpyneContext, call: Call) -> Answer:  # noqa: N805
        """What an XPath finds among them."""
        return await query_values(ctx, call, _of_broker(ctx))


class SubscriptionProperties(Service):
    """The properties of a subscription."""

    namespace = WSRF_RP

    @operation(Unicode, name="GetResourceProperty")
    async def get_property(ctx: SpyneContext, call: Call) -> Answer:  # noqa: N805
        """The values of one property."""
        return await get_values(ctx, call, _of_subscription(ctx, call))

    @operation(GetMultipleResourceProperties)
    async def get_properties(ctx: SpyneContext, call: Call) -> Answer:  # noqa: N805
        """The values of several properties."""
        return await get_multiple_values(ctx, call, _of_subscription(ctx, call))

    @operation(QueryResourceProperties)
    async def query_properties(ctx: SpyneContext, call: Call) -> Answer:  # noqa: N805
        """What an XPath finds among them."""
        return await query_values(ctx, call, _of_subscription(ctx, call))


class SubscriptionLifetime(Service):
    """Ending a subscription, now or later, as any other resource is ended."""

    namespace = WSRF_RL

    @operation(Destroy)
    async def destroy(ctx: SpyneContext, call: Call) -> wsrf_rl.DestroyResponse:  # noqa: N805
        """End it."""
        ctx.udc.broker.subscriptions.live(call.resource)
        read(ctx, call, wsrf_rl.Destroy)
        await ctx.udc.broker.subscriptions.unsubscribe(call.resource)
        return wsrf_rl.DestroyResponse()

    @operation(SetTerminationTime)
    async def set_time(ctx: SpyneContext, call: Call) -> wsrf_rl.SetTerminationTimeResponse:  # noqa: N805
        """Set a new termination time; as with Renew, one that has just expired is revived."""
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


def _of_broker(ctx: SpyneContext) -> PropertyDocument:
    return broker_properties(ctx.udc.broker.tree, ctx.udc.broker.registrations.required)


def _of_subscription(ctx: SpyneContext, call: Call) -> PropertyDocument:
    broker = ctx.udc.broker
    return subscription_properties(broker.subscriptions.live(call.resource), broker.now())


async def get_values(ctx: SpyneContext, call: Call, document: PropertyDocument) -> Answer:
    """Answer a GetResourceProperty from a document."""
    name = read(ctx, call, wsrf_rp.GetResourceProperty).name
    return await _values("GetResourcePropertyResponse", document, (name,))


async def get_multiple_values(ctx: SpyneContext, call: Call, document: PropertyDocument) -> Answer:
    """Answer a GetMultipleResourceProperties from a document."""
    names = read(ctx, call, wsrf_rp.GetMultipleResourceProperties).names
    return await _values("GetMultipleResourcePropertiesResponse", document, names)


async def _values(response: str, document: PropertyDocument, names: tuple[str, ...]) -> Answer:
    # A name that is repeated is answered once: a short request must not ask for a tree many times over.
    asked = tuple(dict.fromkeys(names))
    return Answer(await in_thread(lambda: wsrf_rp.join_values(response, document.of(asked))))


async def query_values(ctx: SpyneContext, call: Call, document: PropertyDocument) -> Answer:
    """Answer a QueryResourceProperties from a document."""
    query = read(ctx, call, wsrf_rp.QueryResourceProperties).query
    found = await in_thread(document.query, query, ctx.udc.limits.body)
    return Answer(wsrf_rp.join_values("QueryResourcePropertiesResponse", found))
