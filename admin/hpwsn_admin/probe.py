"""A quick look whether anything listens at a node's addresses.

A refusal proves that the process is gone. Somebody who listens proves only that its host is there, since the
kernel answers for a process that hangs; silence on all addresses is that of a dead host or a cut network
where heartbeats are missed as well.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from urllib.parse import urlsplit

from hpwsn_admin.registry import Record

WITHIN = 1.0

_PORTS = {"http": 80, "https": 443}
_SILENCE = (errno.ENOTCONN, errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN)


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


async def is_silent(record: Record, within: float) -> bool:
    """Whether none of the node's addresses has answered in any way after a time."""
    found = await asyncio.gather(*(_answers(host, port, within) for host, port in _addresses(record)))
    return not any(found)


async def _answers(host: str, port: int, within: float) -> bool:
    """Whether the kernel there says yes or no; its word counts however late this process comes to look.

    Trouble of this host, such as names that cannot be looked up, is no silence of that one.
    """
    loop = asyncio.get_running_loop()
    try:
        family, kind, protocol, _, address = (await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM))[0]
        with socket.socket(family, kind, protocol) as connection:
            connection.setblocking(False)
            begun = connection.connect_ex(address)
            if begun == errno.EINPROGRESS:
                await asyncio.sleep(within)
                # Before there is an answer, a connection has neither an error nor a peer.
                begun = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if begun == 0:
                    connection.getpeername()
            return begun not in _SILENCE
    except OSError as error:
        return error.errno not in _SILENCE
