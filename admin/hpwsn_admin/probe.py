"""TCP probes of a node's addresses, to detect dead nodes.

A refused connection proves that the process is gone. An accepted one proves only that the host is up, because
the kernel accepts connections for a process that hangs. If no address answers and heartbeats are missing too,
the host is down or the network is cut.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from urllib.parse import urlsplit

from hpwsn_admin.registry import Record

CONNECT_TIMEOUT = 1.0

_PORTS = {"http": 80, "https": 443}
_SILENCE = (errno.ENOTCONN, errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN)


async def is_gone(record: Record) -> bool:
    """Whether one of the node's addresses refuses connections."""
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
        async with asyncio.timeout(CONNECT_TIMEOUT):
            _, writer = await asyncio.open_connection(host, port)
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    writer.close()
    return False


async def is_silent(record: Record, within: float) -> bool:
    """Whether none of the node's addresses accepts or refuses a connection within so many seconds."""
    found = await asyncio.gather(*(_answers(host, port, within) for host, port in _addresses(record)))
    return not any(found)


async def _answers(host: str, port: int, within: float) -> bool:
    """Whether the remote kernel accepts or refuses; the result is right even if this process is delayed.

    A local error, such as a failed name lookup, counts as an answer.
    """
    loop = asyncio.get_running_loop()
    try:
        family, kind, protocol, _, address = (await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM))[0]
        with socket.socket(family, kind, protocol) as connection:
            connection.setblocking(False)
            status = connection.connect_ex(address)
            if status == errno.EINPROGRESS:
                await asyncio.sleep(within)
                # A connection without an answer yet has neither an error nor a peer.
                status = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if status == 0:
                    connection.getpeername()
            return status not in _SILENCE
    except OSError as error:
        return error.errno not in _SILENCE
