"""A node with a network of weather stations and virtual sensors, for the pictures of sensors.

Most stations report each second, with readings that checks refuse among them. A few became silent, some never
reported, and one is on demand and not wanted. Readers of their topics keep virtual sensors running.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from hpwsn.sensors.readings.reading_times import time_text
from hpwsn.sensors.simulation.sensor_faults import SensorFaults
from hpwsn.sensors.simulation.simulated_network import SimulatedNetwork, Simulation
from page_pictures.cluster import Member, lone_node

STATIONS = 42
NEVER = {7, 19}
"""Stations, by their place in the list, that never report."""
SILENT = {3, 11, 30}
"""Stations that report once."""
ON_DEMAND = 24
FAULTS = SensorFaults(spikes=0.01, duplicates=0.01)
VIRTUAL: Mapping[str, Mapping[str, Any]] = {
    "gusts": {
        "kind": "weather",
        "tags": ["roof"],
        "quantity": "wind",
        "combine": "max",
        "every": "2s",
        "lateness": "3s",
        "quorum": 10,
        "outliers": 6,
        "hysteresis": 0.1,
        "bands": [
            {"name": "breeze", "high": 8.6},
            {"name": "fresh", "low": 8.6, "high": 9.2},
            {"name": "strong", "low": 9.2},
        ],
        "text": "Wind on the roofs: {states}, {value} {unit}",
    },
    "warmth": {
        "kind": "weather",
        "tags": ["city"],
        "quantity": "temperature",
        "every": "5s",
        "lateness": "3s",
    },
    "pressure": {"kind": "weather", "quantity": "pressure", "combine": "median", "every": "1min"},
}
"""What runs, and at last one that nobody uses."""


@asynccontextmanager
async def sensor_field(folder: Path, seed: int = 1) -> AsyncIterator[Member]:
    """The node while the block runs, its data below a folder."""
    async with AsyncExitStack() as stack:
        node = await stack.enter_async_context(lone_node(folder, "field-1"))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        network = SimulatedNetwork(Simulation("weather", STATIONS, seed, faults=FAULTS))
        await _register(session, node.base, network)
        running = [name for name in VIRTUAL if name != "pressure"]
        tasks = [asyncio.create_task(_use(session, node.base, name)) for name in running]
        tasks.append(asyncio.create_task(_report(session, node.base, network)))
        stack.push_async_callback(_ended, tasks)
        yield node


async def _register(session: aiohttp.ClientSession, base: str, network: SimulatedNetwork) -> None:
    stations = []
    for number, station in enumerate(network.sensors):
        tags = ["city" if number % 3 else "airport", "roof" if number % 2 else "mast"]
        own = {"tags": tags, "owner": "Weather service", "gateway": f"gw-{number % 4 + 1}"}
        stations.append({**station.document(), **own, "on_demand": number == ON_DEMAND})
    async with session.post(f"{base}/sensors", json=stations) as answer:
        answer.raise_for_status()
    for name, template in VIRTUAL.items():
        async with session.put(f"{base}/virtual/{name}", json=template) as answer:
            answer.raise_for_status()


async def _report(session: aiohttp.ClientSession, base: str, network: SimulatedNetwork) -> None:
    """Post what the stations send each second, until the node is gone."""
    quiet = {network.sensors[number].id for number in {*NEVER, ON_DEMAND}}
    once = {network.sensors[number].id for number in SILENT}
    begin = round(time.time() * 1000)
    batch: list[dict[str, Any]] = []
    for reading in network.readings(begin):
        if reading.sensor in quiet:
            continue
        batch.append({"sensor": reading.sensor, "time": time_text(reading.time), **reading.values})
        if len(batch) < STATIONS:
            continue
        await asyncio.sleep(max(0.0, reading.time / 1000 - time.time()))
        try:
            async with session.post(f"{base}/readings", json=batch) as answer:
                await answer.read()
        except aiohttp.ClientConnectionError:
            return
        quiet |= once
        batch = []


async def _use(session: aiohttp.ClientSession, base: str, name: str) -> None:
    """Read the events of a virtual sensor."""
    headers = {"Accept": "text/event-stream"}
    patience = aiohttp.ClientTimeout(total=None)
    try:
        async with session.get(
            f"{base}/topics/virtual:{name}/events", headers=headers, timeout=patience
        ) as answer:
            async for _ in answer.content:
                pass
    except aiohttp.ClientError:
        return


async def _ended(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
