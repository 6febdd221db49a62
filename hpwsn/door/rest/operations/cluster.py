"""GET /cluster: the topology, the age of each heartbeat, the figures of all nodes, the traffic of links.

The admin node knows these from heartbeats; this node asks it, and remembers the answer for a second, or until
the topology changes. If the admin node does not answer, the last topology is shown with what this node knows
about itself, and `partial` says what is missing. A node without an admin node shows itself.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import Any, Protocol

from aiohttp import web

from hpwsn.door.rest.json_answers import answer, answers_in_json, check_names
from hpwsn.errors import HpwsnError
from hpwsn.routing.links.link_traffic import LinkReport
from hpwsn.routing.topology.topology import Cluster, Member, Topology

REMEMBERED = 1.0
"""Seconds for which an answer of the admin node is used again."""
ASK_WITHIN = 2.0
"""Seconds within which the admin node must answer."""

Document = dict[str, Any]


class Membership(Protocol):
    """What a node in a cluster knows about the cluster."""

    @property
    def topology(self) -> Topology | None:
        """The last topology; None before the first."""

    def links(self) -> tuple[LinkReport, ...]:
        """The traffic of the links on which this node sends."""

    def ask(self, path: str, *, timeout_seconds: float) -> Awaitable[Document]:
        """The admin node's answer to a GET; HpwsnError without one."""


class ClusterDoor:
    """The request handler; `me` is this node as it would be listed, without a port if it has no links."""

    def __init__(
        self,
        me: Callable[[], Document],
        figures: Callable[[], Mapping[str, float | None]],
        membership: Membership | None,
    ) -> None:
        self._me = me
        self._figures = figures
        self._membership = membership
        self._asking = asyncio.Lock()
        self._remembered: tuple[float, Document] | None = None

    def routes(self) -> list[web.RouteDef]:
        """Return the routes for the node's web application."""
        return [web.get("/cluster", self._cluster)]

    @answers_in_json
    async def _cluster(self, request: web.Request) -> web.Response:
        check_names(request)
        return answer(await self.document(), 200)

    async def document(self) -> Document:
        """Return the cluster as /cluster shows it."""
        if self._membership is None:
            return self._alone()
        async with self._asking:
            if self._remembered is None or self._is_old(*self._remembered, self._membership.topology):
                self._remembered = time.monotonic(), await self._ask(self._membership)
            return self._remembered[1]

    def _is_old(self, asked: float, document: Document, known: Topology | None) -> bool:
        """Whether an answer is too old, or shows an earlier topology than this node has."""
        outdated = known is not None and int(document.get("version", 0)) < known.version
        return outdated or time.monotonic() - asked > REMEMBERED

    def topology(self) -> Document:
        """The last topology in the form of the admin node's, or this node alone; it needs no request."""
        known = self._membership.topology if self._membership else None
        if known is not None:
            return known.encode()
        me = self._me()
        cluster = {"name": me.pop("cluster"), "representative": me["name"], "nodes": [me]}
        return {"version": 0, "clusters": [cluster]}

    async def _ask(self, membership: Membership) -> Document:
        try:
            return await membership.ask("/cluster", timeout_seconds=ASK_WITHIN)
        except HpwsnError as error:
            return self._partial(membership, str(error))

    def _alone(self) -> Document:
        document = self.topology()
        document["clusters"][0]["nodes"][0] |= {"heartbeat_age": None, "figures": dict(self._figures())}
        return {**document, "links": [], "partial": None}

    def _partial(self, membership: Membership, reason: str) -> Document:
        me = self._me()
        topology = membership.topology or Topology()
        if topology.member(me["name"]) is None:
            topology = _with_node(topology, me)
        document = topology.encode()
        for cluster in document["clusters"]:
            for node in cluster["nodes"]:
                node["heartbeat_age"] = None
                node["figures"] = dict(self._figures()) if node["name"] == me["name"] else None
        return {
            **document,
            "links": [{"from": me["name"], **asdict(link)} for link in membership.links()],
            "partial": f"{reason}; this is the last topology, with the figures and links of this node only",
        }


def _with_node(topology: Topology, me: Document) -> Topology:
    """The topology with this node, which is not registered yet."""
    member = Member(me["name"], me["cluster"], me["url"], me["host"], me["port"], me["version"])
    found = topology.cluster(member.cluster)
    nodes = (*(found.nodes if found else ()), member)
    mine = Cluster(member.cluster, found.representative if found else None, nodes)
    others = [cluster for cluster in topology.clusters if cluster.name != member.cluster]
    return Topology(topology.version, tuple(sorted((*others, mine), key=lambda each: each.name)))
