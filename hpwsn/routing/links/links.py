"""The links of a node to all members: one method sends a message over UDP or TCP, one callback receives.

Both transports use the same port number. This module chooses the transport of a message and knows the
addresses of the members; it refuses messages to unknown members. Host names are resolved when the members
change, never while sending.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from hpwsn.errors import HpwsnError
from hpwsn.routing.links.link_traffic import LinkTraffic
from hpwsn.routing.links.tcp import OnLarge, OnState, TcpLinks
from hpwsn.routing.links.udp import OnMessage, UdpLinks
from hpwsn.routing.links.udp_sending import Address, LinkOptions

log = logging.getLogger(__name__)

BIND_ATTEMPTS = 20
MAPPED = socket.AI_V4MAPPED
"""A socket that is bound to all addresses of IPv6 reaches addresses of IPv4 too."""


class Links:
    """All links of one node; create, use and close them in one event loop.

    `on_large` gets large messages in pieces; without it, they are joined for `on_message`.
    """

    def __init__(
        self,
        name: str,
        secret: bytes,
        options: LinkOptions,
        *,
        on_message: OnMessage,
        on_state: OnState,
        on_large: OnLarge | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self._host = host
        self._port = port
        self._name = name
        self._members: dict[str, tuple[str, int]] = {}
        self._lookups: dict[str, asyncio.Task[None]] = {}
        self._udp = UdpLinks(name, secret, options, on_message)
        self._tcp = TcpLinks(
            name,
            secret,
            options,
            on_message,
            on_state,
            on_large or (lambda member, pieces: on_message(member, b"".join(pieces))),
        )

    async def start(self) -> tuple[str, int]:
        """Bind the port for both transports; return host and port."""
        for attempt in range(BIND_ATTEMPTS):
            listener = self._listen()
            port = int(listener.getsockname()[1])
            try:
                await self._udp.start(self._host, port)
            except OSError as error:
                listener.close()
                if self._port or attempt == BIND_ATTEMPTS - 1 or error.errno != errno.EADDRINUSE:
                    raise self._cannot_listen(error) from error
                continue
            await self._tcp.start(listener)
            break
        return self._host, port

    def _listen(self) -> socket.socket:
        try:
            family = socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)[0][0]
            every = family == socket.AF_INET6 and self._host == "::" and socket.has_dualstack_ipv6()
            return socket.create_server(
                (self._host, self._port), family=family, backlog=256, dualstack_ipv6=every
            )
        except OSError as error:
            raise self._cannot_listen(error) from error

    def _cannot_listen(self, error: OSError) -> HpwsnError:
        return HpwsnError(
            f"cannot bind {self._host}:{self._port} for links to other nodes: {error.strerror or error};"
            " set routing.host and routing.port to an address of this machine and a free port (0 finds one)"
        )

    def set_members(self, members: Mapping[str, tuple[str, int]]) -> None:
        """Set the members and their addresses; this node itself is ignored."""
        for gone in self._members.keys() - members.keys():
            self._forget(gone)
        for name, address in members.items():
            if name == self._name or self._members.get(name) == address:
                continue
            self._members[name] = address
            self._resolve(name, address)

    def _forget(self, name: str) -> None:
        del self._members[name]
        if (lookup := self._lookups.pop(name, None)) is not None:
            lookup.cancel()
        self._udp.remove_member(name)
        self._tcp.remove_member(name)

    def _resolve(self, name: str, address: tuple[str, int]) -> None:
        try:
            found = socket.getaddrinfo(
                *address,
                family=self._udp.family,
                type=socket.SOCK_DGRAM,
                flags=socket.AI_NUMERICHOST | MAPPED,
            )
        except socket.gaierror:
            if (earlier := self._lookups.pop(name, None)) is not None:
                earlier.cancel()
            self._lookups[name] = asyncio.get_running_loop().create_task(self._look_up(name, address))
        else:
            self._set_address(name, found[0][4])

    async def _look_up(self, name: str, address: tuple[str, int]) -> None:
        pause = 0.5
        while True:
            try:
                found = await asyncio.get_running_loop().getaddrinfo(
                    *address, family=self._udp.family, type=socket.SOCK_DGRAM, flags=MAPPED
                )
            except OSError as error:
                log.warning("the host of node %s, %s, cannot be resolved: %s", name, address[0], error)
                await asyncio.sleep(pause)
                pause = min(2 * pause, 30.0)
            else:
                self._set_address(name, found[0][4])
                return

    def _set_address(self, name: str, address: Address) -> None:
        self._udp.set_member(name, address)
        self._tcp.set_member(name, address)

    def send(self, member: str, payload: bytes, *, reliable: bool, topic: str | None = None) -> bool:
        """Send a message, over TCP if it is reliable or too long for UDP; False if it is refused.

        It goes behind a large message with the same topic.
        """
        if topic is not None and self._tcp.holds_back(member, topic):
            return self._tcp.send_large(member, (payload,), topic, None)
        by_udp = not reliable and len(payload) <= self._udp.longest
        return (self._udp if by_udp else self._tcp).send(member, payload)

    def send_large(self, member: str, parts: Sequence[bytes], topic: str | None, key: Hashable) -> bool:
        """Send a large message over TCP; other topics overtake it. See TcpLinks.send_large."""
        return self._tcp.send_large(member, parts, topic, key)

    @property
    def bulk_bytes(self) -> int:
        """The most bytes of large messages that are on their way to one member."""
        return self._tcp.bulk_bytes

    async def has_room(self, most: int) -> None:
        """Wait until no queue has more bytes than this."""
        while any(self.waiting(member) > most for member in self._members):  # noqa: ASYNC110
            await asyncio.sleep(0.005)

    def waiting(self, member: str) -> int:
        """Return the bytes in the queues for a member."""
        return self._udp.waiting(member) + self._tcp.waiting(member)

    def traffic(self) -> Iterator[tuple[str, LinkTraffic]]:
        """Yield the member and the counters of each link over which something was sent."""
        return chain(self._udp.traffic(), self._tcp.traffic())

    def figures(self) -> dict[str, Any]:
        """Return the counters for /status and /metrics."""
        return {"udp": self._udp.figures(), "tcp": self._tcp.figures()}

    async def close(self, timeout_seconds: float = 1.0) -> None:
        """Close all links, after the queues are empty or the timeout is over."""
        for lookup in self._lookups.values():
            lookup.cancel()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_seconds):
                while self._udp.figures()["waiting_bytes"]:  # noqa: ASYNC110
                    await asyncio.sleep(0.005)
        await self._tcp.close(timeout_seconds)
        self._udp.close()
