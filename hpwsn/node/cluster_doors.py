"""The doors between nodes: GET /cluster, the relay to other nodes, and the check of relayed requests.

A node without an admin node has them too: it shows itself, answers `/nodes/ITSELF/…`, and refuses relays.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web

from hpwsn.door.rest.operations.cluster import ClusterDoor
from hpwsn.node.node_parts import Parts
from hpwsn.routing.membership.credentials import shared_secret
from hpwsn.routing.membership.node_report import Figures
from hpwsn.routing.membership.signing import Verifier
from hpwsn.routing.relay.relay import Relay
from hpwsn.routing.relay.relayed_requests import RelayedRequests
from hpwsn.routing.topology.topology import Topology
from hpwsn_client import __version__


def open_cluster_doors(app: web.Application, parts: Parts, sample: Callable[[], Figures]) -> None:
    """Add the routes and the middleware to a node's web application; `sample` gives the node's figures."""
    config, cluster = parts.config, parts.cluster
    verifier = None
    if cluster is not None:
        # A request that was signed before this start may be a replay, since used nonces are not saved.
        verifier = Verifier(
            shared_secret(config.cluster), window=config.cluster.clock_window, began=time.time()
        )
    RelayedRequests(verifier, config.server.body_limit).join(app)
    Relay(
        parts.name,
        config,
        lambda: (cluster.topology if cluster else None) or Topology(),
        own=parts.name,
    ).join(app)
    door = ClusterDoor(lambda: _me(parts), sample, cluster)
    app.add_routes(door.routes())
    parts.live.source("topology", door.topology)


def _me(parts: Parts) -> dict[str, Any]:
    """This node as the topology lists it, with its cluster; a node without links has no port."""
    if parts.cluster and parts.cluster.me:
        return {**parts.cluster.me.encode(), "cluster": parts.cluster.me.cluster}
    url = parts.base_url()
    return {
        "name": parts.name,
        "cluster": parts.config.node.cluster or "default",
        "url": url,
        "host": urlsplit(url).hostname or "",
        "port": None,
        "version": __version__,
        "state": "alive",
        "since": parts.started,
    }
