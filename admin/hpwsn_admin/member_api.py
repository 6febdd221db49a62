"""The part of the admin node's API that is for nodes: registration, heartbeats, the topology, leaving.

All requests must be signed with the cluster secret. A heartbeat may carry a report of the node about itself
(hpwsn.routing.membership.node_report).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from hpwsn.monitoring.node_history import FIGURES
from hpwsn.routing.membership.node_report import MalformedReport, parse_report
from hpwsn.routing.membership.signing import InvalidSignature
from hpwsn.routing.topology.topology import MalformedTopology
from hpwsn_admin.announcements import parse_announcement
from hpwsn_admin.members import Members
from hpwsn_admin.registry import NameTaken, NotRegistered, Record, RegistryError, RegistryFull
from hpwsn_admin.signed_requests import Handler, SignedRequests

log = logging.getLogger(__name__)

_STATUS: dict[type[Exception], int] = {
    NameTaken: 409,
    NotRegistered: 404,
    RegistryFull: 503,
    RegistryError: 409,
    MalformedTopology: 400,
    MalformedReport: 400,
}


class MemberApi:
    """The request handlers for nodes."""

    def __init__(self, members: Members, signed: SignedRequests) -> None:
        self._members = members
        self._signed = signed
        self.closing = False

    def routes(self) -> list[web.RouteDef]:
        """The routes to add to the web application."""
        return [
            web.post("/api/nodes", self._of(self._register)),
            web.put("/api/nodes/{name}/heartbeat", self._of(self._heartbeat)),
            web.post("/api/nodes/{name}/suspect", self._of(self._suspect)),
            web.delete("/api/nodes/{name}", self._of(self._leave)),
            web.get("/api/nodes/{name}/stream", self._stream),
        ]

    def _of(self, handler: Callable[[web.Request, bytes], Awaitable[dict[str, Any]]]) -> Handler:
        async def handle(request: web.Request, body: bytes) -> web.Response:
            try:
                return web.json_response(await handler(request, body))
            except (RegistryError, MalformedTopology, MalformedReport) as error:
                return web.json_response({"error": str(error)}, status=_STATUS[type(error)])

        return self._signed.only(handle)

    async def _register(self, request: web.Request, body: bytes) -> dict[str, Any]:
        announcement = parse_announcement(body, request.remote or "")
        record = await self._members.register(announcement)
        log.info("node %s of cluster %s registered at %s", record.name, record.cluster, record.url)
        registry = self._members.registry
        return {
            "heartbeat": registry.heartbeat,
            "missed": registry.missed,
            "topology": self._members.topology.encode(),
        }

    async def _heartbeat(self, request: web.Request, body: bytes) -> dict[str, Any]:
        report = parse_report(body, FIGURES)
        self._members.heartbeat(request.match_info["name"], request.query.get("session", ""), report)
        return {"topology": self._members.topology.version}

    async def _leave(self, request: web.Request, body: bytes) -> dict[str, Any]:
        self._members.leave(request.match_info["name"], request.query.get("session", ""))
        return {}

    async def _suspect(self, request: web.Request, body: bytes) -> dict[str, Any]:
        record = self._members.registry.find(request.match_info["name"])
        if record is None:
            raise NotRegistered(request.match_info["name"])
        if record.alive:
            self._members.probe(record)
        return {}

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        """Send the topology now and at each change, and a beat after each heartbeat interval without one."""
        try:
            nonce = self._signed.check(request, b"")
            record = self._members.live(request.match_info["name"], request.query.get("session", ""))
        except InvalidSignature as error:
            return self._signed.refuse(request, error)
        except NotRegistered as error:
            return self._signed.sign(nonce, web.json_response({"error": str(error)}, status=404))
        stream = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        await stream.prepare(request)
        try:
            await self._push(stream, record, nonce, _known_version(request))
        finally:
            # A stream that ends is a hint that the node has died, unless this process is stopping.
            if not self.closing:
                self._members.probe(record)
        return stream

    async def _push(self, stream: web.StreamResponse, record: Record, nonce: str, sent: int | None) -> None:
        number, members = 0, self._members
        while members.registry.find(record.name) is record:
            version = members.topology.version
            await stream.write(self._signed.sign_line(nonce, number, members.update_since(sent)))
            sent, number = version, number + 1
            await members.wait_for_change(sent, members.registry.heartbeat)


def _known_version(request: web.Request) -> int | None:
    """The topology version that the node already has; None if it gives none."""
    text = request.query.get("after", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
