"""Connections that go from one process to another as open files, each with the bytes it has brought so far.

The core gives those that it has accepted to doors. One whose request is not for the lane comes back, client's
address and all, and outlives the door. The way is a SOCK_SEQPACKET pair, both ends of which give and take:
the first packet of a connection has its file, the number of bytes, and the first of them; others the rest.
"""

from __future__ import annotations

import array
import asyncio
import os
import socket
from collections import deque
from collections.abc import Callable
from struct import Struct, error

from hpwsn.workers.frames import BadFrame

PACKET = 1 << 16
"""Bytes of a connection in one packet, which the system must take whole."""

_head = Struct("!I")
_AGAIN = 0.01


class Giver:
    """Sends in order, and waits where the other process is behind; the socket is the taker's to close."""

    def __init__(self, way: socket.socket) -> None:
        self._way = way
        self._loop = asyncio.get_running_loop()
        self._packets: deque[tuple[bytes, int | None]] = deque()
        way.setblocking(False)

    def give(self, file: int, data: bytes) -> None:
        """Pass a file on, which is closed here once it is on its way."""
        if self._way.fileno() < 0:
            os.close(file)
            return
        idle = not self._packets
        self._packets.append((_head.pack(len(data)) + data[:PACKET], file))
        self._packets += [(data[at : at + PACKET], None) for at in range(PACKET, len(data), PACKET)]
        if idle:
            self._pump()

    def _pump(self) -> None:
        if self._way.fileno() < 0:
            return
        self._loop.remove_writer(self._way)
        while self._packets:
            data, file = self._packets[0]
            try:
                self._way.sendmsg([data], _rights(file))
            except BlockingIOError:
                self._loop.add_writer(self._way, self._pump)
                return
            except BrokenPipeError:
                # The other process is gone, which the link tells.
                return
            except OSError:
                # Too many files are on their way to a process that is behind.
                self._loop.call_later(_AGAIN, self._pump)
                return
            self._packets.popleft()
            if file is not None:
                os.close(file)

    def __len__(self) -> int:
        return len(self._packets)

    def close(self) -> None:
        """Give nothing more; what is not under way ends."""
        for _, file in self._packets:
            if file is not None:
                os.close(file)
        self._packets.clear()


def _rights(file: int | None) -> list[tuple[int, int, array.array[int]]]:
    if file is None:
        return []
    return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file]))]


class Taker:
    """Tells each connection once all of its bytes are there, one lost for want of files, or what is wrong."""

    def __init__(
        self,
        way: socket.socket,
        take: Callable[[socket.socket, bytes], None],
        failed: Callable[[BadFrame], None],
        lost: Callable[[], None] = lambda: None,
    ) -> None:
        self._way = way
        self._take = take
        self._failed = failed
        self._lost = lost
        self._skipped = False
        self._file: socket.socket | None = None
        self._parts: list[bytes] = []
        self._missing = 0
        self._loop = asyncio.get_running_loop()
        way.setblocking(False)
        self._loop.add_reader(way, self._readable)

    def _readable(self) -> None:
        try:
            data, files, flags, _ = socket.recv_fds(
                self._way, PACKET + _head.size, 1, socket.MSG_CMSG_CLOEXEC
            )
        except BlockingIOError:
            return
        except OSError:
            data, files, flags = b"", [], 0
        if not data:
            self.close()
            return
        try:
            self._packet(data, files, bool(flags & socket.MSG_CTRUNC))
        except BadFrame as wrong:
            self.close()
            self._failed(wrong)

    def _packet(self, data: bytes, files: list[int], truncated: bool) -> None:
        if self._file is None and not self._skipped:
            # This process has as many files as it may: the system has ended the connection, and others go on.
            self._skipped = truncated and not files
            data = self._begin(data, files)
        elif files:
            os.close(files[0])
            raise BadFrame("a connection came in the middle of another")
        self._parts.append(data)
        self._missing -= len(data)
        if self._missing < 0:
            raise BadFrame("a connection came with more bytes than it says")
        if not self._missing:
            self._complete()

    def _complete(self) -> None:
        file, parts = self._file, self._parts
        self._file, self._parts = None, []
        if file is None:
            self._skipped = False
            self._lost()
        else:
            self._take(file, b"".join(parts))

    def _begin(self, data: bytes, files: list[int]) -> bytes:
        if files:
            self._file = socket.socket(fileno=files[0])
        elif not self._skipped:
            raise BadFrame("a packet came without a connection")
        try:
            (self._missing,) = _head.unpack_from(data)
        except error as wrong:
            raise BadFrame(f"a connection cannot be read: {wrong}") from wrong
        return data[_head.size :]

    def close(self) -> None:
        """Take nothing more."""
        if self._way.fileno() < 0:
            return
        self._loop.remove_reader(self._way)
        self._loop.remove_writer(self._way)
        self._way.close()
        if self._file is not None:
            self._file.close()
            self._file = None
