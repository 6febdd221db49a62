"""Push endpoints of the original: a subscriber creates one first, and its Subscribe consumes it.

An unused endpoint is a pull point of this node with a reserved name, so that the journal stores it and the
usual limits apply. Subscribe replaces the endpoint by a push subscription. A repeated Subscribe gets the
existing subscription, and its endpoint is destroyed.
"""

from __future__ import annotations

import secrets

from hpwsn.broker.broker import Broker
from hpwsn.broker.subscriptions.subscription import Subscription
from hpwsn_client.wsn.formats.original import ENDPOINT, SubscribeEndpoint, as_standard
from hpwsn_client.wsn.operations.messages import Subscribe
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.soap.envelope import SoapVersion


class PushEndpoints:
    """The push endpoints of a node, and the subscriptions that replace them."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._in_use: set[str] = set()
        """Endpoints that a running Subscribe is consuming."""

    async def create(self, name: str | None) -> str:
        """Return the address of a new endpoint, or of the unused endpoint of this name."""
        point = await self._broker.pull_points.create(ENDPOINT + (name or secrets.token_hex(12)))
        return self._broker.pull_point_address(point.id)

    async def subscribe(self, wanted: SubscribeEndpoint) -> Subscription:
        """Create the subscription, or return the existing one; the endpoint is destroyed in both cases.

        A repeated Subscribe needs no endpoint, because its client may have lost the answer to the first one.
        """
        request = as_standard(wanted)
        self._check_receiver(request)
        endpoint = self._find(wanted.endpoint)
        if self._broker.subscriptions.find_same(request) is None:
            self._check_new(wanted, endpoint)
        if endpoint is None:
            return await self._broker.subscriptions.subscribe(request, SoapVersion.SOAP11)
        return await self._consume(endpoint, request)

    async def _consume(self, endpoint: str, request: Subscribe) -> Subscription:
        self._in_use.add(endpoint)
        try:
            subscription = await self._broker.subscriptions.subscribe(request, SoapVersion.SOAP11)
            await self._broker.destroy_pull_point(endpoint)
        finally:
            self._in_use.discard(endpoint)
        return subscription

    def _check_new(self, wanted: SubscribeEndpoint, endpoint: str | None) -> None:
        topic, tree = wanted.topic.topic, self._broker.tree
        if topic is not None and tree.fixed and topic not in tree:
            raise tree.unsupported(topic)
        if endpoint is None:
            raise faults.SubscribeCreationFailedFault(
                f"{wanted.endpoint!r} is not a push endpoint of this node, or a Subscribe has used it;"
                " send CreatePullPoint for each Subscribe",
                code=faults.FaultCode.SENDER,
            )

    def _check_receiver(self, request: Subscribe) -> None:
        if self._broker.delivery.check(request.consumer) is not None:
            raise faults.SubscribeCreationFailedFault(
                f"SubscriberAddress {request.consumer.address} is a pull point, which cannot receive pushes;"
                " give the receiver's own address, or subscribe at /wsn",
                code=faults.FaultCode.SENDER,
            )

    def _find(self, address: str) -> str | None:
        _, _, id_ = address.partition("/wsn/pullpoints/")
        if id_ not in self._broker.pull_points or id_ in self._in_use:
            return None
        name = self._broker.pull_points.get(id_).name
        return id_ if name and name.startswith(ENDPOINT) else None

    async def unsubscribe(self, address: str) -> None:
        """Destroy the subscription of this address, and its undelivered notifications."""
        _, found, id_ = address.partition("/wsn/subscriptions/")
        if not found:
            raise faults.ResourceUnknownFault(
                f"wsa:To is {address!r}, which is not a subscription; send the address from SubscribeResponse"
            )
        await self._broker.subscriptions.unsubscribe(id_)
