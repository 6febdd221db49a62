"""The topology as the Admin API writes it."""

import json

import pytest

from hpwsn.routing.topology.topology import MalformedTopology, Topology

DOCUMENT = {
    "version": 7,
    "clusters": [
        {
            "name": "north",
            "representative": "n1",
            "nodes": [
                {"name": "n1", "url": "http://a:1", "host": "a", "port": 1, "state": "alive", "since": 5.5},
                {"name": "n2", "url": "", "host": "b", "port": 2, "state": "dead", "since": 6},
            ],
        },
        {"name": "south", "representative": None, "nodes": []},
    ],
}


def changed(**fields: object) -> dict[str, object]:
    node = {"name": "n", "host": "h", "port": 1, **fields}
    return {"version": 1, "clusters": [{"name": "c", "representative": None, "nodes": [node]}]}


def test_a_topology_is_read_and_written_as_json() -> None:
    topology = Topology.parse(DOCUMENT)
    written = json.loads(json.dumps(topology.encode()))
    assert Topology.parse(written) == topology
    assert written["clusters"][0]["nodes"][0] == {**DOCUMENT["clusters"][0]["nodes"][0], "version": ""}  # type: ignore[index]


def test_it_knows_its_nodes_and_who_represents_them() -> None:
    topology = Topology.parse(DOCUMENT)
    assert [member.name for member in topology] == ["n1", "n2"]
    member, cluster = topology.member("n2"), topology.cluster_of("n2")
    assert member is not None and not member.alive and cluster is not None and cluster.name == "north"
    representative = topology.representative("north")
    assert representative is not None and representative.name == "n1"
    assert topology.representative("south") is None and topology.representative("west") is None
    assert topology.cluster_of("nobody") is None


def test_a_dead_node_represents_nobody() -> None:
    document = json.loads(json.dumps(DOCUMENT))
    document["clusters"][0]["representative"] = "n2"
    assert Topology.parse(document).representative("north") is None


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {"clusters": []},
        {"version": -1, "clusters": []},
        {"version": 1, "clusters": {}},
        {"version": 1, "clusters": [1]},
        {"version": 1, "clusters": [{"name": "", "nodes": []}]},
        {"version": 1, "clusters": [{"name": "c", "nodes": [{}]}]},
        {"version": 1, "clusters": [{"name": "c", "representative": "x", "nodes": []}]},
        {"version": 1, "clusters": [{"name": "c"}, {"name": "c"}]},
        changed(state="asleep"),
        changed(port=0),
        changed(port="1"),
        changed(since="today"),
        changed(name="a/b"),
        changed(name="x" * 256),
        changed(host=None),
    ],
)
def test_anything_else_is_refused_with_a_reason(document: object) -> None:
    with pytest.raises(MalformedTopology):
        Topology.parse(document)
