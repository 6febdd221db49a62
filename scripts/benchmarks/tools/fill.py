"""Publishes REQUESTS of MESSAGES each: `python -m benchmarks.tools.fill URL REQUESTS MESSAGES`."""

import asyncio
import sys

from hpwsn_client import Client

PAYLOAD = b"<reading>" + b"<value>21.5</value>" * 10 + b"</reading>"


async def fill(url: str, requests: int, messages: int) -> None:
    """Two requests under way at any time."""
    left = iter(range(requests))

    async def publish(client: Client) -> None:
        for _ in left:
            await client.notify_many([("bench:backlog", PAYLOAD)] * messages)

    async with Client(url, batch=messages) as client:
        await asyncio.gather(publish(client), publish(client))


if __name__ == "__main__":
    asyncio.run(fill(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
