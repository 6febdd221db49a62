"""A reverse proxy that serves a node below a prefix, as operators put one in front; streams pass through."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import aiohttp
from aiohttp import web

PREFIX = "/plant/broker"
OF_A_CONNECTION = {"connection", "content-length", "host", "keep-alive", "transfer-encoding"}


@asynccontextmanager
async def proxied(base: str) -> AsyncIterator[str]:
    """The address of a node behind the proxy, with the prefix; everything outside of it is 404."""
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(auto_decompress=False, timeout=timeout) as session:

        async def forward(request: web.Request) -> web.StreamResponse:
            path = request.rel_url.raw_path_qs.removeprefix(PREFIX)
            headers = {
                name: value for name, value in request.headers.items() if name.lower() not in OF_A_CONNECTION
            }
            # As most proxies do: the node hears the name by which the browser knows it.
            headers["Host"] = request.host
            body = await request.read() if request.can_read_body else None
            async with session.request(
                request.method, base + path, headers=headers, data=body, allow_redirects=False
            ) as answer:
                kept = [(n, v) for n, v in answer.headers.items() if n.lower() not in OF_A_CONNECTION]
                response = web.StreamResponse(status=answer.status, headers=kept)
                # The browser may leave a stream at any time.
                with suppress(ConnectionError):
                    await response.prepare(request)
                    async for piece in answer.content.iter_any():
                        await response.write(piece)
                    await response.write_eof()
                return response

        app = web.Application()
        app.router.add_route("*", PREFIX + "/{rest:.*}", forward)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}{PREFIX}"
        finally:
            await runner.cleanup()
