"""Requests to the JSON door that change something: where they come from, and their body as a JSON object."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web

from hpwsn.door.rest.json_answers import bad
from hpwsn_client.wsn.formats.json_text import parse_object
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.topics.topic import shown

LARGEST_OBJECT = 1 << 20
"""The most bytes of a request with a JSON object."""


def check_origin(request: web.Request, origins: Sequence[str]) -> None:
    """Refuse web pages of other servers: browsers let any page open a WebSocket to any address."""
    origin = request.headers.get("Origin")
    if origin is None or "*" in origins or origin in origins or urlsplit(origin).netloc == request.host:
        return
    raise faults.SoapFault(
        f"web pages of origin {shown(origin)} are not allowed; add it to server.websocket_origins", status=403
    )


def check_page(request: web.Request, origins: Sequence[str]) -> None:
    """Refuse web pages of other servers: a page in a user's browser reaches the node's loopback address.

    A page of the node itself has its address or `localhost`: by any other name, a foreign page could have
    been given the node's address (DNS rebinding).
    """
    check_origin(request, origins)
    origin = request.headers.get("Origin")
    if origin is None or origin in origins or "*" in origins:
        return
    host = urlsplit(origin).hostname or ""
    if host != "localhost" and not _is_address(host):
        reason = f"web pages of origin {shown(origin)} may not change anything here; add it to"
        raise faults.SoapFault(f"{reason} server.websocket_origins", status=403)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


async def read_object(request: web.Request, patience: float, *known: str) -> dict[str, Any]:
    """The JSON object of the body, of at most LARGEST_OBJECT bytes, with no other fields than the known ones.

    `patience` is in seconds. The content type does not matter: curl sends that of a form.
    """
    found = parse_object(await _read(request, patience))
    for name in found:
        if name not in known:
            raise bad(f"the field {shown(name)} is unknown; known fields are {', '.join(known)}")
    return found


async def _read(request: web.Request, patience: float) -> bytes:
    too_large = f"the request is larger than {LARGEST_OBJECT} bytes"
    if (request.content_length or 0) > LARGEST_OBJECT:
        raise faults.TooLarge(too_large)
    body = bytearray()
    try:
        async with asyncio.timeout(patience):
            async for chunk in request.content.iter_chunked(1 << 16):
                body += chunk
                if len(body) > LARGEST_OBJECT:
                    raise faults.TooLarge(too_large)
    except TimeoutError as error:
        reason = f"the request did not arrive within {patience:g} s"
        raise faults.SoapFault(reason, status=408) from error
    return bytes(body)
