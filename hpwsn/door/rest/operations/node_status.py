"""Health, readiness and status of a node.

It reads the counters of the broker and keeps none of its own. /healthz and / answer in plain text, the other
paths in JSON; / leads browsers to the page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from aiohttp import web

from hpwsn.broker.broker import Broker
from hpwsn.broker.push.pool import Pusher
from hpwsn.door.rest.json_answers import answers_in_json, check_names
from hpwsn.page.page_door import page_or
from hpwsn_client import __version__

Problems = Callable[[], list[str]]


class StatusDoor:
    """The request handlers for what a node tells about itself."""

    def __init__(
        self,
        name: str,
        broker: Broker,
        pusher: Pusher,
        problems: Problems,
        warnings: Problems,
        process: Callable[[], Mapping[str, float]],
    ) -> None:
        self._name = name
        self._broker = broker
        self._pusher = pusher
        self._problems = problems
        self._warnings = warnings
        self._process = process
        self._started = broker.now()
        self.reports: dict[str, Callable[[], Mapping[str, Any]]] = {}
        """The counters of other parts of the node, by their name in /status."""

    def routes(self) -> list[web.RouteDef]:
        """Return the routes for the node's web application."""
        return [
            web.get("/", page_or(self._welcome)),
            web.get("/healthz", self._health),
            web.get("/readyz", self._ready),
            web.get("/status", self._status),
        ]

    async def _welcome(self, request: web.Request) -> web.Response:
        base = self._broker.base_url()
        return web.Response(
            text=f"HPwsn {__version__}, node {self._name}: a WS-Notification broker.\n"
            f"broker   {base}/wsn\ncontract {base}/wsn?wsdl\n"
            f"events   {base}/topics/TOPIC/events, in JSON; contract {base}/openapi.json\n"
            f"status   {base}/status\n"
        )

    async def _health(self, request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _ready(self, request: web.Request) -> web.Response:
        problems = self._problems()
        return web.json_response(
            {"ready": not problems, "problems": problems}, status=503 if problems else 200
        )

    @answers_in_json
    async def _status(self, request: web.Request) -> web.Response:
        check_names(request)
        return web.json_response(self.document())

    def document(self) -> dict[str, Any]:
        """The answer of /status; the live stream has it too."""
        now = self._broker.now()
        return {
            "node": self._name,
            "version": __version__,
            "started": self._started.isoformat(),
            "uptime": round((now - self._started).total_seconds(), 3),
            "problems": [*self._problems(), *self._warnings()],
            **self.figures(),
        }

    def figures(self) -> dict[str, Any]:
        """All figures of /status; /metrics shows them too."""
        broker = self._broker
        return {
            "process": dict(self._process()),
            "topics": len(broker.tree),
            "subscriptions": len(broker.subscriptions),
            "pull_points": len(broker.pull_points),
            "registrations": {"live": len(broker.registrations), **broker.demand.figures()},
            "dropped_from_pull_points": broker.pull_points.dropped,
            "expired_in_pull_points": broker.pull_points.expired,
            "published": {
                "accepted": broker.admission.accepted,
                "repeated": broker.admission.repeated,
                "refused": broker.admission.refused,
            },
            "delivery": {**asdict(broker.delivery.totals), "waiting_for_retry": broker.delivery.waiting()},
            "connections": asdict(self._pusher.statistics()),
            "journal": asdict(broker.journal.state),
            **{name: dict(report()) for name, report in self.reports.items()},
        }
