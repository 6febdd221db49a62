"""A cluster split in two and healed, with real processes on hosts of their own (tests/hosts.py).

The admin node, a and b are on the left, c and d on the right; subscribers are at b and d.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hpwsn_client import Client, Receiver
from tests.cluster import AdminProcess, Member
from tests.hosts import Hosts, Side, two_places
from tests.patience import PATIENCE

pytestmark = pytest.mark.needs_root

PLACES: dict[str, Side] = {"a": "left", "b": "left", "c": "right", "d": "right"}
COUNT = 30


@dataclass
class Subscriber:
    """What came to it, by topic and payload."""

    receiver: Receiver
    got: Counter[tuple[str, str]] = field(default_factory=Counter)

    async def has(self, *wanted: tuple[str, str]) -> None:
        """Wait until each of these has come."""
        while not all(each in self.got for each in wanted):
            received = await self.receiver.get(timeout=PATIENCE)
            self.got[str(received.topic), received.payload.decode()] += 1


@dataclass
class Cluster:
    """The processes, a client of each node, and the two subscribers."""

    hosts: Hosts
    admin: AdminProcess
    nodes: dict[str, Member]
    clients: dict[str, Client]
    subscribers: dict[Side, Subscriber]

    async def publish(self, node: str, topic: str) -> list[tuple[str, str]]:
        """Publish some at a node, reliably; what a subscriber will see of them."""
        payloads = [f"<n>{topic} {number}</n>" for number in range(COUNT)]
        for payload in payloads:
            await self.clients[node].notify(f"S:{topic}", payload, reliable=True)
        return [(f"S:{topic}", payload) for payload in payloads]

    async def flows(self, node: str, mark: str) -> None:
        """Publish best-effort probes at a node until both subscribers have one."""
        probe = ("S:probe", f"<n>{mark} from {node}</n>")
        for subscriber in self.subscribers.values():
            coming = asyncio.create_task(subscriber.has(probe))
            while not coming.done():
                await self.clients[node].notify(*probe)
                await asyncio.wait([coming], timeout=0.1)
            await coming

    def versions(self) -> set[int]:
        """The topologies that the admin node and its nodes have."""
        told = {node.status()["cluster"]["topology_version"] for node in self.nodes.values()}
        return {self.admin.topology()["version"], *told}


@asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[Cluster]:
    async with AsyncExitStack() as stack:
        hosts = await stack.enter_async_context(two_places())
        admin = stack.enter_context(hosts.admin(folder))
        nodes, clients, subscribers = {}, {}, {}
        for name, side in PLACES.items():
            nodes[name] = node = await hosts.member(folder, name, side, "--set", "routing.resend_after=1")
            stack.callback(node.close)
            await asyncio.to_thread(node.start)
            clients[name] = await stack.enter_async_context(Client(node.url))
        for name in ("b", "d"):
            side = PLACES[name]
            receiver = await stack.enter_async_context(Receiver(hosts.address(side)))
            await clients[name].subscribe("S", receiver)
            subscribers[side] = Subscriber(receiver)
        yield Cluster(hosts, admin, nodes, clients, subscribers)


async def test_a_cluster_split_in_two_goes_on_in_both_halves_and_is_one_again_when_healed(
    tmp_path: Path,
) -> None:
    async with cluster(tmp_path) as one:
        left, right = one.subscribers["left"], one.subscribers["right"]
        for node in ("a", "c"):
            await one.flows(node, "whole")

        one.hosts.cut()
        from_a = await one.publish("a", "a")
        from_c = await one.publish("c", "c")
        await left.has(*from_a)
        await right.has(*from_c)
        split = {"a": "alive", "b": "alive", "c": "dead", "d": "dead"}
        await one.admin.comes_to(lambda: one.admin.states() == split)
        if one.hosts.silent:
            assert "its host does not answer" in one.admin.log()
        late_a = await one.publish("a", "late-a")
        late_c = await one.publish("c", "late-c")
        assert not {*from_c, *late_c} & left.got.keys()
        assert not {*from_a, *late_a} & right.got.keys()

        one.hosts.heal()
        sent = [*from_a, *from_c, *late_a, *late_c]
        await asyncio.gather(left.has(*sent), right.has(*sent))
        await one.admin.comes_to(lambda: set(one.admin.states().values()) == {"alive"})
        await one.admin.comes_to(lambda: len(one.versions()) == 1)
        assert one.admin.representative("one") == "a"
        for node in PLACES:
            await one.flows(node, "healed")
        for subscriber in (left, right):
            assert {each: subscriber.got[each] for each in sent} == dict.fromkeys(sent, 1)
