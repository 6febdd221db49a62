"""The HTTP API for subscriptions of all kinds, under /subscriptions; a POST creates a webhook.

List with search, order and pages; show, pause, renew, retry and end one. A webhook is created as the
Subscribe that it stands for, so that a repeated request gets the subscription that exists, its lifetime set
anew. No answer has a secret. Every error is a JSON object with `error`.
"""

from __future__ import annotations

from aiohttp import web

from hpwsn.background import in_thread
from hpwsn.broker.broker import Broker
from hpwsn.broker.subscriptions.subscription import State, Subscription
from hpwsn.door.rest.json_answers import answer, answers_in_json, bad, check_names, moment
from hpwsn.door.rest.json_requests import read_object
from hpwsn.door.rest.operations.subscription_items import DEFAULT_SORT, SubscriptionItems, select
from hpwsn.door.rest.operations.webhook_requests import FIELDS, parse_expires, parse_webhook
from hpwsn.http_json.list_pages import sorted_page
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.soap.envelope import SoapVersion
from hpwsn_client.wsn.topics.topic import shown

MANY = 1000
"""Subscriptions above which a thread selects and sorts them, so that the event loop goes on."""
_ONE = "/subscriptions/{id}"


class SubscriptionsDoor:
    """The request handlers for the paths under /subscriptions."""

    def __init__(self, broker: Broker, items: SubscriptionItems, request_timeout: float) -> None:
        self._broker = broker
        self._items = items
        self._request_timeout = request_timeout

    def routes(self) -> list[web.RouteDef]:
        """Return the routes for the node's web application."""
        return [
            web.get("/subscriptions", self._list),
            web.post("/subscriptions", self._create),
            web.get(_ONE, self._show),
            web.patch(_ONE, self._change),
            web.delete(_ONE, self._end),
            web.post(f"{_ONE}/retry", self._retry),
        ]

    @answers_in_json
    async def _list(self, request: web.Request) -> web.StreamResponse:
        check_names(request, "q", "state", "topic", "sort", "limit", "after")
        candidates = self._items.candidates(request)
        orders = await self._items.orders(request)

        def choose() -> tuple[list[Subscription], str | None, int, dict[str, int]]:
            query = request.query
            chosen, counts = select(candidates, query.get("q", "").strip(), query.get("state"))
            page, following = sorted_page(request, chosen, lambda each: each.id, orders, DEFAULT_SORT)
            return page, following, len(chosen), counts

        many = len(candidates) > MANY
        page, following, total, counts = await in_thread(choose) if many else choose()
        items = await self._items.describe(page)
        return answer({"items": items, "next": following, "total": total, "counts": counts}, 200)

    @answers_in_json
    async def _create(self, request: web.Request) -> web.StreamResponse:
        check_names(request)
        wanted = parse_webhook(await read_object(request, self._request_timeout, *FIELDS))
        try:
            subscription = await self._broker.subscriptions.subscribe(wanted, SoapVersion.SOAP12)
        except faults.SubscribeCreationFailedFault as fault:
            status = 400 if fault.code is faults.FaultCode.SENDER else 503
            raise faults.SoapFault(fault.reason, status=status) from fault
        url = f"{self._broker.base_url()}/subscriptions/{subscription.id}"
        told = {"id": subscription.id, "url": url, "terminates": moment(subscription.terminates)}
        created = answer(told, 201)
        created.headers["Location"] = url
        return created

    @answers_in_json
    async def _show(self, request: web.Request) -> web.StreamResponse:
        check_names(request)
        return await self._describe(self._find(request), 200)

    @answers_in_json
    async def _change(self, request: web.Request) -> web.StreamResponse:
        """Renew, pause or resume; a renewal that is refused changes nothing."""
        check_names(request)
        subscription = self._find(request)
        asked = await read_object(request, self._request_timeout, "expires", "paused")
        if not asked:
            raise bad('the object is empty; send {"paused": true}, {"expires": "PT1H"}, or both')
        paused = asked.get("paused", subscription.paused)
        if not isinstance(paused, bool):
            raise bad(f"paused is {shown(str(paused))}; give true or false")
        registry = self._broker.subscriptions
        try:
            if "expires" in asked:
                await registry.renew(subscription.id, parse_expires(asked["expires"]))
            if "paused" in asked:
                _check_live(subscription)
                await (registry.pause if paused else registry.resume)(subscription.id)
        except faults.ResourceUnknownFault as fault:
            raise _unknown(fault) from fault
        return await self._describe(subscription, 200)

    @answers_in_json
    async def _retry(self, request: web.Request) -> web.StreamResponse:
        """Try a failing consumer now, without the rest of its pause."""
        check_names(request)
        subscription = self._find(request)
        _check_live(subscription)
        if subscription.paused:
            raise _conflict(f"subscription {subscription.id} is paused; resume it to deliver what waits")
        if not subscription.cursor.backlog:
            raise _conflict(f"nothing waits for subscription {subscription.id}, so nothing can be retried")
        self._broker.delivery.retry(subscription)
        return await self._describe(subscription, 202)

    @answers_in_json
    async def _end(self, request: web.Request) -> web.StreamResponse:
        check_names(request)
        await self._broker.subscriptions.end_all([self._find(request)])
        return web.Response(status=204)

    def _find(self, request: web.Request) -> Subscription:
        try:
            return self._broker.subscriptions.get(request.match_info["id"])
        except faults.ResourceUnknownFault as fault:
            raise _unknown(fault) from fault

    async def _describe(self, subscription: Subscription, status: int) -> web.Response:
        (item,) = await self._items.describe([subscription])
        return answer(item, status)


def _check_live(subscription: Subscription) -> None:
    if subscription.state is not State.LIVE:
        raise _conflict(f'subscription {subscription.id} has expired; renew it with {{"expires": "PT1H"}}')


def _conflict(reason: str) -> faults.SoapFault:
    return faults.SoapFault(reason, status=409)


def _unknown(fault: faults.ResourceUnknownFault) -> faults.SoapFault:
    return faults.SoapFault(fault.description, status=404)
