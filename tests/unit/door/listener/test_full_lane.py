"""Handlers that wait end when their client disconnects, and only then."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from hpwsn.door.listener.full_lane import FullLane, while_connected
from tests.patience import patience

REQUEST = b"GET /wait HTTP/1.1\r\nHost: node\r\n\r\n"


class Server:
    """An application with one handler that waits, on the full lane."""

    def __init__(self) -> None:
        self.waits = asyncio.Event()
        self.go_on = asyncio.Event()
        self.after = asyncio.Event()
        self.ended: asyncio.Future[type[BaseException] | None] = asyncio.get_running_loop().create_future()
        self.port = 0

    async def wait(self, request: web.Request) -> web.Response:
        try:
            with while_connected(request):
                self.waits.set()
                await self.go_on.wait()
            if "after" in request.query:
                await self.after.wait()
        except BaseException as error:
            self.ended.set_result(type(error))
            raise
        if not self.ended.done():
            self.ended.set_result(None)
        return web.Response(text="done")


@asynccontextmanager
async def running() -> AsyncIterator[tuple[Server, web.AppRunner]]:
    served, app = Server(), web.Application()
    app.router.add_get("/wait", served.wait)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: FullLane(runner.server, loop=loop, access_log=None),  # type: ignore[arg-type]
        "127.0.0.1",
        0,
    )
    served.port = server.sockets[0].getsockname()[1]
    async with patience():
        try:
            yield served, runner
        finally:
            server.close()
            await runner.cleanup()


async def test_a_wait_ends_when_the_client_disconnects() -> None:
    async with running() as (served, _):
        _, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(REQUEST)
        await served.waits.wait()
        writer.close()
        assert await served.ended is ConnectionResetError


async def test_a_wait_that_the_server_cancels_is_cancelled() -> None:
    async with running() as (served, runner):
        _, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(REQUEST)
        await served.waits.wait()
        await runner.cleanup()
        assert await served.ended is asyncio.CancelledError
        writer.close()


@pytest.mark.parametrize("again", [1, 3])
async def test_a_wait_that_has_ended_is_answered_and_the_connection_serves_on(again: int) -> None:
    async with running() as (served, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        served.go_on.set()
        for _ in range(again):
            writer.write(REQUEST)
            assert await reader.readuntil(b"done")
        writer.close()


async def test_what_a_handler_does_after_its_wait_goes_on_without_the_client() -> None:
    async with running() as (served, _):
        _, writer = await asyncio.open_connection("127.0.0.1", served.port)
        served.go_on.set()
        writer.write(REQUEST.replace(b"/wait", b"/wait?after"))
        await served.waits.wait()
        writer.close()
        await writer.wait_closed()
        served.after.set()
        assert await served.ended is None
