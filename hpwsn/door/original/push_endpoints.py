"""Push endpoints: what a subscriber of the original asks for first, and its Subscribe uses up.

Until then an endpoint is a pull point of this node, told from others by its name, so that it is in the
journal and bounded as they are. A Subscribe makes a push subscription of it; a repeated one finds what is
there and frees the endpoint that was made for it, so that nothing is held twice. spec/hpwsn.md, parts 3, 4.
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
    """The push endpoints of a node, and the subscriptions that are made of them."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._in_use: set[str] = set()
        """Endpoints that a Subscribe is about to use up."""

    async def create(self, name: str | None) -> str:
        """The address of a new endpoint, or of the one of this name that nobody has used yet."""
        point = await self._broker.pull_points.create(ENDPOINT + (name or secrets.token_hex(12)))
        return self._broker.pull_point_address(point.id)

    async def subscribe(self, wanted: SubscribeEndpoint) -> Subscription:
        """Make the subscription, or find it; either way the endpoint is gone afterwards.

        A repeated Subscribe needs none: its client may not have got the answer to the first.
        """
        request = as_standard(wanted)
        self._check_receiver(request)
        endpoint = self._find(wanted.endpoint)
        if self._broker.subscriptions.find_same(request) is None:
            self._check_new(wanted, endpoint)
        if endpoint is None:
            return await self._broker.subscriptions.subscribe(request, SoapVersion.SOAP11)
        return await self._use_up(endpoint, request)

    async def _use_up(self, endpoint: str, request: Subscribe) -> Subscription:
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
                f"{wanted.endpoint!r} is no push endpoint of this node, or a Subscribe has used it already;"
                " send CreatePullPoint for each Subscribe",
                code=faults.FaultCode.SENDER,
            )

    def _check_receiver(self, request: Subscribe) -> None:
        if self._broker.delivery.check(request.consumer) is not None:
            raise faults.SubscribeCreationFailedFault(
                f"SubscriberAddress {request.consumer.address} is a pull point, to which nothing is pushed;"
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
        """End the subscription of this address, which frees all that was held for it."""
        _, found, id_ = address.partition("/wsn/subscriptions/")
        if not found:
            raise faults.ResourceUnknownFault(
                f"wsa:To is {address!r}, which is no subscription; send the address in SubscribeResponse"
            )
        await self._broker.subscriptions.unsubscribe(id_)
