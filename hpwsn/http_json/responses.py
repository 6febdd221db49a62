"""JSON responses, parameters in queries, and bodies within limits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.topics.topic import shown

Handling = Callable[[web.Request], Awaitable[web.StreamResponse]]

BODY_WITHIN = 30.0
"""Seconds within which a body must arrive that `read_limited` reads."""


def answer(told: Mapping[str, Any], status: int) -> web.Response:
    """A JSON object with a newline at its end, for terminals."""
    return web.json_response(text=json.dumps(told, ensure_ascii=False) + "\n", status=status)


def moment(time: float | None) -> str | None:
    """A time in seconds since 1970 as ISO 8601 in UTC; None stays None."""
    return None if time is None else datetime.fromtimestamp(time, UTC).isoformat()


def bad(words: str) -> faults.SoapFault:
    """The fault for a parameter that is not valid."""
    return faults.SoapFault(words, status=400)


def check_names(request: web.Request, *known: str) -> None:
    """Reject unknown query parameters: with a mistyped `filter`, all events would match.

    Names that start with `_` are ignored, since scripts add them to bypass caches.
    """
    for name in request.query:
        if name not in known and not name.startswith("_"):
            told = f"known parameters are {', '.join(known)}" if known else "this address has none"
            raise bad(f"parameter {shown(name)} is unknown; {told}")


async def read_limited(request: web.Request, limit: int) -> bytes:
    """Read the body from the connection; HTTPRequestEntityTooLarge above the limit in bytes."""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_WITHIN):
            async for part in request.content.iter_any():
                body += part
                if len(body) > limit:
                    raise web.HTTPRequestEntityTooLarge(
                        max_size=limit,
                        actual_size=len(body),
                        text=f"the body is larger than {limit} bytes (server.body_limit); send less at once",
                    )
    except TimeoutError:
        raise web.HTTPRequestTimeout(text=f"the body did not arrive within {BODY_WITHIN:g} s") from None
    return bytes(body)
