"""The part of the admin node's API that is for everybody: topology, status, topics, cluster.

/openapi.json and docs/cluster.md describe it. Read requests need no signature. An error response is a JSON
object with `error`, a message for the operator. The topic tree is read-only here: `hpwsn topics` edits it,
and nodes read the topic directory themselves.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from aiohttp import web

from hpwsn.http_json.responses import answer
from hpwsn.page.page_door import page_or
from hpwsn.topics.directory.directory import TopicDirectoryError
from hpwsn_admin.directory_topics import Topics
from hpwsn_admin.members import Members
from hpwsn_admin.openapi import document
from hpwsn_client import __version__

LONGEST_WAIT = 60.0

_Value = TypeVar("_Value")


class AdminApi:
    """The request handlers of an admin node."""

    def __init__(self, members: Members, topics: Topics, base_url: Callable[[], str]) -> None:
        self._members = members
        self._topics = topics
        self._base_url = base_url
        self._started = time.time()

    def routes(self) -> list[web.RouteDef]:
        """The routes to add to the web application."""
        return [
            web.get("/", page_or(self._welcome)),
            web.get("/healthz", self._health),
            web.get("/openapi.json", self._describe),
            web.get("/api/status", self._status),
            web.get("/api/topology", self._topology),
            web.get("/api/topics", self._tree),
        ]

    async def _welcome(self, request: web.Request) -> web.Response:
        base = self._base_url()
        return web.Response(
            text=f"HPwsn {__version__}: the admin node of a cluster.\n"
            f"topology {base}/api/topology\nstatus   {base}/api/status\ncluster  {base}/cluster\n"
            f"contract {base}/openapi.json\n"
        )

    async def _health(self, request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _describe(self, request: web.Request) -> web.Response:
        return web.json_response(document(self._base_url()))

    async def _status(self, request: web.Request) -> web.Response:
        return web.json_response(self.status())

    def status(self) -> dict[str, Any]:
        """The numbers of clusters and nodes."""
        topology = self._members.topology
        states = [member.state for member in topology]
        return {
            "version": __version__,
            "uptime": round(time.time() - self._started, 3),
            "topology": topology.version,
            "heartbeat": self._members.registry.heartbeat,
            "clusters": len(topology.clusters),
            "nodes": {state: states.count(state) for state in ("alive", "dead", "left")},
        }

    async def _topology(self, request: web.Request) -> web.Response:
        """The topology; with `after`, wait up to `wait` seconds for another version."""
        try:
            after = _number(request, "after", int)
            wait = min(_number(request, "wait", float) or 0.0, LONGEST_WAIT)
        except ValueError as error:
            return answer({"error": str(error)}, 400)
        if after is not None:
            await self._members.wait_for_change(after, wait)
        return web.Response(body=self._members.text, content_type="application/json")

    async def _tree(self, request: web.Request) -> web.Response:
        if not self._topics.known:
            return answer({"error": "this admin node has no topic directory; start it with --topics"}, 404)
        try:
            return web.json_response({"topics": await self._topics.tree()})
        except TopicDirectoryError as error:
            return answer({"error": str(error)}, 503)


def _number(request: web.Request, name: str, kind: Callable[[str], _Value]) -> _Value | None:
    text = request.query.get(name)
    if text is None:
        return None
    try:
        value = kind(text)
    except ValueError:
        value = None
    if value is None or not 0 <= value < 2**63:  # type: ignore[operator]
        raise ValueError(f"{name} is {text[:40]!r}; give a number of 0 or more")
    return value
