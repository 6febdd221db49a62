"""Subscribe with a receiver, a small web service in this program that the broker pushes to.

It ends after four notifications; a real one would go on: `async for notification in receiver`.

Run: python docs/examples/subscriber.py
With: publisher.py
Prints:
    listening
    examples:hall:temperature <reading>21.5</reading>
    examples:hall:count <n>0</n>
    examples:hall:count <n>1</n>
    examples:hall:count <n>2</n>
"""

import asyncio

from hpwsn_client import Client, Receiver


async def main() -> None:
    async with Client() as client, Receiver() as receiver:
        subscription = await client.subscribe("examples:hall", receiver, expires=3600)
        print("listening", flush=True)
        for _ in range(4):
            notification = await receiver.get()
            print(notification.topic, notification.text)
        await subscription.unsubscribe()


asyncio.run(main())
