"""Publish to topics: one notification, and many in a few requests.

When a call returns, the broker has the notifications in its journal.

Run: python docs/examples/publisher.py
Prints:
    accepted 4
"""

import asyncio

from hpwsn_client import Client


async def main() -> None:
    async with Client() as client:
        await client.notify("examples:hall:temperature", "<reading>21.5</reading>")
        readings = [("examples:hall:count", f"<n>{n}</n>") for n in range(3)]
        print("accepted", 1 + await client.notify_many(readings))


asyncio.run(main())
