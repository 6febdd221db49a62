"""What differs between two topologies, for those who have the first: whole clusters, changed or gone. Pure.

A cluster is told whole, since it is small and its order and representative change with it; the rest of a
large topology is not sent, and not parsed, for the sake of one node.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hpwsn.routing.topology import MalformedTopology, Topology


def changes(before: Topology, after: Topology) -> dict[str, Any]:
    """What to tell one who has `before`, so that it has `after`."""
    changed = [one for one in after.clusters if before.cluster(one.name) != one]
    gone = [one.name for one in before.clusters if after.cluster(one.name) is None]
    return {
        "after": before.version,
        "topology": Topology(after.version, tuple(changed)).encode(),
        "gone": gone,
    }


def apply_changes(before: Topology, told: Mapping[str, Any]) -> Topology:
    """The topology after the changes; MalformedTopology where they are changes of another."""
    if told.get("after") != before.version:
        raise MalformedTopology(f"these are changes of version {told.get('after')}, not of {before.version}")
    gone = told.get("gone", [])
    if not isinstance(gone, list):
        raise MalformedTopology("'gone' is a list of names of clusters")
    partly = Topology.parse(told.get("topology"))
    left = {one.name: one for one in before.clusters if one.name not in gone}
    left.update((one.name, one) for one in partly.clusters)
    return Topology(partly.version, tuple(left[name] for name in sorted(left)))
