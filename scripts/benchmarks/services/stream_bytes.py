"""A long connection as bytes: the request for a stream of events, and the body of the answer.

Imports nothing heavy, because each process that stands for one service holds a copy.
"""

from __future__ import annotations

HEAD_END = b"\r\n\r\n"
OK = b"HTTP/1.1 200 "
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
"""The head of the answer of a service that is a process of its own."""


def get_stream(path: str) -> bytes:
    """The request for server-sent events at a path."""
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n".encode()


def chunk(data: bytes) -> bytes:
    """Data as one chunk of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(data), data)


class EventLines:
    """The `data:` lines of a stream from the pieces in which its answer arrives."""

    def __init__(self) -> None:
        self._input = b""
        self._missing = 0
        """Bytes of the present chunk that have not come, with its CRLF; 0 before the next size."""
        self._line = b""
        self._answered = False

    def feed(self, data: bytes) -> list[bytes]:
        """The contents of the events that are complete now."""
        self._input += data
        if not self._answered:
            head, end, rest = self._input.partition(HEAD_END)
            if not end:
                return []
            if not head.startswith(OK):
                raise ConnectionError(f"the stream was refused: {data[:300]!r}")
            self._answered, self._input = True, rest
        self._line += b"".join(self._chunks())
        *lines, self._line = self._line.split(b"\n")
        return [line[6:] for line in lines if line.startswith(b"data: ")]

    @property
    def has_begun(self) -> bool:
        """Whether the head of the answer has come."""
        return self._answered

    def _chunks(self) -> list[bytes]:
        found, data, start = [], self._input, 0
        while start < len(data):
            if not self._missing:
                end = data.find(b"\r\n", start)
                if end < 0:
                    break
                self._missing = int(data[start:end], 16) + 2
                start = end + 2
            taken = min(self._missing, len(data) - start)
            # The last two bytes of a chunk are its CRLF.
            content = max(0, min(taken, self._missing - 2))
            found.append(data[start : start + content])
            self._missing -= taken
            start += taken
        self._input = data[start:]
        return found
