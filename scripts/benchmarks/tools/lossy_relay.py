"""A network in front of a port that loses, repeats and delays datagrams, and cuts connections on demand."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, take: Callable[[bytes, Any], None]) -> None:
        self._take = take

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self._take(data, addr)


class LossyRelay:
    """Stands for `target` at an address of its own, for any number of clients.

    `carries` is asked with the first bytes of a connection, and with each datagram of a client, whether the
    network carries what this client sends and gets.
    """

    def __init__(
        self,
        target: tuple[str, int],
        *,
        loss: float = 0.0,
        twice: float = 0.0,
        late: float = 0.0,
        seed: int = 1,
    ) -> None:
        self._target = target
        self.loss, self.twice, self.late = loss, twice, late
        self.cut = False
        self.carries: Callable[[bytes], bool] = lambda first: True
        self.recorded: list[bytes] = []
        self._chance = random.Random(seed)
        self._ways: dict[Any, socket.socket] = {}
        """For each client by UDP the socket that speaks to the target for it."""
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> tuple[str, int]:
        """Open both ports, of one number."""
        self._loop = asyncio.get_running_loop()
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self._near, _ = await self._loop.create_datagram_endpoint(
            lambda: _Datagrams(self._forth), local_addr=("127.0.0.1", port)
        )
        self._inject = socket.socket(type=socket.SOCK_DGRAM)
        self.address = f"127.0.0.1:{port}"
        return ("127.0.0.1", port)

    def _forth(self, data: bytes, source: Any) -> None:
        if not self.carries(data):
            self._forget(source)
            return
        self.recorded.append(data)
        way = self._ways.get(source) or self._way(source)
        self._carry(lambda: way.sendto(data, self._target))

    def _way(self, source: Any) -> socket.socket:
        way = self._ways[source] = socket.socket(type=socket.SOCK_DGRAM)
        way.setblocking(False)
        self._loop.add_reader(way, self._back, way, source)
        return way

    def _forget(self, source: Any) -> None:
        if (way := self._ways.pop(source, None)) is not None:
            self._loop.remove_reader(way)
            way.close()

    def _back(self, way: socket.socket, source: Any) -> None:
        data = way.recv(65536)
        self._carry(lambda: self._near.sendto(data, source))

    def _carry(self, send: Callable[[], object]) -> None:
        if self.cut or self._chance.random() < self.loss:
            return
        for _ in range(2 if self._chance.random() < self.twice else 1):
            if self._chance.random() < self.late:
                self._loop.call_later(0.01, _unless_closed, send)
            else:
                _unless_closed(send)

    @property
    def connections(self) -> int:
        """How many clients are connected by TCP."""
        return len(self._tasks)

    def inject(self, data: bytes) -> None:
        """Send a datagram to the target as if it came from a client."""
        self._inject.sendto(data, self._target)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = self._loop.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # A task that is cancelled before its first step runs none of its own clean-up.
        task.add_done_callback(lambda _: writer.close())

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with self._kept(writer), suppress(OSError):
            first = b"" if self.cut else await reader.read(65536)
            if not first or not self.carries(first):
                return
            far_reader, far_writer = await asyncio.open_connection(*self._target)
            with self._kept(far_writer):
                far_writer.write(first)
                await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))

    @contextmanager
    def _kept(self, writer: asyncio.StreamWriter) -> Iterator[None]:
        """Among those that a cut ends, until it is closed."""
        self._writers.add(writer)
        try:
            yield
        finally:
            self._writers.discard(writer)
            writer.close()

    def cut_connections(self) -> None:
        """End every connection at once, with whatever is under way; what is carried may come again."""
        for writer in tuple(self._writers):
            writer.transport.abort()

    async def close(self) -> None:
        """Leave nothing open."""
        self.cut = True
        self._server.close()
        self.cut_connections()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for source in tuple(self._ways):
            self._forget(source)
        self._near.close()
        self._inject.close()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    sink.close()


def _unless_closed(send: Callable[[], object]) -> None:
    """What is late, or meets a closed port of the target, is lost."""
    with suppress(OSError):
        send()
