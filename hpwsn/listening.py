"""A socket that listens, or one line that says why none can and what to do about it.

How many files, and so connections, a process of ours may have open.
"""

from __future__ import annotations

import errno
import resource
import socket

from hpwsn.errors import HpwsnError
from hpwsn_client.errors import reason_of


def raise_file_limit() -> None:
    """Every connection is a file: allow as many as the system lets this process have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


_ANOTHER_PORT = "choose another port with --port (0 takes a free one)"
_ANOTHER_HOST = "choose another address with --host"
_REMEDIES = {
    errno.EADDRINUSE: f"stop what uses it, or {_ANOTHER_PORT}",
    errno.EACCES: _ANOTHER_PORT,
    errno.EADDRNOTAVAIL: f"this machine does not have that address: {_ANOTHER_HOST}",
}


def listen_problem(host: str) -> str | None:
    """Why nothing can listen at an address, whatever the port; None where something can."""
    try:
        _listen(host, 0).close()
    except OSError as error:
        return reason_of(error)
    return None


def open_listener(host: str, port: int) -> socket.socket:
    """Take a port of this machine; nobody is accepted yet."""
    try:
        return _listen(host, port)
    except OSError as error:
        remedy = _REMEDIES.get(error.errno or 0, _ANOTHER_HOST)
        raise HpwsnError(f"cannot listen on {host}:{port}: {reason_of(error)}; {remedy}") from error


def _listen(host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except UnicodeError:
        raise OSError("no host can have this name") from None
    family, _, _, _, address = found[0]
    return socket.create_server(address[:2], family=family, backlog=1024)
