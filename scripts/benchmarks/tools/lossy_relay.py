"""A network between two ports that loses, repeats and delays datagrams, and cuts connections on demand."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, take: Callable[[bytes, Any], None]) -> None:
        self._take = take

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self._take(data, addr)


class LossyRelay:
    """Stands for `target` at `address`; one client at a time by UDP, any number by TCP."""

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
        self.recorded: list[bytes] = []
        self._chance = random.Random(seed)
        self._client: Any = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> tuple[str, int]:
        """Open both ports, of one number."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        loop = asyncio.get_running_loop()
        self._near, _ = await loop.create_datagram_endpoint(
            lambda: _Datagrams(self._forth), local_addr=("127.0.0.1", port)
        )
        self._far, _ = await loop.create_datagram_endpoint(
            lambda: _Datagrams(self._back), local_addr=("127.0.0.1", 0)
        )
        return ("127.0.0.1", port)

    def _forth(self, data: bytes, source: Any) -> None:
        self._client = source
        self.recorded.append(data)
        self._carry(self._far, data, self._target)

    def _back(self, data: bytes, source: Any) -> None:
        self._carry(self._near, data, self._client)

    def _carry(self, transport: asyncio.DatagramTransport, data: bytes, to: Any) -> None:
        if self.cut or self._chance.random() < self.loss:
            return
        for _ in range(2 if self._chance.random() < self.twice else 1):
            if self._chance.random() < self.late:
                asyncio.get_running_loop().call_later(0.01, transport.sendto, data, to)
            else:
                transport.sendto(data, to)

    def inject(self, data: bytes) -> None:
        """Send a datagram to the target as if it came from the client."""
        self._far.sendto(data, self._target)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.cut:
            writer.close()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.close()
            return
        self._writers |= {writer, far_writer}
        for source, sink in ((reader, far_writer), (far_reader, writer)):
            task = asyncio.get_running_loop().create_task(self._pump(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65536):
                sink.write(data)
                await sink.drain()
        except OSError:
            pass
        finally:
            sink.close()
            self._writers.discard(sink)

    def cut_connections(self) -> None:
        """End every connection at once, with whatever is under way."""
        for writer in tuple(self._writers):
            writer.transport.abort()

    async def close(self) -> None:
        """Leave nothing open."""
        self._server.close()
        self.cut_connections()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._near.close()
        self._far.close()
