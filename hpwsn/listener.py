"""A socket that listens, or one line that says why none can and what to do about it."""

import errno
import os
import socket

from hpwsn.errors import HpwsnError

_ANOTHER_PORT = "choose another port with --port (0 takes a free one)"
_ANOTHER_HOST = "choose another address with --host"
_REMEDIES = {
    errno.EADDRINUSE: f"stop what uses it, or {_ANOTHER_PORT}",
    errno.EACCES: _ANOTHER_PORT,
    errno.EADDRNOTAVAIL: f"this machine does not have that address: {_ANOTHER_HOST}",
}


def open_listener(host: str, port: int) -> socket.socket:
    """Take a port of this machine; nobody is accepted yet."""
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server(address[:2], family=family, backlog=1024)
    except OSError as error:
        remedy = _REMEDIES.get(error.errno or 0, _ANOTHER_HOST)
        raise HpwsnError(f"cannot listen on {host}:{port}: {_reason(error)}; {remedy}") from error


def _reason(error: OSError) -> str:
    """In the system's words, since Python's repeat the address; a name that is none has only Python's."""
    if isinstance(error, socket.gaierror) or not error.errno:
        return error.strerror or str(error)
    return os.strerror(error.errno)
