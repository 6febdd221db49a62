"""The SOAP operations on publisher registrations: one at the broker, the rest at their own address.

A registration's address is at once its manager, its resource (properties and lifetime) and the consumer to
which its publisher sends Notify. WS-BrokeredNotification 1.3, sections 4.3 and 5.
"""

from __future__ import annotations

from datetime import UTC, datetime

from spyne import Service, Unicode

from hpwsn.broker.subscriptions.producer_conditions import PropertyDocument
from hpwsn.door.soap import contract
from hpwsn.door.soap.dispatch import Answer, Call
from hpwsn.door.soap.operation import SpyneContext, operation, publish, read
from hpwsn.door.soap.property_documents import registration_properties
from hpwsn.door.soap.resource_operations import (
    Destroy,
    GetMultipleResourceProperties,
    QueryResourceProperties,
    SetTerminationTime,
    get_multiple_values,
    get_values,
    query_values,
)
from hpwsn_client.wsn.operations import lifetime as wsrf_rl
from hpwsn_client.wsn.operations import registrations as wsn_br
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.soap.addressing import EndpointReference
from hpwsn_client.wsn.soap.names import WSN_BR, WSRF_RL, WSRF_RP


class RegisterPublisher(Service):
    """What the broker's address does for publishers."""

    namespace = WSN_BR

    @operation(contract.RegisterPublisher)
    async def register(ctx: SpyneContext, call: Call) -> wsn_br.RegisterPublisherResponse:  # noqa: N805
        """Register a publisher, or find its registration."""
        request = read(ctx, call, wsn_br.RegisterPublisher)
        registrations = ctx.udc.broker.registrations
        address = EndpointReference((await registrations.register(request, call.envelope.version)).address)
        return wsn_br.RegisterPublisherResponse(address, address)


class PublisherRegistrationManager(Service):
    """What a registration's address does."""

    namespace = WSN_BR

    @operation(contract.DestroyRegistration)
    async def destroy(ctx: SpyneContext, call: Call) -> wsn_br.DestroyRegistrationResponse:  # noqa: N805
        """End it."""
        ctx.udc.broker.registrations.get(call.resource)
        read(ctx, call, wsn_br.DestroyRegistration)
        await ctx.udc.broker.registrations.destroy(call.resource)
        return wsn_br.DestroyRegistrationResponse()


class RegistrationConsumer(Service):
    """The registration as the consumer of its publisher."""

    @operation(contract.Notify)
    async def notify(ctx: SpyneContext, call: Call) -> None:  # noqa: N805
        """Publish, as that publisher."""
        ctx.udc.broker.registrations.get(call.resource)
        await publish(ctx.udc, call.envelope, registration=call.resource)


class RegistrationProperties(Service):
    """The properties of a registration."""

    namespace = WSRF_RP

    @operation(Unicode, name="GetResourceProperty")
    async def get_property(ctx: SpyneContext, call: Call) -> Answer:  # noqa: N805
        """The values of one property."""
        return await get_values(ctx, call, _of_registration(ctx, call))

    @operation(GetMultipleResourceProperties)
    async def get_properties(ctx: SpyneContext, call: Call) -> Answer:  # noqa: N805
        """The values of several properties."""
        return await get_multiple_values(ctx, call, _of_registration(ctx, call))

    @operation(QueryResourceProperties)
    async def query_properties(ctx: SpyneContext, call: Call) -> Answer:  # noqa: N805
        """What an XPath finds among them."""
        return await query_values(ctx, call, _of_registration(ctx, call))


class RegistrationLifetime(Service):
    """Ending a registration, now or later, as any other resource is ended."""

    namespace = WSRF_RL

    @operation(Destroy)
    async def destroy(ctx: SpyneContext, call: Call) -> wsrf_rl.DestroyResponse:  # noqa: N805
        """End it."""
        registrations = ctx.udc.broker.registrations
        registrations.get(call.resource)
        read(ctx, call, wsrf_rl.Destroy)
        await registrations.destroy(call.resource)
        return wsrf_rl.DestroyResponse()

    @operation(SetTerminationTime)
    async def set_time(ctx: SpyneContext, call: Call) -> wsrf_rl.SetTerminationTimeResponse:  # noqa: N805
        """Set a new termination time."""
        broker = ctx.udc.broker
        broker.registrations.get(call.resource)
        request = read(ctx, call, wsrf_rl.SetTerminationTime)
        try:
            registration = await broker.registrations.set_end(call.resource, request.termination)
        except faults.UnacceptableTerminationTimeFault as fault:
            raise faults.TerminationTimeChangeRejectedFault(fault.description) from None
        end = registration.terminates
        return wsrf_rl.SetTerminationTimeResponse(
            None if end is None else datetime.fromtimestamp(end, UTC), broker.now()
        )


def _of_registration(ctx: SpyneContext, call: Call) -> PropertyDocument:
    broker = ctx.udc.broker
    return registration_properties(broker.registrations.get(call.resource), broker.now())
