"""GET /cluster at the admin node, which knows all nodes by their heartbeats, and DELETE /nodes/NAME.

A node that asks for /cluster signs its request, and gets a signed answer. A node that is not alive has no
figures and no links: what it said last is no longer true. An operator may remove such a node, unsigned; a
node that is alive cannot be removed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from aiohttp import web

from hpwsn.http_json.client_session import ANONYMOUS
from hpwsn.http_json.responses import answer, check_names
from hpwsn_admin.members import Members
from hpwsn_admin.registry import NotRegistered, RegistryError
from hpwsn_admin.signed_requests import SignedRequests
from hpwsn_client.wsn.topics.topic import shown

Note = Callable[[str, str, str], None]


class ClusterApi:
    """The request handlers; `note` adds an event to the log: its kind, its text, and who did it."""

    def __init__(self, members: Members, signed: SignedRequests, note: Note) -> None:
        self._members = members
        self._signed = signed
        self._note = note

    def routes(self) -> list[web.RouteDef]:
        """The routes to add to the web application."""
        return [
            web.get("/cluster", self._signed.also(self._cluster)),
            web.delete("/nodes/{name}", self._forget),
        ]

    async def _forget(self, request: web.Request) -> web.Response:
        """Remove a node that is dead or has left; the topology without it is published when this answers."""
        check_names(request)
        name = request.match_info["name"]
        try:
            self._members.leave(name, session="")
        except NotRegistered:
            return answer({"error": f"no node is named {shown(name)}; GET /cluster lists the nodes"}, 404)
        except RegistryError as error:
            return answer({"error": str(error)}, 409)
        self._note("action", f"DELETE {request.rel_url.raw_path}", ANONYMOUS)
        await self._members.wait_until_published()
        return web.Response(status=204)

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
