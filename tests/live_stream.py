"""The live stream of a node or an admin node, as a test reads it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from tests.harness import NodeProcess
from tests.patience import patience


class Stream:
    """An open live stream."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response
        self.raw = b""
        self.last_id = ""

    async def event(self) -> tuple[str, Any]:
        """The next event, without comments."""
        async with patience():
            while True:
                block = await self.response.content.readuntil(b"\n\n")
                if not block.startswith(b":"):
                    self.raw += block
                    fields = dict(line.split(": ", 1) for line in block.decode().splitlines() if line)
                    self.last_id = fields["id"]
                    return fields["event"], json.loads(fields["data"])

    async def until(self, kind: str) -> Any:
        """The data of the next event of a kind."""
        while True:
            found, data = await self.event()
            if found == kind:
                return data


@asynccontextmanager
async def live(
    node: NodeProcess, query: str = "", last_id: str = "", path: str = ""
) -> AsyncIterator[Stream]:
    """A live stream; `path` is what stands before /live, such as that of a relay."""
    headers = {"Last-Event-ID": last_id} if last_id else {}
    timeout = aiohttp.ClientTimeout(total=None)
    async with (
        aiohttp.ClientSession(timeout=timeout, read_bufsize=1 << 20) as session,
        session.get(f"{node.base}{path}/live{query}", headers=headers) as response,
    ):
        assert response.status == 200
        assert response.content_type == "text/event-stream"
        yield Stream(response)
