"""The SOAP operations of the broker, of subscriptions and of pull points.

An operation parses its request, calls the broker, and returns the response. `endpoints` lists the
operations of each kind of address. The operations on resource properties and on registrations are in
`resource_operations` and `registration_operations`. WS-BaseNotification 1.3, sections 3 to 6.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

from hpwsn.broker.broker import Broker
from hpwsn.broker.subscriptions.pull_points import batch_name
from hpwsn.broker.subscriptions.webhook import refuse_webhook
from hpwsn.door.soap import contract
from hpwsn.door.soap.dispatch import Answer, Call, Endpoint, OperationGroup, operation
from hpwsn.door.soap.operation import Context, SpyneContext, publish, read, trace_headers
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


class NotificationBroker(OperationGroup):
    """The operations of the broker's own address."""

    @operation(contract.Subscribe)
    async def subscribe(ctx: SpyneContext, call: Call) -> wsn.SubscribeResponse:  # noqa: N805
        """Create a subscription; a repeated request gets the existing one."""
        request = read(ctx, call, wsn.Subscribe)
        refuse_webhook(request)
        broker = ctx.udc.broker
        subscription = await broker.subscriptions.subscribe(request, call.envelope.version)
        return wsn.SubscribeResponse(
            EndpointReference(subscription.address), broker.now(), _moment(subscription.terminates)
        )

    @operation(contract.GetCurrentMessage)
    async def get_current_message(ctx: SpyneContext, call: Call) -> wsn.GetCurrentMessageResponse:  # noqa: N805
        """Return the last message that was published on a topic."""
        request = read(ctx, call, wsn.GetCurrentMessage)
        return wsn.GetCurrentMessageResponse(await ctx.udc.broker.current_message(request.topic))

    @operation(contract.Notify)
    async def notify(ctx: SpyneContext, call: Call) -> None:  # noqa: N805
        """Publish the messages of a Notify."""
        await publish(ctx.udc, call)

    @operation(contract.CreatePullPoint)
    async def create_pull_point(ctx: SpyneContext, call: Call) -> wsn.CreatePullPointResponse:  # noqa: N805
        """Create a pull point, or return the existing one of the requested name."""
        request = read(ctx, call, wsn.CreatePullPoint)
        broker = ctx.udc.broker
        point = await broker.pull_points.create(request.name, request.lifetime)
        return wsn.CreatePullPointResponse(EndpointReference(broker.pull_point_address(point.id)))


class PausableSubscriptionManager(OperationGroup):
    """The operations of a subscription's address."""

    @operation(contract.Renew)
    async def renew(ctx: SpyneContext, call: Call) -> wsn.RenewResponse:  # noqa: N805
        """Set a new termination time of a subscription."""
        broker = ctx.udc.broker
        broker.subscriptions.get(call.resource)
        request = read(ctx, call, wsn.Renew)
        subscription = await broker.subscriptions.renew(call.resource, request.termination)
        return wsn.RenewResponse(_moment(subscription.terminates), broker.now())

    @operation(contract.Unsubscribe)
    async def unsubscribe(ctx: SpyneContext, call: Call) -> wsn.UnsubscribeResponse:  # noqa: N805
        """Destroy a subscription."""
        await ctx.udc.broker.subscriptions.unsubscribe(call.resource)
        return wsn.UnsubscribeResponse()

    @operation(contract.PauseSubscription)
    async def pause(ctx: SpyneContext, call: Call) -> wsn.PauseSubscriptionResponse:  # noqa: N805
        """Stop deliveries until the subscription is resumed."""
        await ctx.udc.broker.subscriptions.pause(call.resource)
        return wsn.PauseSubscriptionResponse()

    @operation(contract.ResumeSubscription)
    async def resume(ctx: SpyneContext, call: Call) -> wsn.ResumeSubscriptionResponse:  # noqa: N805
        """Resume deliveries."""
        await ctx.udc.broker.subscriptions.resume(call.resource)
        return wsn.ResumeSubscriptionResponse()


class PullPoint(OperationGroup):
    """The operations of a pull point's address."""

    @operation(contract.GetMessages)
    async def get_messages(ctx: SpyneContext, call: Call) -> Answer:  # noqa: N805
        """Return the oldest messages; they stay in the pull point until the client has received them."""
        request = read(ctx, call, wsn.GetMessages)
        broker = ctx.udc.broker
        pulled = await broker.pull(call.resource, request.maximum, request.confirm)
        messages = (_encode_pulled(broker, entry) for entry in pulled)
        if not pulled:
            return Answer(join_get_messages_response(messages))
        name = None if request.confirm is None else batch_name(pulled[-1].seq)
        body = join_get_messages_response(messages, name)
        report = partial(broker.pull_points.handed_out, call.resource, pulled)
        return Answer(body, report, headers=trace_headers(each.stored.notification for each in pulled))

    @operation(contract.DestroyPullPoint)
    async def destroy(ctx: SpyneContext, call: Call) -> wsn.DestroyPullPointResponse:  # noqa: N805
        """Destroy the pull point and the subscriptions whose consumer it is."""
        await ctx.udc.broker.destroy_pull_point(call.resource)
        return wsn.DestroyPullPointResponse()

    @operation(contract.Notify)
    async def notify(ctx: SpyneContext, call: Call) -> None:  # noqa: N805
        """Put messages into this pull point only."""
        ctx.udc.broker.pull_points.get(call.resource)
        await publish(ctx.udc, call, target=call.resource)


def endpoints(context: Context) -> dict[str, Endpoint]:
    """Return the endpoint of each kind of address, by a name that SoapDoor uses."""
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


def _encode_pulled(broker: Broker, entry: Pulled) -> bytes:
    content = entry.stored.notification.content
    if entry.subscription_id is None:
        return join_notification(content)
    reference = EndpointReference(broker.subscription_address(entry.subscription_id))
    return join_notification(content, reference)


def _moment(time: float | None) -> datetime | None:
    return None if time is None else datetime.fromtimestamp(time, UTC)
