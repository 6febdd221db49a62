"""Subscribers in each state: live, paused, retrying, with dead letters; and a pull point."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web

from hpwsn_client import Client
from page_pictures.cluster import Member

REFUSED = "http://127.0.0.1:9/erp"
"""Where nobody listens."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A subscription to make: at which node, and what of which topic, for whom.

    `path` is that of a consumer here, whose first word says how it answers; or a whole address.
    """

    node: str
    topic: str
    path: str
    filter: str | None = None
    paused: bool = False
    delivery: Mapping[str, Any] = field(default_factory=dict)


WISHES: Sequence[Wish] = (
    Wish("hall-1", "ALL:ALARM", "takes/control-room"),
    Wish("hall-1", "ALL:ALARM:SMOKE", "takes/fire-brigade", "level > 0.6"),
    Wish("hall-1", "ALL:STATE:HVAC", "takes/climate"),
    Wish("hall-1", "ALL:STATE", "takes/twin", delivery={"batch": 64}),
    Wish("hall-1", "ALL:METER", REFUSED),
    Wish("hall-1", "ALL:STATE:DOOR", "slow/access-log"),
    Wish("hall-2", "ALL:STATE:LIGHT", "takes/lighting"),
    Wish("hall-2", "ALL:METER:water", "takes/billing", paused=True),
    Wish("hall-2", "ALL:STATE:HVAC", "takes/maintenance", "celsius > 22.5"),
    Wish("dock-1", "traffic:anpr", "takes/gate", "speed > 60"),
    Wish("dock-1", "traffic:flow", "fails/planner", delivery={"batch": 4}),
    Wish("dock-1", "ALL:ALARM:WATER", "gone/pumps", delivery={"batch": 1}),
)
SLOW = 0.4
"""Seconds that a slow consumer takes for an answer."""
STATUSES = {"takes": 204, "slow": 204, "fails": 500, "gone": 404}


@asynccontextmanager
async def consumers() -> AsyncIterator[str]:
    """The address of consumers that answer by the first word of the path, while the block runs."""

    async def take(request: web.Request) -> web.Response:
        await request.read()
        kind = request.match_info["kind"]
        if kind == "slow":
            await asyncio.sleep(SLOW)
        return web.Response(status=STATUSES[kind])

    app = web.Application(client_max_size=64 << 20)
    app.router.add_post("/{kind}/{name}", take)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def subscribe_all(
    session: aiohttp.ClientSession, nodes: Mapping[str, Member], address: str, wishes: Sequence[Wish] = WISHES
) -> None:
    """Make all subscriptions as webhooks, then a pull point with a SOAP subscription, which nobody reads."""
    for wish in wishes:
        callback = wish.path if wish.path.startswith("http") else f"{address}/{wish.path}"
        asked = {"topic": wish.topic, "callback": callback, "filter": wish.filter, "delivery": wish.delivery}
        async with session.post(f"{nodes[wish.node].base}/subscriptions", json=asked) as answer:
            answer.raise_for_status()
            url = (await answer.json())["url"]
        if wish.paused:
            async with session.patch(url, json={"paused": True}) as answer:
                answer.raise_for_status()
    async with Client(f"{nodes['hall-1'].base}/wsn") as client:
        await client.subscribe("ALL:ALARM", await client.create_pull_point())
