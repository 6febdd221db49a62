"""By which link a notification goes: UDP in a cluster, TCP between clusters, unless its topic says otherwise.

The figures of the publisher's node tell it. n1 represents the cluster `one`, n3 is alone in `two`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster import AdminProcess, Member
from tests.functional_sites import reaches, sites

TREE = """
[topics.PLAIN]
[topics.BYTCP]
routing = "tcp"
[topics.BYUDP]
routing = "udp"
"""
COUNT = 40


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Member]]:
    """Two nodes of one cluster, and one of another, with a policy for some topics."""
    folder = tmp_path_factory.mktemp("policy")
    tree = folder / "topics.toml"
    tree.write_text(TREE)
    with ExitStack() as stack:
        admin = stack.enter_context(AdminProcess(folder / "admin"))
        yield {
            name: stack.enter_context(_member(folder, name, cluster, admin.base, tree))
            for name, cluster in (("n1", "one"), ("n2", "one"), ("n3", "two"))
        }


def _member(folder: Path, name: str, cluster: str, admin: str, tree: Path) -> Member:
    return Member(folder / name, name, cluster, admin, "--topics", str(tree))


def sent(node: Member) -> dict[str, int]:
    """The messages that a node has sent so far by each kind of link."""
    routing = node.status()["routing"]
    return {kind: routing[kind]["messages_sent"] for kind in ("udp", "tcp")}


@pytest.mark.parametrize(
    ("topic", "to", "reliable", "link"),
    [
        ("PLAIN", "n2", False, "udp"),
        ("BYUDP", "n2", False, "udp"),
        ("BYTCP", "n2", False, "tcp"),
        ("PLAIN", "n3", False, "tcp"),
        ("BYTCP", "n3", False, "tcp"),
        ("BYUDP", "n3", False, "udp"),
        ("PLAIN", "n2", True, "tcp"),
        ("BYUDP", "n2", True, "tcp"),
        ("BYUDP", "n3", True, "tcp"),
    ],
)
async def test_the_link_follows_cluster_and_policy_and_reliable_goes_by_tcp_whatever_they_say(
    nodes: dict[str, Member], topic: str, to: str, reliable: bool, link: str
) -> None:
    async with sites(nodes, "standard", "n1", to) as at:
        await at[to].subscribe(topic)
        await reaches(at["n1"], topic, at[to])
        before = sent(nodes["n1"])
        texts = [f"{topic} {number}" for number in range(COUNT)]
        for text in texts:
            await at["n1"].publish(topic, text, reliable=reliable)
        assert sorted([await at[to].get() for _ in texts]) == sorted((topic, text) for text in texts)
        more = {kind: count - before[kind] for kind, count in sent(nodes["n1"]).items()}
    assert more[link] > 0
    # Over TCP nodes also tell each other what they want; over UDP there are publications only.
    assert (more["udp"] > 0) is (link == "udp")
