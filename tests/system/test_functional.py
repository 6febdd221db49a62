"""The original's functional tests, by the names that its author gave them.

They run on nodes alone; and with an admin node, ActiveMQ and OpenLDAP up, as in the thesis, in the standard's
form and in the original's own. One set of processes serves all cases: n1 and n2 are in the cluster `one`, n3
in `two`, n4 in `three`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from hpwsn.topics.tree.declarations import Declaration
from hpwsn_client.wsn.topics.topic_expressions import Topic
from tests.activemq import ActiveMQ
from tests.cluster import AdminProcess, Member
from tests.functional_sites import Site, reaches, sites
from tests.harness import quiet_port
from tests.patience import PATIENCE, until
from tests.slapd import Slapd

FRAGMENT = 3000
PLACES = {"n1": "one", "n2": "one", "n3": "two", "n4": "three"}
THREE = ("n1", "n3", "n4")
TREE = ("ALL:ALARM:ALARM1", "ALL:OTHER", "ALL1", "ALL2", "ALL3")
SIZES = (2, 5, 10, 100)
"""Times the fragment size."""

Nodes = dict[str, Member]


@pytest.fixture(scope="module", params=["alone", "servers"])
def nodes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """Four nodes and their admin node: with embedded parts, or on ActiveMQ and OpenLDAP."""
    folder = tmp_path_factory.mktemp("functional")
    with ExitStack() as stack:
        extra: tuple[str, ...] = ()
        if request.param == "servers":
            broker: ActiveMQ = request.getfixturevalue("activemq")
            directory = stack.enter_context(Slapd(folder / "slapd"))
            directory.directory.replace([Declaration(Topic.parse(topic)) for topic in TREE])
            extra = ("--backbone", broker.url, "--topics", directory.url)
        admin = stack.enter_context(AdminProcess(folder / "admin"))
        # ActiveMQ serves other tests, too, whose nodes must not share a queue with these.
        own = uuid.uuid4().hex[:8]
        settings = ("--set", f"routing.fragment_size={FRAGMENT}", "--set", "routing.resend_after=1", *extra)
        found: Nodes = {}
        for name, cluster in PLACES.items():
            member = Member(folder / name, f"{name}-{own}", cluster, admin.base, *settings)
            found[name] = stack.enter_context(member)
        for node in found.values():
            until(lambda node=node: is_ready(node), node.log)  # type: ignore[misc]
            assert node.status()["backbone"]["kind"] == ("activemq" if extra else "embedded")
        assert set(admin.states().values()) == {"alive"}
        yield found


def is_ready(node: Member) -> bool:
    try:
        with urlopen(f"{node.base}/readyz", timeout=PATIENCE):
            return True
    except HTTPError as error:
        error.close()
        return False


@pytest.fixture(params=["standard", "original"])
def form(request: pytest.FixtureRequest) -> str:
    """The form of all messages."""
    chosen: str = request.param
    return chosen


def text_of(times: int) -> str:
    """Many times the fragment size, no part like another, with characters to escape and of several bytes."""
    size = FRAGMENT * times
    numbered = "".join(f"{number:06d} <&> 京B34C91 " for number in range(size // 20))
    return numbered.encode()[:size].decode(errors="ignore").rstrip()


async def subscribe_all(at: dict[str, Site], topics: dict[str, str]) -> None:
    """Subscribe everywhere to the topic of each place, until what is published at each reaches all."""
    for site in at.values():
        for topic in topics.values():
            await site.subscribe(topic)
    for name, topic in topics.items():
        await reaches(at[name], topic, *at.values())


def test_a_node_is_ready_once_it_has_backbone_topic_tree_and_registration(
    activemq: ActiveMQ, tmp_path: Path
) -> None:
    port = quiet_port()
    with Slapd(tmp_path / "slapd", "--example") as directory, ExitStack() as stack:
        servers = ("--backbone", activemq.url, "--topics", directory.url)
        name = f"first-{uuid.uuid4().hex[:8]}"
        node = Member(tmp_path / "data", name, "one", f"http://127.0.0.1:{port}", *servers)
        stack.enter_context(node)
        until(lambda: node.status()["backbone"]["state"] == "ready", node.log)
        assert node.status()["topics"] == 6
        assert not is_ready(node), "no admin node has taken it yet"
        admin = stack.enter_context(AdminProcess(tmp_path / "admin", port=port))
        until(lambda: is_ready(node), node.log)
        assert admin.states() == {name: "alive"}


async def test_functional_01_one_node_subscribe_all_publish_all_received(nodes: Nodes, form: str) -> None:
    async with sites(nodes, form, "n1") as at:
        await at["n1"].subscribe("ALL")
        await at["n1"].publish("ALL", "21.5")
        assert await at["n1"].get() == ("ALL", "21.5")


async def test_functional_02_three_clusters_each_subscriber_gets_all_three_topics(
    nodes: Nodes, form: str
) -> None:
    topics = dict(zip(THREE, ("ALL1", "ALL2", "ALL3"), strict=True))
    async with sites(nodes, form, *THREE) as at:
        await subscribe_all(at, topics)
        for name, topic in topics.items():
            await at[name].publish(topic, f"from {name}")
        expected = sorted((topic, f"from {name}") for name, topic in topics.items())
        for site in at.values():
            assert await site.gets(3) == expected


@pytest.mark.parametrize("reliable", [False, True], ids=["udp", "reliable"])
async def test_functional_03_two_nodes_fragments_whole_or_in_pieces(
    nodes: Nodes, form: str, reliable: bool
) -> None:
    async with sites(nodes, form, "n1", "n2") as at:
        here, there = at.values()
        for site in at.values():
            await site.subscribe("ALL")
        await reaches(here, "ALL", here, there)
        for times in SIZES:
            await whole_and_in_pieces(here, [there], "ALL", times, reliable)
        await here.publish("ALL", "end")
        assert [await site.get() for site in at.values()] == [("ALL", "end")] * 2


async def whole_and_in_pieces(
    here: Site, others: list[Site], topic: str, times: int, reliable: bool = False
) -> None:
    """Publish a large text: whole for all; then in pieces, which only subscribers at other nodes get."""
    text = text_of(times)
    await here.publish(topic, text, reliable=reliable)
    for site in (here, *others):
        assert await site.get() == (topic, text)
    await here.publish(topic, text, partial=True, reliable=reliable)
    assert await here.get() == (topic, text)
    for site in others:
        assert await site.take_pieces(topic, text) >= times


async def test_functional_04_three_clusters_three_topics_fragments_whole_or_in_pieces(
    nodes: Nodes, form: str
) -> None:
    topics = dict(zip(THREE, ("ALL1", "ALL2", "ALL3"), strict=True))
    async with sites(nodes, form, *THREE) as at:
        await subscribe_all(at, topics)
        for times in SIZES:
            for name, topic in topics.items():
                others = [site for other, site in at.items() if other != name]
                await whole_and_in_pieces(at[name], others, topic, times)


async def test_functional_05_an_ancestors_subscriber_gets_both_and_a_descendants_one(
    nodes: Nodes, form: str
) -> None:
    async with sites(nodes, form, "n1") as first, sites(nodes, form, "n1") as second:
        ancestor, descendant = first["n1"], second["n1"]
        await ancestor.subscribe("ALL")
        await descendant.subscribe("ALL:ALARM")
        await ancestor.publish("ALL", "1")
        await descendant.publish("ALL:ALARM", "2")
        await ancestor.publish("ALL:OTHER", "3")
        await ancestor.publish("ALL:ALARM", "4")
        expected = [("ALL", "1"), ("ALL:ALARM", "2"), ("ALL:OTHER", "3"), ("ALL:ALARM", "4")]
        assert [await ancestor.get() for _ in expected] == expected
        assert [await descendant.get() for _ in range(2)] == [("ALL:ALARM", "2"), ("ALL:ALARM", "4")]


async def test_functional_06_three_clusters_with_a_tree_of_topics(nodes: Nodes, form: str) -> None:
    topics = dict(zip(THREE, ("ALL", "ALL:ALARM", "ALL:ALARM:ALARM1"), strict=True))
    async with sites(nodes, form, *THREE) as at:
        for name, topic in topics.items():
            await at[name].subscribe(topic)
        for name in THREE:
            await reaches(at[name], "ALL:ALARM:ALARM1", *at.values())
        for name, topic in topics.items():
            await at[name].publish(topic, topic)
        got = {name: await at[name].gets(3 - number) for number, name in enumerate(THREE)}
        expected = [(topic, topic) for topic in topics.values()]
        assert got == {"n1": expected, "n3": expected[1:], "n4": expected[2:]}
        for name in THREE:
            await at[name].publish("ALL:ALARM:ALARM1", f"end {name}")
        ends = sorted(("ALL:ALARM:ALARM1", f"end {name}") for name in THREE)
        for site in at.values():
            assert await site.gets(3) == ends
