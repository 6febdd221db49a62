"""Carriers and a cluster: its nodes carry what they accepted, and share what carriers bring."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from hpwsn.dtn.bundles.bundle_format import parse_bundle
from tests.cluster import SECRET, AdminProcess
from tests.islands import KEY, Island, collect, deliver, outcome
from tests.patience import PATIENCE, until
from tests.raw_soap import call, subscribe

TOPIC = "weather"
Nodes = tuple[Island, Island, Island]


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    """Two nodes of a cluster, of which the second one has a subscriber, and an island."""
    with ExitStack() as stack:
        admin = stack.enter_context(AdminProcess(tmp_path / "admin"))
        members = []
        for name in ("field", "office"):
            member = Island(tmp_path, name)
            joining = ("--cluster", "plant", "--admin", admin.base)
            settings = (f"--set=cluster.secret={SECRET}", f"--set=cluster.start_wait={PATIENCE}")
            member.arguments = (*member.arguments, *joining, *settings)
            members.append(stack.enter_context(member))
        yield members[0], members[1], stack.enter_context(Island(tmp_path, "summit"))


async def linked(field: Island, office: Island) -> int:
    """Subscribe at the office, and wait until events of the field arrive there; how many were published."""
    address = (await call(office.url, "<w:CreatePullPoint/>")).text("w:PullPoint/a:Address")
    await call(office.url, subscribe(address, TOPIC))
    published = 0

    def arrives() -> bool:
        nonlocal published
        field.publish(TOPIC, published)
        published += 1
        return bool(office.values(TOPIC))

    until(arrives)
    return published


async def test_events_are_carried_from_the_node_that_accepted_them(nodes: Nodes, tmp_path: Path) -> None:
    field, office, summit = nodes
    published = await linked(field, office)
    file = tmp_path / "file"
    assert collect(office, file, "summit")["events"] == 0
    office.kill()
    office.start()
    assert collect(office, file, "summit")["events"] == 0
    assert collect(field, file, "summit")["events"] == published
    bundle = parse_bundle(file.read_bytes(), KEY.encode())
    until(lambda: community(field, file) == 2)
    assert deliver(summit, file) == outcome(published=published)
    assert bundle.maker.name == "field"


def community(node: Island, file: Path) -> int:
    """The size of the node's community, as its bundles say."""
    collect(node, file, "summit")
    bundle = parse_bundle(file.read_bytes(), KEY.encode())
    return bundle.sizes[bundle.maker]


async def test_what_a_carrier_and_a_link_bring_is_published_once(nodes: Nodes, tmp_path: Path) -> None:
    field, office, summit = nodes
    await linked(field, office)
    before = office.values(TOPIC)
    summit.publish(TOPIC, "carried", "twice")
    file = tmp_path / "file"
    collect(summit, file, "field")
    assert deliver(field, file) == outcome(published=2)
    until(lambda: "twice" in office.values(TOPIC), lambda: str(office.values(TOPIC)))
    assert deliver(office, file) == outcome(repeated=2)
    later = [value for value in office.values(TOPIC) if isinstance(value, str)]
    assert later == ["carried", "twice"]
    assert office.values(TOPIC)[: len(before)] == before
    # The office has them by a link, so the field carries them on.
    assert collect(field, file, "coast")["events"] > collect(office, file, "coast")["events"] == 0
