"""The topology as one node sees it: who is waited for."""

import pytest

from hpwsn.routing.topology.cluster_view import Viewer
from hpwsn.routing.topology.topology import Topology

NOON = 1_800_000_000.0


def topology(since: float) -> Topology:
    """`me` is there, `peer` of its cluster and all of another one left at that time."""

    def node(name: str, state: str) -> dict[str, object]:
        return {"name": name, "host": "h", "port": 1, "state": state, "since": since}

    return Topology.parse(
        {
            "version": 1,
            "clusters": [
                {"name": "a", "representative": "me", "nodes": [node("me", "alive"), node("peer", "left")]},
                {"name": "b", "representative": None, "nodes": [node("other", "left")]},
            ],
        }
    )


@pytest.mark.parametrize(("ago", "waits"), [(1.0, True), (59.9, True), (60.1, False), (86_000.0, False)])
def test_a_node_that_starts_waits_for_those_who_left_just_before(ago: float, waits: bool) -> None:
    viewer = Viewer("me", dead_grace=60.0)
    view = viewer.topology_changed(topology(NOON - ago), 5.0, NOON)
    assert view.in_grace == ({"peer"} if waits else set())
    assert set(view.others) == ({"b"} if waits else set())


def test_it_does_not_wait_for_them_longer_than_for_the_dead() -> None:
    viewer = Viewer("me", dead_grace=60.0)
    viewer.topology_changed(topology(NOON - 1), 5.0, NOON)
    assert viewer.tick(64.0) is None
    view = viewer.tick(65.0)
    assert view is not None
    assert not view.in_grace and not view.others
    again = viewer.topology_changed(topology(NOON - 1), 66.0, NOON + 61)
    assert not again.in_grace and not again.others
