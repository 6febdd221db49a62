"""GET /session and /cluster at the admin node, which knows all nodes by their heartbeats.

A node that asks for /cluster signs its request, and gets a signed answer. A node that is not alive has no
figures and no links: what it said last is no longer true.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from aiohttp import web

from hpwsn.http_json.responses import answer, check_names
from hpwsn_admin.members import Members
from hpwsn_admin.signed_requests import SignedRequests


class ClusterApi:
    """The request handlers."""

    def __init__(self, members: Members, signed: SignedRequests) -> None:
        self._members = members
        self._signed = signed

    def routes(self) -> list[web.RouteDef]:
        """The routes to add to the web application."""
        return [web.get("/cluster", self._signed.also(self._cluster))]

    async def _cluster(self, request: web.Request, body: bytes) -> web.Response:
        check_names(request)
        return answer(self.document(), 200)

    def document(self) -> dict[str, Any]:
        """The topology with ages of heartbeats, figures and links."""
        members, links = self._members, []
        document = members.topology.encode()
        for cluster in document["clusters"]:
            for node in cluster["nodes"]:
                age = members.heartbeat_age(node["name"])
                report = members.report(node["name"]) if node["state"] == "alive" else None
                node["heartbeat_age"] = None if age is None else round(age, 3)
                node["figures"] = None if report is None else dict(report.figures)
                if report is not None:
                    links += [{"from": node["name"], **asdict(link)} for link in report.links]
        return {**document, "links": links, "partial": None}
