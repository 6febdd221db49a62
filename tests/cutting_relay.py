"""A relay in front of a server that cuts the line once, just after a certain thing went to the server."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType
from typing import Self


class CuttingRelay:
    """Connections to `port` go on to the server; the first one that carries `mark` there is lost with it.

    The server has all of the piece that holds the mark, and its answer to that reaches nobody.
    """

    def __init__(self, server: int, mark: bytes) -> None:
        self._server = server
        self._mark = mark
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.has_cut = threading.Event()

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
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._server))
                threading.Thread(target=self._copy, args=(near, far, True), daemon=True).start()
                threading.Thread(target=self._copy, args=(far, near, False), daemon=True).start()

    def _copy(self, source: socket.socket, target: socket.socket, watched: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 20):
                cuts = watched and self._mark in data and not self.has_cut.is_set()
                if cuts:
                    self.has_cut.set()
                    source.shutdown(socket.SHUT_RDWR)
                target.sendall(data)
                if cuts:
                    break
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)
        source.close()  # each is the source of one thread
