"""POST /presence: a consumer, or whoever knows that it is back, announces that it is reachable.

The request is a JSON object with `consumer`, the address to which notifications are delivered. The answer is
how many subscriptions were woken, and how many notifications waited for them. An address that no subscription
has wakes nothing, which is not an error: the subscriber may be about to subscribe. Nothing is sent anywhere
but to the consumers of existing subscriptions.
"""

from __future__ import annotations

from typing import Any

from aiohttp import web

from hpwsn.broker.delivery.presence import Presence
from hpwsn.door.rest.json_answers import answer, answers_in_json, bad, check_names
from hpwsn.door.rest.json_requests import read_object
from hpwsn_client.wsn.topics.topic import shown


class PresenceDoor:
    """The request handler for /presence."""

    def __init__(self, presence: Presence, request_timeout: float) -> None:
        self._presence = presence
        self._request_timeout = request_timeout

    def routes(self) -> list[web.RouteDef]:
        """Return the routes for the node's web application."""
        return [web.post("/presence", self._announce)]

    @answers_in_json
    async def _announce(self, request: web.Request) -> web.StreamResponse:
        check_names(request)
        consumer = _address(await read_object(request, self._request_timeout, "consumer"))
        try:
            woken = await self._presence.announce(consumer)
        except ValueError as error:
            raise bad(f"consumer is {shown(consumer)}: {error}") from error
        return answer({"subscriptions": woken.subscriptions, "waiting": woken.waiting}, 200)


def _address(asked: dict[str, Any]) -> str:
    consumer = asked.get("consumer")
    if not isinstance(consumer, str) or not consumer:
        raise bad("consumer is missing or not a text; give the address of the consumer, as it was subscribed")
    return consumer
