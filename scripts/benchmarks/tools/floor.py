"""The floor: aiohttp on uvloop with lxml, the way one would write it, its client for the consumers.

`python -m benchmarks.tools.floor [--spyne] [CONSUMER…]` prints `ready URL`. With --spyne the request goes
through Spyne's own WsgiApplication instead of lxml alone; aiohttp serves it because it keeps connections
alive, which Spyne's own wsgiref server does not.
"""

import asyncio
import sys
from collections.abc import Callable, Sequence

import aiohttp
import uvloop
from aiohttp import web

from benchmarks.tools.forwarding import BATCH, envelope_of, extract
from hpwsn_client.wsn.soap.names import ACTION_NOTIFY

Extract = Callable[[bytes], Sequence[tuple[str, bytes]]]
_HEADERS = {"Content-Type": "text/xml; charset=utf-8", "SOAPAction": f'"{ACTION_NOTIFY}"'}


async def forward(session: aiohttp.ClientSession, url: str, queue: asyncio.Queue[bytes]) -> None:
    """Post what waits for one consumer, in order, several in one Notify."""
    while True:
        messages = [await queue.get()]
        while len(messages) < BATCH and not queue.empty():
            messages.append(queue.get_nowait())
        async with session.post(url, data=envelope_of(messages), headers=_HEADERS) as answer:
            await answer.read()


async def serve(consumers: Sequence[str], extract_messages: Extract) -> None:
    """Serve until the process is ended."""
    queues = {url: asyncio.Queue[bytes]() for url in consumers}

    async def notify(request: web.Request) -> web.Response:
        messages = extract_messages(await request.read())
        for queue in queues.values():
            for _, message in messages:
                queue.put_nowait(message)
        return web.Response(status=202)

    app = web.Application(client_max_size=1 << 24)
    app.router.add_post("/wsn", notify)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    async with aiohttp.ClientSession() as session:
        tasks = [asyncio.create_task(forward(session, url, queue)) for url, queue in queues.items()]
        print(f"ready http://127.0.0.1:{runner.addresses[0][1]}/wsn", flush=True)
        await asyncio.gather(*tasks, asyncio.Event().wait())


def main(arguments: list[str]) -> None:
    """Choose what reads the request, and serve."""
    chosen: Extract = extract
    if arguments[:1] == ["--spyne"]:
        from benchmarks.tools.spyne_path import extract as through_spyne

        chosen, arguments = through_spyne, arguments[1:]
    uvloop.run(serve(arguments, chosen))


if __name__ == "__main__":
    main(sys.argv[1:])
