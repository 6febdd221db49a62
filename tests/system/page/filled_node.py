"""A node with something to show in every view: topics, events, subscribers in each state, a service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
from page_pictures.services import REGISTRATION, TOPIC
from page_pictures.topics import TREE

from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.patience import eventually
from tests.webhooks import ask, create, listed, publish

NOWHERE = "http://127.0.0.1:9/erp"
SETTINGS = ("--name", "hall-1", "--set", "delivery.batch=1")
SERVICE = "urn:example:busiest"


@asynccontextmanager
async def filled_node(folder: Path) -> AsyncIterator[NodeProcess]:
    """It runs while the block does: two subscriptions retry, one is paused, one has dead letters."""
    tree = folder / "topics.toml"
    tree.write_text(TREE, "utf-8")
    async with Consumer() as good, Consumer(lambda number: 404) as refusing:
        with NodeProcess(folder / "data", "--topics", str(tree), *SETTINGS) as node:
            await _fill(node, good, refusing)
            yield node


async def _fill(node: NodeProcess, good: Consumer, refusing: Consumer) -> None:
    await create(node, good, topic="ALL:ALARM", filter="level > 0.5")
    paused = await create(node, good, topic="ALL:STATE")
    await ask("PATCH", paused, {"paused": True})
    await create(node, NOWHERE, topic="ALL:METER")
    full = {"maxQueue": 1, "overflow": "dead-letter"}
    await create(node, refusing, topic="ALL:ALARM:SMOKE", delivery=full)
    await publish(node, "ALL:ALARM:SMOKE", *({"place": f"hall {n}", "level": n / 8} for n in range(8)))
    await publish(node, "ALL:STATE:DOOR", {"door": "D1", "open": True})
    await publish(node, "ALL:METER:power", {"meter": "P7", "kwh": 4.5})
    await publish(node, TOPIC, {"camera": "c1", "flow": 24.5})
    url = f"{node.base}/streams/{SERVICE}"
    figures = {
        "batch": 3,
        "batch_seconds": 0.5,
        "rows_in": 100,
        "rows_out": 2,
        "rows_per_second": 20.0,
        "lag": 5,
    }
    async with (
        aiohttp.ClientSession() as session,
        session.put(url, json=REGISTRATION | {"figures": figures}) as answer,
    ):
        assert answer.status == 200, await answer.text()

    async def has_all_states() -> bool:
        counts = (await listed(node))["counts"]
        _, groups = await ask("GET", f"{node.base}/deadletters/groups")
        return bool(counts["retrying"] and counts["paused"] and groups["total"])

    await eventually(has_all_states)
