"""HTTP responses as bytes, with the headers that aiohttp gives them, for the lane that does without it."""

from __future__ import annotations

import time
from email.utils import formatdate
from http import HTTPStatus

from aiohttp.http import SERVER_SOFTWARE

from hpwsn.door.exchange import Reply

_CLOSE = b"Connection: close\r\n"


class Responses:
    """Writes responses; the most frequent one is written once a second."""

    def __init__(self) -> None:
        self._second = 0
        self._common = b""
        self._accepted = (b"", b"")

    def accepted(self, count: int, close: bool) -> bytes:
        """The answers to so many notifications in a row, the last of which may end the connection."""
        if int(time.time()) != self._second:
            self._next_second()
        going_on, ending = self._accepted
        return going_on * (count - 1) + ending if close else going_on * count

    def encode(self, reply: Reply, close: bool) -> bytes:
        """Any answer."""
        if int(time.time()) != self._second:
            self._next_second()
        headers = "".join(f"{name}: {value}\r\n" for name, value in reply.headers.items())
        return b"".join(
            (
                f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}\r\n{headers}".encode(),
                f"Content-Length: {len(reply.body)}\r\n".encode(),
                self._common,
                _CLOSE if close else b"",
                b"\r\n",
                reply.body,
            )
        )

    def _next_second(self) -> None:
        self._second = int(time.time())
        date = formatdate(self._second, usegmt=True)
        self._common = f"Date: {date}\r\nServer: {SERVER_SOFTWARE}\r\n".encode()
        accepted = Reply(HTTPStatus.ACCEPTED)
        self._accepted = (self.encode(accepted, close=False), self.encode(accepted, close=True))
