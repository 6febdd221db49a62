"""The SOAP operations of the ONVIF event service.

The operations of the event producer are at /onvif/events. Those of a subscription are at the address of the
subscription, together with the operations of WS-BaseNotification from `broker_operations`.
ONVIF Core Specification, section 9.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Protocol

from hpwsn.background import in_thread
from hpwsn.broker.subscriptions.webhook import refuse_webhook
from hpwsn.door.onvif.pull_subscriptions import PullSubscriptions
from hpwsn.door.soap import contract
from hpwsn.door.soap.broker_operations import PausableSubscriptionManager
from hpwsn.door.soap.dispatch import Answer, Call, Endpoint, OperationGroup, operation
from hpwsn.door.soap.operation import Context, publish, read, trace_headers
from hpwsn.door.soap.resource_operations import SubscriptionLifetime, SubscriptionProperties
from hpwsn.journal.store.records import Pulled
from hpwsn.settings import OnvifSettings
from hpwsn.topics.tree.topic_set import topic_set
from hpwsn_client.wsn.formats import onvif
from hpwsn_client.wsn.formats.onvif import GetServiceCapabilitiesResponse
from hpwsn_client.wsn.operations import messages as wsn
from hpwsn_client.wsn.operations.notifications import join_notification
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.soap.addressing import EndpointReference
from hpwsn_client.wsn.soap.names import (
    DIALECT_CONCRETE,
    DIALECT_CONCRETE_SET,
    DIALECT_FULL,
    DIALECT_ITEM_FILTER,
    DIALECT_SIMPLE,
    DIALECT_XPATH,
    TER,
    TEV,
    response_action,
)
from hpwsn_client.wsn.soap.times import Duration

TOPIC_DIALECTS = (DIALECT_CONCRETE_SET, DIALECT_FULL, DIALECT_CONCRETE, DIALECT_SIMPLE)
CONTENT_DIALECTS = (DIALECT_ITEM_FILTER, DIALECT_XPATH)


@dataclass(frozen=True, slots=True)
class OnvifContext(Context):
    """What the operations of the event service use, beside the broker and the limits."""

    pulls: PullSubscriptions
    settings: OnvifSettings
    capabilities: GetServiceCapabilitiesResponse

    def address(self, id_: str) -> str:
        """Return the address of a subscription that accepts the ONVIF operations too."""
        return f"{self.broker.base_url()}/onvif/subscriptions/{id_}"


class OnvifSpyneContext(Protocol):
    """The context object that Spyne passes to an operation."""

    @property
    def udc(self) -> OnvifContext:
        """The context of the address (Spyne's user-defined context)."""


class EventPortType(OperationGroup):
    """The operations of the event service's own address."""

    namespace = TEV

    @operation(contract.CreatePullPointSubscription)
    async def create(ctx: OnvifSpyneContext, call: Call) -> onvif.CreatePullPointSubscriptionResponse:  # noqa: N805
        """Create a subscription with a pull point of its own."""
        request = read(ctx, call, onvif.CreatePullPointSubscription)
        subscription = await ctx.udc.pulls.create(request, call.envelope.version)
        return onvif.CreatePullPointSubscriptionResponse(
            EndpointReference(ctx.udc.address(subscription.id)),
            ctx.udc.broker.now(),
            _moment(subscription.terminates),
        )

    @operation(contract.GetEventProperties)
    async def properties(ctx: OnvifSpyneContext, call: Call) -> Answer:  # noqa: N805
        """Return the topic set and the dialects of filters."""
        read(ctx, call, onvif.GetEventProperties)
        return Answer(
            await in_thread(_event_properties, ctx.udc), action=response_action("GetEventProperties")
        )

    @operation(contract.GetServiceCapabilities)
    async def capabilities(ctx: OnvifSpyneContext, call: Call) -> GetServiceCapabilitiesResponse:  # noqa: N805
        """Return the capabilities of the event service."""
        read(ctx, call, onvif.GetServiceCapabilities)
        return ctx.udc.capabilities


class NotificationProducer(OperationGroup):
    """The operations of WS-BaseNotification that ONVIF has at the same address."""

    @operation(contract.Subscribe)
    async def subscribe(ctx: OnvifSpyneContext, call: Call) -> wsn.SubscribeResponse:  # noqa: N805
        """Create a push subscription; a repeated request gets the existing one."""
        received = read(ctx, call, wsn.Subscribe)
        refuse_webhook(received)
        request = replace(received, filter=onvif.as_xpath(received.filter))
        broker = ctx.udc.broker
        subscription = await broker.subscriptions.subscribe(request, call.envelope.version)
        address = ctx.udc.address(subscription.id)
        return wsn.SubscribeResponse(
            EndpointReference(address), broker.now(), _moment(subscription.terminates)
        )

    @operation(contract.GetCurrentMessage)
    async def current(ctx: OnvifSpyneContext, call: Call) -> wsn.GetCurrentMessageResponse:  # noqa: N805
        """Return the last message that was published on a topic."""
        request = read(ctx, call, wsn.GetCurrentMessage)
        return wsn.GetCurrentMessageResponse(await ctx.udc.broker.current_message(request.topic))

    @operation(contract.Notify)
    async def notify(ctx: OnvifSpyneContext, call: Call) -> None:  # noqa: N805
        """Publish the messages of a Notify; a camera can have this address as its consumer."""
        await publish(ctx.udc, call, door="onvif")


class PullPointSubscription(OperationGroup):
    """The ONVIF operations of a subscription."""

    namespace = TEV

    @operation(contract.PullMessages)
    async def pull(ctx: OnvifSpyneContext, call: Call) -> Answer:  # noqa: N805
        """Return the oldest messages; if there are none, wait for the first until the timeout."""
        context, request = ctx.udc, read(ctx, call, onvif.PullMessages)
        context.broker.subscriptions.live(call.resource)
        seconds = _check_limits(request, context.settings)
        subscription, pulled = await context.pulls.pull(
            call.resource, seconds, request.limit, call.client_gone
        )
        end = _moment(subscription.terminates)
        assert end is not None
        reference = EndpointReference(context.address(call.resource))
        messages = (join_notification(each.stored.notification.content, reference) for each in pulled)
        body = onvif.join_pull_messages_response(context.broker.now(), end, messages)
        report = _delivery_report(context, subscription.pull_point, pulled)
        traced = trace_headers(each.stored.notification for each in pulled)
        return Answer(body, report, response_action("PullMessages"), traced)

    @operation(contract.SetSynchronizationPoint)
    async def synchronize(ctx: OnvifSpyneContext, call: Call) -> onvif.SetSynchronizationPointResponse:  # noqa: N805
        """Send the current message of each topic of the subscription again."""
        read(ctx, call, onvif.SetSynchronizationPoint)
        await ctx.udc.pulls.synchronize(call.resource)
        return onvif.SetSynchronizationPointResponse()

    @operation(contract.Seek)
    async def seek(ctx: OnvifSpyneContext, call: Call) -> None:  # noqa: N805
        """Always raise a fault: the capabilities declare no persistent storage."""
        raise faults.SoapFault(
            "Seek is not supported: a subscription starts when it is created (PersistentNotificationStorage"
            " is false); to read stored events, GET /topics/{topic}/events",
            code=faults.FaultCode.RECEIVER,
            subcode=f"{{{TER}}}ActionNotSupported",
        )


def endpoints(context: OnvifContext) -> dict[str, Endpoint]:
    """Return the endpoints of the two kinds of address.

    The first accepts the requests for a subscription too; the header wsa:To names the subscription.
    """
    manager = [
        PullPointSubscription,
        PausableSubscriptionManager,
        SubscriptionProperties,
        SubscriptionLifetime,
    ]
    return {
        "events": Endpoint("Events", [EventPortType, NotificationProducer, *manager], context),
        "subscriptions": Endpoint("PullPointSubscription", manager, context),
    }


def _delivery_report(
    context: OnvifContext, point: str | None, pulled: Sequence[Pulled]
) -> Callable[[bool], Awaitable[None]] | None:
    if not pulled or point is None:
        return None
    return partial(context.broker.pull_points.handed_out, point, pulled)


def _check_limits(request: onvif.PullMessages, settings: OnvifSettings) -> float:
    """Return the timeout in seconds, or raise the fault that contains the limits."""
    timeout, longest = request.timeout, settings.max_timeout
    if timeout.months or timeout.seconds > longest or request.limit > settings.max_messages:
        limits = onvif.PullMessagesFaultResponse(Duration(seconds=longest), settings.max_messages)
        raise faults.SoapFault(
            f"the Timeout or the MessageLimit {request.limit} is too large; ask for at most {longest:g} s"
            f" (onvif.max_timeout) and {settings.max_messages} messages (onvif.max_messages)",
            detail=(onvif.encode_pull_messages_fault(limits),),
        )
    return timeout.seconds


def _event_properties(context: OnvifContext) -> bytes:
    tree = context.broker.tree
    return onvif.encode_event_properties(
        onvif.GetEventPropertiesResponse(
            namespace_locations=(f"{context.broker.base_url()}/topics/namespace",),
            fixed=tree.fixed,
            topic_set=topic_set(tree.root),
            topic_dialects=TOPIC_DIALECTS,
            content_dialects=CONTENT_DIALECTS,
        )
    )


def _moment(time: float | None) -> datetime | None:
    return None if time is None else datetime.fromtimestamp(time, UTC)
