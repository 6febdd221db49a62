"""The SOAP operations of the broker, of its subscriptions and of its pull points.

Each is a few lines: read the request with the wire, ask the broker, answer with a message of the wire. What
may be asked where is in Spyne services, one or more for each kind of address; operations on resources and
on registrations are beside them, in resources and registrations. WS-BaseNotification 1.3, sections 3 to 6.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

from spyne import Service

from hpwsn.broker.broker import Broker
from hpwsn.broker.subscriptions.pull_points import batch_name
from hpwsn.door.soap import contract
from hpwsn.door.soap.dispatch import Answer, Call, Endpoint
from hpwsn.door.soap.operation import Context, publish
from hpwsn.door.soap.operation import SpyneContext as _SpyneContext
from hpwsn.door.soap.operation import operation as _operation
from hpwsn.door.soap.operation import read as _read
from hpwsn.door.soap.registration_operations import (
    PublisherRegistrationManager,
    RegisterPublisher,
    RegistrationConsumer,
    RegistrationLifetime,
    RegistrationProperties,
)
from hpwsn.door.soap.resource_operations import BrokerProperties, SubscriptionLifetime, SubscriptionProperties
from hpwsn.journal.store.records import Pulled
from hpwsn_client.wsn.operations import messages as wsn
from hpwsn_client.wsn.operations.notifications import join_notification
from hpwsn_client.wsn.operations.pull_points import join_get_messages_response
from hpwsn_client.wsn.soap.addressing import EndpointReference


class NotificationBroker(Service):
    """What the broker's own address does."""

    @_operation(contract.Subscribe)
    async def subscribe(ctx: _SpyneContext, call: Call) -> wsn.SubscribeResponse:  # noqa: N805
        """Make a subscription, or find the one that is there."""
        request = _read(ctx, call, wsn.Subscribe)
        broker = ctx.udc.broker
        subscription = await broker.subscriptions.subscribe(request, call.envelope.version)
        return wsn.SubscribeResponse(
            EndpointReference(subscription.address), broker.now(), _moment(subscription.terminates)
        )

    @_operation(contract.GetCurrentMessage)
    async def get_current_message(ctx: _SpyneContext, call: Call) -> wsn.GetCurrentMessageResponse:  # noqa: N805
        """The newest message on one topic."""
        request = _read(ctx, call, wsn.GetCurrentMessage)
        return wsn.GetCurrentMessageResponse(await ctx.udc.broker.current_message(request.topic))

    @_operation(contract.Notify)
    async def notify(ctx: _SpyneContext, call: Call) -> None:  # noqa: N805
        """Publish."""
        await publish(ctx.udc, call.envelope)

    @_operation(contract.CreatePullPoint)
    async def create_pull_point(ctx: _SpyneContext, call: Call) -> wsn.CreatePullPointResponse:  # noqa: N805
        """Make a pull point, or find the one of that name."""
        request = _read(ctx, call, wsn.CreatePullPoint)
        broker = ctx.udc.broker
        point = await broker.pull_points.create(request.name)
        return wsn.CreatePullPointResponse(EndpointReference(broker.pull_point_address(point.id)))


class PausableSubscriptionManager(Service):
    """What a subscription's address does."""

    @_operation(contract.Renew)
    async def renew(ctx: _SpyneContext, call: Call) -> wsn.RenewResponse:  # noqa: N805
        """Set a new termination time."""
        broker = ctx.udc.broker
        broker.subscriptions.get(call.resource)
        request = _read(ctx, call, wsn.Renew)
        subscription = await broker.subscriptions.renew(call.resource, request.termination)
        return wsn.RenewResponse(_moment(subscription.terminates), broker.now())

    @_operation(contract.Unsubscribe)
    async def unsubscribe(ctx: _SpyneContext, call: Call) -> wsn.UnsubscribeResponse:  # noqa: N805
        """End it."""
        await ctx.udc.broker.subscriptions.unsubscribe(call.resource)
        return wsn.UnsubscribeResponse()

    @_operation(contract.PauseSubscription)
    async def pause(ctx: _SpyneContext, call: Call) -> wsn.PauseSubscriptionResponse:  # noqa: N805
        """Hold deliveries back."""
        await ctx.udc.broker.subscriptions.pause(call.resource)
        return wsn.PauseSubscriptionResponse()

    @_operation(contract.ResumeSubscription)
    async def resume(ctx: _SpyneContext, call: Call) -> wsn.ResumeSubscriptionResponse:  # noqa: N805
        """Deliver again."""
        await ctx.udc.broker.subscriptions.resume(call.resource)
        return wsn.ResumeSubscriptionResponse()


class PullPoint(Service):
    """What a pull point's address does"""

    @_operation(contract.GetMessages)
    async def get_messages(ctx: _SpyneContext, call: Call) -> Answer:  # noqa: N805
        """The oldest waiting messages, which stay until the client is known to have them."""
        request = _read(ctx, call, wsn.GetMessages)
        broker = ctx.udc.broker
        pulled = await broker.pull(call.resource, request.maximum, request.confirm)
        messages = (_handed_out(broker, entry) for entry in pulled)
        if not pulled:
            return Answer(join_get_messages_response(messages))
        name = None if request.confirm is None else batch_name(pulled[-1].seq)
        body = join_get_messages_response(messages, name)
        return Answer(body, partial(broker.pull_points.handed_out, call.resource, pulled))

    @_operation(contract.DestroyPullPoint)
    async def destroy(ctx: _SpyneContext, call: Call) -> wsn.DestroyPullPointResponse:  # noqa: N805
        """End the pull point and the subscriptions that lead to it."""
        await ctx.udc.broker.destroy_pull_point(call.resource)
        return wsn.DestroyPullPointResponse()

    @_operation(contract.Notify)
    async def notify(ctx: _SpyneContext, call: Call) -> None:  # noqa: N805
        """Put messages into this pull point alone."""
        ctx.udc.broker.pull_points.get(call.resource)
        await publish(ctx.udc, call.envelope, target=call.resource)


def endpoints(context: Context) -> dict[str, Endpoint]:
    """The kinds of address, by the name that routes give them."""
    return {
        "broker": Endpoint(
            "NotificationBroker", [NotificationBroker, RegisterPublisher, BrokerProperties], context
        ),
        "subscriptions": Endpoint(
            "PausableSubscriptionManager",
            [PausableSubscriptionManager, SubscriptionProperties, SubscriptionLifetime],
            context,
        ),
        "pullpoints": Endpoint("PullPoint", [PullPoint], context),
        "registrations": Endpoint(
            "PublisherRegistrationManager",
            [
                PublisherRegistrationManager,
                RegistrationConsumer,
                RegistrationProperties,
                RegistrationLifetime,
            ],
            context,
        ),
    }


def _handed_out(broker: Broker, entry: Pulled) -> bytes:
    content = entry.stored.notification.content
    if entry.subscription_id is None:
        return join_notification(content)
    reference = EndpointReference(broker.subscription_address(entry.subscription_id))
    return join_notification(content, reference)


def _moment(time: float | None) -> datetime | None:
    return None if time is None else datetime.fromtimestamp(time, UTC)
