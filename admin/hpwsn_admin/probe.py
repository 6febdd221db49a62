"""A quick look whether anything listens at a node's addresses.

Only a refusal is an answer: then the process is gone. Silence, or somebody who listens, proves nothing, and
missed heartbeats decide.
"""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from hpwsn_admin.registry import Record

WITHIN = 1.0
_PORTS = {"http": 80, "https": 443}


async def is_gone(record: Record) -> bool:
    """Whether one of the node's addresses refuses to be connected to."""
    found = await asyncio.gather(*(_refuses(host, port) for host, port in _addresses(record)))
    return any(found)


def _addresses(record: Record) -> set[tuple[str, int]]:
    url = urlsplit(record.url)
    found = {(record.host, record.port)}
    if url.hostname:
        found.add((url.hostname, url.port or _PORTS.get(url.scheme, 80)))
    return found


async def _refuses(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(WITHIN):
            _, writer = await asyncio.open_connection(host, port)
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    writer.close()
    return False
