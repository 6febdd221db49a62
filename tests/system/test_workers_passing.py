"""Connections between core and doors: accepted for the door with the fewest, passed on whole and in order."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
from collections.abc import Iterator

import pytest

from hpwsn.workers.accepting import Acceptor
from hpwsn.workers.frames import BadFrame
from hpwsn.workers.passing import PACKET, Giver, Taker

Ends = tuple[socket.socket, socket.socket]


@pytest.fixture
def way() -> Iterator[Ends]:
    """Both ends of a way."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        yield ours, theirs


class Core:
    """Takes connections, and notes what they brought."""

    def __init__(self, way: socket.socket) -> None:
        self.taken: list[tuple[socket.socket, bytes]] = []
        self.wrong: list[BadFrame] = []
        self.lost = 0
        self.taker = Taker(
            way, lambda file, data: self.taken.append((file, data)), self.wrong.append, self._count
        )

    def _count(self) -> None:
        self.lost += 1

    async def until(self, count: int) -> None:
        async with asyncio.timeout(20):
            while len(self.taken) + len(self.wrong) + self.lost < count:  # noqa: ASYNC110
                await asyncio.sleep(0.001)


async def test_connections_arrive_open_and_with_all_of_their_bytes(way: Ends) -> None:
    core, giver = Core(way[0]), Giver(way[1])
    sizes = [0, 1, PACKET, PACKET + 1, 40 * PACKET, 7]
    clients = []
    for size in sizes:
        client, connection = socket.socketpair()
        clients.append(client)
        giver.give(connection.detach(), b"x" * size)
    await core.until(len(sizes))
    assert [len(data) for _, data in core.taken] == sizes
    for client, (file, _) in zip(clients, core.taken, strict=True):
        file.sendall(b"hello")
        assert client.recv(10) == b"hello"
        client.close()
        file.close()
    giver.close()
    core.taker.close()


async def test_a_process_out_of_files_loses_the_connection_and_takes_the_next(way: Ends) -> None:
    core, giver = Core(way[0]), Giver(way[1])
    pairs = [socket.socketpair() for _ in range(4)]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for _, connection in pairs[:3]:
        giver.give(connection.detach(), b"x" * (PACKET + 7))
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        await core.until(3)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (core.lost, core.wrong) == (3, [])
    assert [client.recv(1) for client, _ in pairs[:3]] == [b""] * 3
    giver.give(pairs[3][1].detach(), b"next")
    await core.until(4)
    assert [data for _, data in core.taken] == [b"next"]
    core.taken[0][0].close()
    for client, _ in pairs:
        client.close()
    core.taker.close()


@pytest.mark.parametrize(
    ("packets", "words"),
    [
        ([(b"\0\0\0\1x", False)], "without a connection"),
        ([(b"\0\0", True)], "cannot be read"),
        ([(b"\0\0\0\1xy", True)], "more bytes than it says"),
        ([(b"\0\0\0\4x", True), (b"x", True)], "in the middle of another"),
    ],
)
async def test_what_makes_no_sense_is_told_and_ends_the_way(
    way: Ends, packets: list[tuple[bytes, bool]], words: str
) -> None:
    core = Core(way[0])
    for data, with_file in packets:
        client, connection = socket.socketpair()
        with client, connection:
            socket.send_fds(way[1], [data], [connection.fileno()] if with_file else [])
    await core.until(1)
    assert words in str(core.wrong[0])
    assert way[0].fileno() < 0


class Door:
    """Counts what it is given, and keeps it."""

    def __init__(self, load: int) -> None:
        self.load = load
        self.ready = True

    def give(self, file: int) -> None:
        os.close(file)
        self.load += 1


async def test_each_connection_goes_to_the_door_with_the_fewest_and_waits_while_there_is_none() -> None:
    doors = [Door(0), Door(3), Door(1)]
    doors[0].ready = False
    listener = socket.create_server(("127.0.0.1", 0))
    acceptor = Acceptor(listener, lambda: doors)
    acceptor.start()
    clients = [socket.create_connection(listener.getsockname()) for _ in range(6)]

    async def until(loads: list[int]) -> None:
        async with asyncio.timeout(20):
            while [door.load for door in doors] != loads:  # noqa: ASYNC110
                await asyncio.sleep(0.001)

    await until([0, 5, 5])
    doors[1].ready = doors[2].ready = False
    clients.append(socket.create_connection(listener.getsockname()))
    await asyncio.sleep(0)
    doors[0].ready = True
    await until([1, 5, 5])
    doors[1].ready = doors[2].ready = True
    doors[0].load = 9
    clients += [socket.create_connection(listener.getsockname()) for _ in range(2)]
    await until([9, 6, 6])
    acceptor.close()
    for client in clients:
        client.close()


async def test_doors_with_as_many_connections_take_turns() -> None:
    class Forgetful(Door):
        def give(self, file: int) -> None:
            os.close(file)
            given.append(self)

    given: list[Door] = []
    doors = [Forgetful(0), Forgetful(0)]
    listener = socket.create_server(("127.0.0.1", 0))
    acceptor = Acceptor(listener, lambda: doors)
    acceptor.start()
    clients = [socket.create_connection(listener.getsockname()) for _ in range(4)]
    async with asyncio.timeout(20):
        while len(given) < 4:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    assert sorted(map(doors.index, given)) == [0, 0, 1, 1]
    acceptor.close()
    for client in clients:
        client.close()
