"""The admin node's metrics for Prometheus, at /metrics, and the counts of requests that they show.

The part of hpwsn.monitoring for Prometheus is imported at the first scrape.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from aiohttp import web

from hpwsn_admin.members import Members

if TYPE_CHECKING:
    from hpwsn.monitoring.metrics.exposition import Exposition

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
UNSIGNED = 401
LEFT = 499
"""The status for a client that has disconnected."""
_KINDS = {
    ("POST", "/api/nodes"): "registration",
    ("PUT", "/api/nodes/{name}/heartbeat"): "heartbeat",
    ("POST", "/api/nodes/{name}/suspect"): "suspicion",
    ("DELETE", "/api/nodes/{name}"): "removal",
    ("GET", "/api/nodes/{name}/stream"): "stream",
}
"""The kind of a request by method and route; any other one is a `read`."""


class AdminMetrics:
    """Counts requests and answers scrapes."""

    def __init__(self, members: Members) -> None:
        self._members = members
        self._requests: dict[str, dict[str, int]] = {kind: {"2xx": 0} for kind in (*_KINDS.values(), "read")}
        self._unsigned = 0
        self._streams = 0
        self._exposition: Exposition | None = None

    def join(self, app: web.Application) -> None:
        """Add the route and the middleware."""
        app.middlewares.append(self._count)
        app.add_routes([web.get("/metrics", self._answer)])

    @web.middleware
    async def _count(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        kind = _kind(request)
        is_stream = kind == "stream"
        self._streams += is_stream
        status = LEFT
        try:
            response = await handler(request)
            status = response.status
        except web.HTTPException as error:
            status = error.status
            raise
        except Exception:
            status = 500
            raise
        finally:
            self._streams -= is_stream
            self._note(kind, status)
        return response

    def _note(self, kind: str, status: int) -> None:
        codes = self._requests[kind]
        code = f"{status // 100}xx"
        codes[code] = codes.get(code, 0) + 1
        self._unsigned += status == UNSIGNED

    async def _answer(self, request: web.Request) -> web.Response:
        if self._exposition is None:
            self._exposition = await asyncio.to_thread(self._load)
        body, content_type = self._exposition.scrape(request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})

    def _load(self) -> Exposition:
        from hpwsn.monitoring.metrics.admin_metrics import admin_exposition

        return admin_exposition(self._figures)

    def _figures(self) -> dict[str, Any]:
        members = self._members
        states = [member.state for member in members.topology]
        return {
            "nodes": {state: states.count(state) for state in ("alive", "dead", "left")},
            "clusters": len(members.topology.clusters),
            "topology": members.topology.version,
            "heartbeat": members.registry.heartbeat,
            "oldest_heartbeat": members.oldest_heartbeat(),
            "streams": self._streams,
            "requests": self._requests,
            "unsigned": self._unsigned,
            "probes": members.probes,
            "deaths": members.deaths,
        }


def _kind(request: web.Request) -> str:
    resource = request.match_info.route.resource
    path = "" if resource is None else resource.canonical
    return _KINDS.get((request.method, path), "read")
