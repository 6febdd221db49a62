"""Changes between topologies."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.routing.topology.topology import (
    Cluster,
    MalformedTopology,
    Member,
    Topology,
    apply_changes,
    changes,
)


def cluster(name: str, nodes: dict[str, int]) -> Cluster:
    members = tuple(Member(f"{name}-{node}", name, "http://h", "h", port) for node, port in nodes.items())
    return Cluster(name, members[0].name if members else None, members)


_CLUSTERS = st.dictionaries(
    st.sampled_from("abcd"), st.dictionaries(st.sampled_from("xyz"), st.integers(1, 3), max_size=3)
)
_TOPOLOGIES = st.builds(
    lambda version, found: Topology(version, tuple(cluster(name, found[name]) for name in sorted(found))),
    st.integers(0, 9),
    _CLUSTERS,
)


@given(_TOPOLOGIES, _TOPOLOGIES)
def test_changes_lead_from_any_topology_to_any_other(before: Topology, after: Topology) -> None:
    change = json.loads(json.dumps(changes(before, after)))
    assert apply_changes(before, change) == after


def test_a_change_of_one_cluster_tells_that_one_alone() -> None:
    before = Topology(1, (cluster("a", {"x": 1}), cluster("b", {"x": 1}), cluster("c", {"x": 1})))
    after = Topology(2, (cluster("a", {"x": 1}), cluster("b", {"x": 2})))
    change = changes(before, after)
    assert [one["name"] for one in change["topology"]["clusters"]] == ["b"]
    assert change["gone"] == ["c"]


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"after": 2, "topology": {"version": 3, "clusters": []}},
        {"after": 1},
        {"after": 1, "topology": []},
        {"after": 1, "topology": {"version": 3, "clusters": []}, "gone": "a"},
    ],
)
def test_changes_of_another_topology_and_garbage_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(MalformedTopology):
        apply_changes(Topology(1), change)
