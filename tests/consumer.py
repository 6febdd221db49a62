"""A bare HTTP consumer that a test tells how to answer, and that keeps every byte it was sent."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from types import TracebackType
from typing import Self

from aiohttp import web
from lxml import etree

from tests.patience import patience
from tests.raw_soap import NAMES

Answer = Callable[[int], int]


class Consumer:
    """Answers the n-th request with `answer(n)`; 0 means never."""

    def __init__(self, answer: Answer = lambda number: 202) -> None:
        self.answer = answer
        self.requests: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.connections: set[object] = set()
        # Another test's node may still push to a consumer that had this port before.
        self._path = f"/consumer-{uuid.uuid4().hex}"
        self._arrived = asyncio.Condition()
        self._never = asyncio.Event()

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/{tail:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._never.set()
        await self._runner.cleanup()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self._path}"

    async def _handle(self, request: web.Request) -> web.Response:
        body = await request.read()
        if not request.path.startswith(self._path):
            return web.Response(status=404)
        self.connections.add(request.transport)
        async with self._arrived:
            self.requests.append(body)
            self.headers.append(dict(request.headers))
            number = len(self.requests)
            self._arrived.notify_all()
        status = self.answer(number)
        if not status:
            await self._never.wait()
            status = 503
        return web.Response(status=status)

    async def wait(self, condition: Callable[[Consumer], bool]) -> None:
        """Wait until the condition holds, looked at after each request."""
        async with patience(), self._arrived:
            await self._arrived.wait_for(lambda: condition(self))

    def messages(self) -> list[etree._Element]:
        """Every NotificationMessage so far, in order of arrival."""
        return [
            message
            for body in self.requests
            for message in etree.fromstring(body).iterfind(".//w:NotificationMessage", NAMES)
        ]

    def payloads(self) -> list[str]:
        """The text of every payload so far."""
        return ["".join(message.find("w:Message", NAMES)[0].itertext()) for message in self.messages()]
