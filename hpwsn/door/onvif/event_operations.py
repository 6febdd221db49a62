"""The operations of the ONVIF event service, on the same broker as all others.

What is asked of the producer is at /onvif/events, what is asked of a subscription at its own address; the
standard's own operations of a subscription are those of soap.py. ONVIF Core Specification, section 9.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Protocol

from spyne import AnyXml, ComplexModel, Service, Unicode

from hpwsn.background import in_thread
from hpwsn.door.onvif.pull_subscriptions import PullSubscriptions
from hpwsn.door.soap import contract
from hpwsn.door.soap.broker_operations import PausableSubscriptionManager
from hpwsn.door.soap.dispatch import Answer, Call, Endpoint
from hpwsn.door.soap.operation import Context, operation, publish, read
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
    """What these operations work on."""

    pulls: PullSubscriptions
    settings: OnvifSettings
    capabilities: GetServiceCapabilitiesResponse

    def address(self, id_: str) -> str:
        """Where a subscription answers all that ONVIF asks of it."""
        return f"{self.broker.base_url()}/onvif/subscriptions/{id_}"


class OnvifSpyneContext(Protocol):
    """What Spyne hands to an operation."""

    @property
    def udc(self) -> OnvifContext:
        """What the operations of this address work on."""


class CreatePullPointSubscription(ComplexModel):
    __namespace__ = TEV
    Filter = AnyXml
    InitialTerminationTime = Unicode
    SubscriptionPolicy = AnyXml


class PullMessages(ComplexModel):
    __namespace__ = TEV
    Timeout = Unicode(min_occurs=1)
    MessageLimit = Unicode(min_occurs=1)


class Seek(ComplexModel):
    __namespace__ = TEV
    UtcTime = Unicode(min_occurs=1)
    Reverse = Unicode


class SetSynchronizationPoint(ComplexModel):
    __namespace__ = TEV
    Extension = AnyXml


class GetEventProperties(ComplexModel):
    __namespace__ = TEV
    Extension = AnyXml


class GetServiceCapabilities(ComplexModel):
    __namespace__ = TEV
    Extension = AnyXml


class EventPortType(Service):
    """What the event service's own address does."""

    namespace = TEV

    @operation(CreatePullPointSubscription)
    async def create(ctx: OnvifSpyneContext, call: Call) -> onvif.CreatePullPointSubscriptionResponse:  # noqa: N805
        """Make a subscription with its own pull point."""
        request = read(ctx, call, onvif.CreatePullPointSubscription)
        subscription = await ctx.udc.pulls.create(request, call.envelope.version)
        return onvif.CreatePullPointSubscriptionResponse(
            EndpointReference(ctx.udc.address(subscription.id)),
            ctx.udc.broker.now(),
            _moment(subscription.terminates),
        )

    @operation(GetEventProperties)
    async def properties(ctx: OnvifSpyneContext, call: Call) -> Answer:  # noqa: N805
        """The topics and the filters."""
        read(ctx, call, onvif.GetEventProperties)
        return Answer(
            await in_thread(_event_properties, ctx.udc), action=response_action("GetEventProperties")
        )

    @operation(GetServiceCapabilities)
    async def capabilities(ctx: OnvifSpyneContext, call: Call) -> GetServiceCapabilitiesResponse:  # noqa: N805
        """What this service can do."""
        read(ctx, call, onvif.GetServiceCapabilities)
        return ctx.udc.capabilities


class NotificationProducer(Service):
    """The standard's operations that ONVIF has at the same address."""

    @operation(contract.Subscribe)
    async def subscribe(ctx: OnvifSpyneContext, call: Call) -> wsn.SubscribeResponse:  # noqa: N805
        """Make a subscription whose messages are pushed, or find the one that is there."""
        asked = read(ctx, call, wsn.Subscribe)
        request = replace(asked, filter=onvif.as_xpath(asked.filter))
        broker = ctx.udc.broker
        subscription = await broker.subscriptions.subscribe(request, call.envelope.version)
        address = ctx.udc.address(subscription.id)
        return wsn.SubscribeResponse(
            EndpointReference(address), broker.now(), _moment(subscription.terminates)
        )

    @operation(contract.GetCurrentMessage)
    async def current(ctx: OnvifSpyneContext, call: Call) -> wsn.GetCurrentMessageResponse:  # noqa: N805
        """The newest message on one topic."""
        request = read(ctx, call, wsn.GetCurrentMessage)
        return wsn.GetCurrentMessageResponse(await ctx.udc.broker.current_message(request.topic))

    @operation(contract.Notify)
    async def notify(ctx: OnvifSpyneContext, call: Call) -> None:  # noqa: N805
        """Publish, as a camera does whose consumer this address is."""
        await publish(ctx.udc, call.envelope)


class PullPointSubscription(Service):
    """What ONVIF asks of a subscription."""

    namespace = TEV

    @operation(PullMessages)
    async def pull(ctx: OnvifSpyneContext, call: Call) -> Answer:  # noqa: N805
        """The oldest waiting messages, or the first that come in time."""
        context, request = ctx.udc, read(ctx, call, onvif.PullMessages)
        context.broker.subscriptions.live(call.resource)
        seconds = _checked(request, context.settings)
        subscription, pulled = await context.pulls.pull(call.resource, seconds, request.limit, call.gone)
        end = _moment(subscription.terminates)
        assert end is not None
        reference = EndpointReference(context.address(call.resource))
        messages = (join_notification(each.stored.notification.content, reference) for each in pulled)
        body = onvif.join_pull_messages_response(context.broker.now(), end, messages)
        return Answer(body, _tell(context, subscription.pull_point, pulled), response_action("PullMessages"))

    @operation(SetSynchronizationPoint)
    async def synchronize(ctx: OnvifSpyneContext, call: Call) -> onvif.SetSynchronizationPointResponse:  # noqa: N805
        """Send the current message of each topic once more."""
        read(ctx, call, onvif.SetSynchronizationPoint)
        await ctx.udc.pulls.synchronize(call.resource)
        return onvif.SetSynchronizationPointResponse()

    @operation(Seek)
    async def seek(ctx: OnvifSpyneContext, call: Call) -> None:  # noqa: N805
        """Refused, as the capabilities say."""
        raise faults.SoapFault(
            "Seek is not supported: a subscription starts when it is made (PersistentNotificationStorage is"
            " false); GET /topics/{topic}/events reads what is kept",
            code=faults.FaultCode.RECEIVER,
            subcode=f"{{{TER}}}ActionNotSupported",
        )


def endpoints(context: OnvifContext) -> dict[str, Endpoint]:
    """The two kinds of address; the first takes what is meant for a subscription too, by its wsa:To."""
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


def _tell(
    context: OnvifContext, point: str | None, pulled: Sequence[Pulled]
) -> Callable[[bool], Awaitable[None]] | None:
    if not pulled or point is None:
        return None
    return partial(context.broker.pull_points.handed_out, point, pulled)


def _checked(request: onvif.PullMessages, settings: OnvifSettings) -> float:
    timeout, most = request.timeout, settings.max_timeout
    if timeout.months or timeout.seconds > most or request.limit > settings.max_messages:
        limits = onvif.PullMessagesFaultResponse(Duration(seconds=most), settings.max_messages)
        raise faults.SoapFault(
            f"a PullMessages may wait for {most:g} s (onvif.max_timeout) and ask for"
            f" {settings.max_messages} messages (onvif.max_messages) at most",
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
