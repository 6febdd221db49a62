"""A stream service as its job shows it to a node: registration, plan, figures and events, without Spark."""

from __future__ import annotations

import asyncio
import random
from typing import Any
from urllib.parse import quote

import aiohttp

URI = "urn:example:busiest"
HEARTBEAT = 5.0
TOPIC = "traffic:busiest"
REGISTRATION: dict[str, Any] = {
    "topic": TOPIC,
    "instance": "checkpoint-1",
    "description": "Cameras with the most vehicles a minute",
    "attributes": {"camera": "string", "flow": "double", "time": "timestamp"},
    "constraints": {"flow": "> 20"},
    "inputs": {"plates": "topic traffic:anpr", "cameras": "files cameras.csv"},
    "plan": [
        {"op": "filter", "inputs": ["plates"], "text": "filter speed > 0"},
        {"op": "count", "inputs": [0], "text": "count by camera over 1 minute, every 10 s"},
        {"op": "join", "inputs": [1, "cameras"], "text": "join with cameras on camera"},
        {"op": "filter", "inputs": [2], "text": "filter flow > 20"},
    ],
}


async def serve(session: aiohttp.ClientSession, base: str, seed: int = 1) -> None:
    """Register again and again, as a job does, and publish what the service finds; never returns."""
    chance, batch = random.Random(seed), 0
    while True:
        batch += 1
        rows = chance.randint(80, 120)
        figures = {
            "batch": batch,
            "batch_seconds": round(chance.uniform(0.3, 0.6), 2),
            "rows_in": rows,
            "rows_out": 2,
            "rows_per_second": round(rows / HEARTBEAT, 1),
            "lag": chance.randint(0, 30),
            "backlog": 30,
            "state_rows": 8,
            "state_bytes": 4096,
        }
        url = f"{base}/streams/{quote(URI, safe='')}"
        async with session.put(url, json={**REGISTRATION, "figures": figures}) as answer:
            answer.raise_for_status()
        for _ in range(int(HEARTBEAT)):
            event = {"camera": f"c{chance.randint(1, 8)}", "flow": round(chance.gauss(28, 3), 1)}
            async with session.post(f"{base}/topics/{TOPIC}/events", json=event) as answer:
                answer.raise_for_status()
            await asyncio.sleep(1)
