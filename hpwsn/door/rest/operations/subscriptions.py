"""The HTTP API for subscriptions: list, show and end them, under /subscriptions."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from hpwsn.broker.broker import Broker
from hpwsn.broker.subscriptions.subscription import State, Subscription
from hpwsn.door.rest.json_answers import moment
from hpwsn_client.wsn.soap.faults import ResourceUnknownFault


class SubscriptionsDoor:
    """The request handlers for the paths under /subscriptions."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def routes(self) -> list[web.RouteDef]:
        """Return the routes for the node's web application."""
        return [
            web.get("/subscriptions", self._subscriptions),
            web.get("/subscriptions/{id}", self._subscription),
            web.delete("/subscriptions/{id}", self._end_subscription),
        ]

    async def _subscriptions(self, request: web.Request) -> web.Response:
        return web.json_response({"subscriptions": [_describe(s) for s in self._broker.subscriptions]})

    async def _subscription(self, request: web.Request) -> web.Response:
        try:
            return web.json_response(_describe(self._broker.subscriptions.get(request.match_info["id"])))
        except ResourceUnknownFault as fault:
            return web.json_response({"error": fault.description}, status=404)

    async def _end_subscription(self, request: web.Request) -> web.Response:
        try:
            subscription = self._broker.subscriptions.get(request.match_info["id"])
        except ResourceUnknownFault as fault:
            return web.json_response({"error": fault.description}, status=404)
        await self._broker.subscriptions.end_all([subscription])
        return web.Response(status=204)


def _describe(subscription: Subscription) -> dict[str, Any]:
    progress = subscription.progress
    return {
        "id": subscription.id,
        "reference": subscription.address,
        "consumer": subscription.request.consumer.address,
        "topics": [expression.text for expression in subscription.topics],
        "content": [content.expression for content in subscription.content],
        "conditions": [condition.expression for condition in subscription.producer_properties],
        "holding": subscription.producer_holds,
        "created": moment(subscription.created),
        "terminates": moment(subscription.terminates),
        "paused": subscription.paused,
        "state": _state(subscription),
        "waiting": subscription.cursor.backlog,
        "delivered": progress.delivered,
        "dropped": progress.dropped,
        "expired_unsent": progress.expired,
        "failures": progress.failures,
        "last_error": progress.last_error,
    }


def _state(subscription: Subscription) -> str:
    paused = subscription.paused and subscription.state is State.LIVE
    return "paused" if paused else subscription.state.value
