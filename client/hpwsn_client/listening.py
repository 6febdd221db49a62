"""A web service of the client's own: where it listens, or one line that says why it cannot."""

from __future__ import annotations

from aiohttp import web

from .errors import ConnectionFailed, reason_of

SHUTDOWN = 5.0
"""Seconds for requests under way to end."""


def http_url(host: str, port: int, path: str) -> str:
    """The address of a service on this machine."""
    return f"http://[{host}]:{port}{path}" if ":" in host else f"http://{host}:{port}{path}"


async def listen(app: web.Application, host: str, port: int, path: str) -> tuple[web.AppRunner, int]:
    """Start the service; what runs it, and its port, which is a free one for 0."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as error:
        await runner.cleanup()
        where = http_url(host, port, path)
        why = reason_of(error)
        raise ConnectionFailed(
            f"cannot listen on {where} ({why}); choose another host or port, or port 0", where
        ) from None
    return runner, runner.addresses[0][1]
