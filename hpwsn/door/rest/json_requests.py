"""The bodies of requests to the JSON door: bytes, JSON, or objects with known fields, of bounded size.

Which web pages may send such requests is decided before, in cross_origin.
"""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from hpwsn.background import in_thread
from hpwsn.door.rest.json_answers import bad
from hpwsn_client.wsn.formats.json_text import parse_document, parse_object
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.topics.topic import shown

LARGEST_OBJECT = 1 << 20
"""The most bytes of a request with a JSON object, unless its handler says otherwise."""


async def read_object(
    request: web.Request, patience: float, *known: str, largest: int = LARGEST_OBJECT
) -> dict[str, Any]:
    """The JSON object of the body, of at most `largest` bytes, with no other fields than the known ones.

    `patience` is in seconds. The content type does not matter: curl sends that of a form.
    """
    body = await read_body(request, patience, largest)
    found = parse_object(body) if len(body) <= LARGEST_OBJECT else await in_thread(parse_object, body)
    for name in found:
        if name not in known:
            raise bad(f"the field {shown(name)} is unknown; known fields are {', '.join(known)}")
    return found


async def read_document(request: web.Request, patience: float, largest: int) -> Any:
    """The JSON value of the body, of at most `largest` bytes; a large one is parsed in a thread."""
    body = await read_body(request, patience, largest)
    return parse_document(body) if len(body) <= LARGEST_OBJECT else await in_thread(parse_document, body)


async def read_body(request: web.Request, patience: float, largest: int) -> bytes:
    """The body, of at most `largest` bytes, if it arrives within `patience` seconds."""
    too_large = f"the request is larger than {largest} bytes"
    if (request.content_length or 0) > largest:
        raise faults.TooLarge(too_large)
    body = bytearray()
    try:
        async with asyncio.timeout(patience):
            async for chunk in request.content.iter_chunked(1 << 16):
                body += chunk
                if len(body) > largest:
                    raise faults.TooLarge(too_large)
    except TimeoutError as error:
        reason = f"the request did not arrive within {patience:g} s"
        raise faults.SoapFault(reason, status=408) from error
    return bytes(body)
