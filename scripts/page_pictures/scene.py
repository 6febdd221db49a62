"""The scene of the pictures: a cluster with traffic, subscribers in every state, and a stream service.

`plant(folder)` runs it. Everything is by real processes and requests, and repeats with the same seed, but for
times. A benchmark of the page can use it too.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from page_pictures.cluster import Cluster, Member, running_cluster
from page_pictures.services import serve
from page_pictures.subscribers import consumers, subscribe_all
from page_pictures.topics import SOURCES, TREE, Source

TURN = 0.25
"""Seconds between two requests of a publisher; what is rarer has one request for each event."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A running plant."""

    cluster: Cluster
    session: aiohttp.ClientSession

    async def get(self, member: Member, path: str) -> Any:
        """The JSON of an address of a member."""
        async with self.session.get(f"{member.base}{path}") as answer:
            answer.raise_for_status()
            return await answer.json()

    async def is_complete(self) -> bool:
        """Whether every state that the pictures show has come: retrying, dead letters, all nodes alive."""
        nodes = self.cluster.nodes
        listed = await self.get(nodes["hall-1"], "/subscriptions?limit=1")
        groups = await self.get(nodes["dock-1"], "/deadletters/groups")
        topology = await self.get(self.cluster.admin, "/api/topology")
        states = [node["state"] for cluster in topology["clusters"] for node in cluster["nodes"]]
        return listed["counts"]["retrying"] > 0 and groups["total"] >= 2 and states == ["alive"] * len(nodes)


@asynccontextmanager
async def plant(folder: Path, seed: int = 1, rate: float = 1.0) -> AsyncIterator[Scene]:
    """The scene while the block runs, its data below a folder; `rate` multiplies that of all publishers."""
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(running_cluster(folder, TREE))
        address = await stack.enter_async_context(consumers())
        session = await stack.enter_async_context(aiohttp.ClientSession())
        await subscribe_all(session, cluster.nodes, address)
        tasks = [
            asyncio.create_task(_publish(session, cluster.nodes, topic, source, random.Random(seed), rate))
            for topic, source in SOURCES.items()
        ]
        tasks.append(asyncio.create_task(serve(session, cluster.nodes["dock-1"].base, seed)))
        stack.push_async_callback(_ended, tasks)
        yield Scene(cluster, session)


async def _publish(
    session: aiohttp.ClientSession,
    nodes: Mapping[str, Member],
    topic: str,
    source: Source,
    chance: random.Random,
    rate: float,
) -> None:
    """Publish at the source's rate, until the node is gone; a request has the events of its turn."""
    url = f"{nodes[source.node].base}/topics/{topic}/events"
    turn = max(TURN, 1 / (source.rate * rate))
    size = max(1, round(source.rate * rate * turn))
    while True:
        events = [source.event(chance) for _ in range(size)]
        try:
            async with session.post(url, json=events) as answer:
                answer.raise_for_status()
        except aiohttp.ClientConnectionError:
            return
        await asyncio.sleep(turn * chance.uniform(0.8, 1.2))


async def _ended(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
