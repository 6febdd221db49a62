"""Opens listening sockets, with an error that says what to do, and raises the limit on open files.

Every connection needs a file descriptor, so the limit on open files also limits the connections.
"""

from __future__ import annotations

import errno
import resource
import socket

from hpwsn.errors import HpwsnError
from hpwsn_client.errors import reason_of

_ANOTHER_PORT = "choose another port with --port (0 for any free port)"
_ANOTHER_HOST = "choose another address with --host"
_REMEDIES = {
    errno.EADDRINUSE: f"stop the process that uses it, or {_ANOTHER_PORT}",
    errno.EACCES: _ANOTHER_PORT,
    errno.EADDRNOTAVAIL: f"this machine does not have that address; {_ANOTHER_HOST}",
}


def listen_problem(host: str) -> str | None:
    """The reason why no socket can listen at the address on any port, or None if one can."""
    try:
        _listen(host, 0).close()
    except OSError as error:
        return reason_of(error)
    return None


def open_listener(host: str, port: int) -> socket.socket:
    """Bind a listening socket; connections are queued until they are accepted."""
    try:
        return _listen(host, port)
    except OSError as error:
        remedy = _REMEDIES.get(error.errno or 0, _ANOTHER_HOST)
        raise HpwsnError(f"cannot listen on {host}:{port}: {reason_of(error)}; {remedy}") from error


def _listen(host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except UnicodeError:
        raise OSError("this is not a valid host name") from None
    family, _, _, _, address = found[0]
    return socket.create_server(address[:2], family=family, backlog=1024)


def raise_file_limit() -> None:
    """Raise the limit on open files to the hard limit of this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
