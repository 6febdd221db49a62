"""A quick look whether anything listens at a node's addresses.

A refusal proves that the process is gone. Somebody who listens proves only that its host is there, since the
kernel answers for a process that hangs; silence on all addresses is that of a dead host or a cut network
where heartbeats are missed as well.
"""

from __future__ import annotations

import asyncio
from enum import Enum, auto
from urllib.parse import urlsplit

from hpwsn_admin.registry import Record

WITHIN = 1.0


class Answer(Enum):
    """What becomes of an attempt to connect."""

    LISTENS = auto()
    REFUSES = auto()
    NONE = auto()


_PORTS = {"http": 80, "https": 443}


async def is_gone(record: Record) -> bool:
    """Whether one of the node's addresses refuses to be connected to."""
    return Answer.REFUSES in await _look(record, WITHIN)


async def is_silent(record: Record, within: float) -> bool:
    """Whether none of its addresses answers in any way."""
    return await _look(record, within) == {Answer.NONE}


async def _look(record: Record, within: float) -> set[Answer]:
    return set(await asyncio.gather(*(_ask(host, port, within) for host, port in _addresses(record))))


def _addresses(record: Record) -> set[tuple[str, int]]:
    url = urlsplit(record.url)
    found = {(record.host, record.port)}
    if url.hostname:
        found.add((url.hostname, url.port or _PORTS.get(url.scheme, 80)))
    return found


async def _ask(host: str, port: int, within: float) -> Answer:
    try:
        async with asyncio.timeout(within):
            _, writer = await asyncio.open_connection(host, port)
    except ConnectionRefusedError:
        return Answer.REFUSES
    except OSError:
        return Answer.NONE
    writer.close()
    return Answer.LISTENS
