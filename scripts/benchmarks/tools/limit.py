"""The limit: a bare asyncio.Protocol on httptools and uvloop, with lxml, that takes a Notify and answers 202.

`python -m benchmarks.tools.limit [CONSUMER…]` prints `ready URL`; nothing in Python that reads XML and HTTP
for each request can do much more.
"""

import asyncio
import sys
from typing import cast

import httptools
import uvloop

from benchmarks.tools.forwarding import Forwarders, extract
from benchmarks.tools.sink import ANSWER


class Server(asyncio.Protocol):
    """One connection of a publisher."""

    def __init__(self, forwarders: Forwarders) -> None:
        self._forwarders = forwarders
        self._parser = httptools.HttpRequestParser(self)
        self._body: list[bytes] = []
        self._answers = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Read on, and answer all requests that are complete."""
        self._parser.feed_data(data)
        if self._answers:
            self._transport.write(ANSWER * self._answers)
            self._answers = 0

    def on_body(self, data: bytes) -> None:
        """See httptools."""
        self._body.append(data)

    def on_message_complete(self) -> None:
        """Take the notifications out."""
        body = b"".join(self._body)
        self._body.clear()
        self._forwarders.put(extract(body))
        self._answers += 1


async def serve(consumers: list[str]) -> None:
    """Serve until the process is ended."""
    forwarders = Forwarders(consumers)
    await forwarders.open()
    server = await asyncio.get_running_loop().create_server(lambda: Server(forwarders), "127.0.0.1", 0)
    print(f"ready http://127.0.0.1:{server.sockets[0].getsockname()[1]}/wsn", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1:]))
