"""The bodies of requests to the JSON door: JSON objects with known fields, of bounded size.

Which web pages may send such requests is decided before, in cross_origin.
"""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from hpwsn.door.rest.json_answers import bad
from hpwsn_client.wsn.formats.json_text import parse_object
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.topics.topic import shown

LARGEST_OBJECT = 1 << 20
"""The most bytes of a request with a JSON object."""


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
