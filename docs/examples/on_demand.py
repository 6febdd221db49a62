"""Publish on demand: work only while somebody is interested in the topic.

Run: python docs/examples/on_demand.py
Prints:
    wanted: False
    wanted: True
    got high
"""

import asyncio

from hpwsn_client import Client, DemandPublisher, Receiver


async def main() -> None:
    async with Client() as client, DemandPublisher() as publisher, Receiver() as receiver:
        registration = await client.register_publisher(
            "examples:tides", publisher=publisher, demand=True, expires=3600
        )
        print("wanted:", publisher.wanted("examples:tides"))

        await client.subscribe("examples:tides", receiver, expires=3600)
        await publisher.wait_until_wanted("examples:tides")
        print("wanted:", publisher.wanted("examples:tides"))
        await publisher.notify("examples:tides", "high")
        print("got", (await receiver.get()).text)
        await registration.destroy()


asyncio.run(main())
