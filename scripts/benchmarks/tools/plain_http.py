"""HTTP by blocking sockets: a client, a consumer and a reader of server-sent events with no code of HPwsn.

Each request leaves in one piece, so that a node reads it in one piece.
"""

import contextlib
import queue
import re
import socket
import threading
import time
from types import TracebackType
from typing import Self

PATIENCE = 30.0
"""Seconds for whatever is waited for."""

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_ACCEPTED = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def read_message(connection: socket.socket) -> tuple[bytes, bytes] | None:
    """The head and the body of the next request or answer; None at the end of the connection."""
    data = b""
    while (head := data.find(b"\r\n\r\n")) < 0:
        if not (more := connection.recv(65536)):
            return None
        data += more
    length = _LENGTH.search(data, 0, head + 2)
    end = head + 4 + (int(length[1]) if length else 0)
    while len(data) < end:
        if not (more := connection.recv(65536)):
            return None
        data += more
    return data[:head], data[head + 4 : end]


class Caller:
    """A client with one connection that stays open."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connection = socket.create_connection(("127.0.0.1", port), PATIENCE)

    def post(self, path: str, kind: str, body: str) -> str:
        """The body of the answer to a POST; RuntimeError where the answer is not a success."""
        sent = body.encode()
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nContent-Type: {kind}\r\n"
        self._connection.sendall(f"{head}Content-Length: {len(sent)}\r\n\r\n".encode() + sent)
        answer = read_message(self._connection)
        if answer is None or not answer[0].startswith(b"HTTP/1.1 2"):
            raise RuntimeError(f"POST {path} was answered with {answer}")
        return answer[1].decode()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class Inbox:
    """What has been received, for a thread that waits for a certain text."""

    def __init__(self) -> None:
        self._received: queue.Queue[bytes] = queue.Queue()

    def put(self, data: bytes) -> None:
        """Keep what was received."""
        self._received.put(data)

    def holds(self, text: str, seconds: float = PATIENCE) -> bool:
        """Whether something with this text comes in time; all before it is dropped."""
        end, data = time.monotonic() + seconds, b""
        while text.encode() not in data:
            try:
                data += self._received.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                return False
        return True


class Consumer(Inbox):
    """A push consumer, which answers every request with 202."""

    def __init__(self) -> None:
        super().__init__()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/consumer"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            while request := read_message(connection):
                connection.sendall(_ACCEPTED)
                self.put(request[1])


class EventReader(Inbox):
    """A reader of server-sent events."""

    def __init__(self, port: int, path: str) -> None:
        super().__init__()
        self._connection = socket.create_connection(("127.0.0.1", port))
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: text/event-stream\r\n\r\n"
        self._connection.sendall(head.encode())
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while data := self._connection.recv(65536):
                self.put(data)

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()
