"""The SOAP operations on publisher registrations.

RegisterPublisher is sent to the broker. All other operations are sent to the address of the registration,
which has three roles: the manager, the resource with its properties and lifetime, and the consumer for the
publisher's Notify. WS-BrokeredNotification 1.3, sections 4.3 and 5.
"""

from __future__ import annotations

from datetime import UTC, datetime

from hpwsn.broker.subscriptions.producer_conditions import PropertyDocument
from hpwsn.door.soap import contract
from hpwsn.door.soap.dispatch import Answer, Call, OperationGroup, operation
from hpwsn.door.soap.operation import SpyneContext, publish, read
from hpwsn.door.soap.property_documents import registration_properties
from hpwsn.door.soap.resource_operations import get_multiple_values, get_values, query_values
from hpwsn_client.wsn.operations import lifetime as wsrf_rl
from hpwsn_client.wsn.operations import registrations as wsn_br
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.soap.addressing import EndpointReference
from hpwsn_client.wsn.soap.names import WSN_BR, WSRF_RL, WSRF_RP


class RegisterPublisher(OperationGroup):
    """The operation of the broker's address for publishers."""

    namespace = WSN_BR

    @operation(contract.RegisterPublisher)
    async def register(ctx: SpyneContext, call: Call) -> wsn_br.RegisterPublisherResponse:  # noqa: N805
        """Register a publisher; a repeated request gets the existing registration."""
        request = read(ctx, call, wsn_br.RegisterPublisher)
        registrations = ctx.udc.broker.registrations
        address = EndpointReference((await registrations.register(request, call.envelope.version)).address)
        return wsn_br.RegisterPublisherResponse(address, address)


class PublisherRegistrationManager(OperationGroup):
    """The operation of the registration manager."""

    namespace = WSN_BR

    @operation(contract.DestroyRegistration)
    async def destroy(ctx: SpyneContext, call: Call) -> wsn_br.DestroyRegistrationResponse:  # noqa: N805
        """Destroy a registration."""
        ctx.udc.broker.registrations.get(call.resource)
        read(ctx, call, wsn_br.DestroyRegistration)
        await ctx.udc.broker.registrations.destroy(call.resource)
        return wsn_br.DestroyRegistrationResponse()


class RegistrationConsumer(OperationGroup):
    """The registration as the consumer of its publisher."""

    @operation(contract.Notify)
    async def notify(ctx: SpyneContext, call: Call) -> None:  # noqa: N805
        """Publish the messages of a Notify as the registered publisher."""
        ctx.udc.broker.registrations.get(call.resource)
        await publish(ctx.udc, call, registration=call.resource)


class RegistrationProperties(OperationGroup):
    """The properties of a registration."""

    namespace = WSRF_RP

    @operation(contract.GetResourceProperty, name="GetResourceProperty")
    async def get_property(ctx: SpyneContext, call: Call) -> Answer:  # noqa: N805
        """Return the values of one property."""
        return await get_values(ctx, call, _registration_document(ctx, call))

    @operation(contract.GetMultipleResourceProperties)
    async def get_properties(ctx: SpyneContext, call: Call) -> Answer:  # noqa: N805
        """Return the values of several properties."""
        return await get_multiple_values(ctx, call, _registration_document(ctx, call))

    @operation(contract.QueryResourceProperties)
    async def query_properties(ctx: SpyneContext, call: Call) -> Answer:  # noqa: N805
        """Return what an XPath expression selects in the property document."""
        return await query_values(ctx, call, _registration_document(ctx, call))


class RegistrationLifetime(OperationGroup):
    """The operations of WS-ResourceLifetime on a registration."""

    namespace = WSRF_RL

    @operation(contract.Destroy)
    async def destroy(ctx: SpyneContext, call: Call) -> wsrf_rl.DestroyResponse:  # noqa: N805
        """Destroy a registration."""
        registrations = ctx.udc.broker.registrations
        registrations.get(call.resource)
        read(ctx, call, wsrf_rl.Destroy)
        await registrations.destroy(call.resource)
        return wsrf_rl.DestroyResponse()

    @operation(contract.SetTerminationTime)
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


def _registration_document(ctx: SpyneContext, call: Call) -> PropertyDocument:
    broker = ctx.udc.broker
    return registration_properties(broker.registrations.get(call.resource), broker.now())
