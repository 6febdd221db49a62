"""The HTTP API for pull points: list, show and destroy them, under /pullpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aiohttp import web

from hpwsn.broker.broker import Broker
from hpwsn.broker.subscriptions.pull_points import PullPoint
from hpwsn.door.rest.json_answers import answer, answers_in_json, check_names, moment
from hpwsn.http_json.list_pages import page_of
from hpwsn_client.wsn.soap.faults import ResourceUnknownFault, SoapFault


class PullPointsDoor:
    """The request handlers for the paths under /pullpoints."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def routes(self) -> list[web.RouteDef]:
        """Return the routes for the node's web application."""
        return [
            web.get("/pullpoints", self._list),
            web.get("/pullpoints/{id}", self._show),
            web.delete("/pullpoints/{id}", self._destroy),
        ]

    @answers_in_json
    async def _list(self, request: web.Request) -> web.Response:
        check_names(request, "limit", "after")
        live = {point.id: point for point in self._broker.pull_points}
        page, following = page_of(request, live)
        found = await self._describe([live[id_] for id_ in page])
        return answer({"items": found, "next": following, "total": len(live)}, 200)

    @answers_in_json
    async def _show(self, request: web.Request) -> web.Response:
        check_names(request)
        (described,) = await self._describe([self._find(request)])
        return answer(described, 200)

    @answers_in_json
    async def _destroy(self, request: web.Request) -> web.Response:
        check_names(request)
        await self._broker.destroy_pull_point(self._find(request).id)
        return web.Response(status=204)

    def _find(self, request: web.Request) -> PullPoint:
        try:
            return self._broker.pull_points.get(request.match_info["id"])
        except ResourceUnknownFault as fault:
            raise SoapFault(fault.description, status=404) from None

    async def _describe(self, points: Sequence[PullPoint]) -> list[dict[str, Any]]:
        queues = await self._broker.journal.queues([point.id for point in points])
        found = []
        for point in points:
            waiting, oldest = queues.get(point.id, (0, None))
            found.append(
                {
                    "id": point.id,
                    "name": None if point.is_reserved else point.name,
                    "reference": self._broker.pull_point_address(point.id),
                    "created": moment(point.created),
                    "waiting": waiting,
                    "oldest": moment(oldest),
                    "last_read": moment(point.last_read),
                    "terminates": moment(point.terminates),
                    "subscriptions": [s.id for s in self._broker.subscriptions.leading_to(point.id)],
                }
            )
        return found
