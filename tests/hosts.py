"""Two places with hosts of their own and a network between them that can be cut, for tests of a split.

Where the machine allows it, hosts are network namespaces on two switches (bridges) with one cable between
them; a cut takes the cable away, so that packets vanish and nobody is told. Elsewhere all is on the loopback
address, nodes reach each other's links and the admin node through relays, and a cut has these drop what is
not for their own side. In CI the second is an error. `TEST_NETWORK=relay` takes the second where both are
possible. The kernel of the machine where this was written has no netem, so loss is always the relay's.
"""

from __future__ import annotations

import os
import subprocess
import warnings
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from typing import Literal, Protocol
from urllib.parse import urlsplit

from benchmarks.tools.lossy_relay import LossyRelay

from hpwsn.routing.wire.frames import MalformedFrame, parse_frame
from tests.cluster import AdminProcess, Member
from tests.harness import quiet_port
from tests.patience import PATIENCE
from tests.user_namespace import NEEDS_ROOT

Side = Literal["left", "right"]
SIDES: tuple[Side, Side] = ("left", "right")


class Hosts(Protocol):
    """Two places; the test itself is in both. `silent` is whether nobody is told of a cut."""

    silent: bool

    def address(self, side: Side) -> str:
        """Where the nodes of a side reach the test."""

    def admin(self, folder: Path) -> AdminProcess:
        """The admin node, on the left."""

    async def member(self, folder: Path, name: str, side: Side, *arguments: str) -> Member:
        """A node of the cluster `one`, once the admin node runs."""

    def cut(self) -> None:
        """Take the way between the sides away."""

    def heal(self) -> None:
        """Give it back."""


@asynccontextmanager
async def two_places() -> AsyncIterator[Hosts]:
    """The hosts that this machine allows."""
    async with AsyncExitStack() as stack:
        if os.environ.get("TEST_NETWORK") != "relay" and (found := _namespaces()) is not None:
            stack.push(found.close)
            yield found
        else:
            yield Relayed(stack)


def _namespaces() -> Namespaces | None:
    """Hosts as namespaces, or None and a warning that says what is missing; in CI an error says it."""
    try:
        return Namespaces()
    except FileNotFoundError as error:
        missing = f"apt-get install iproute2 ({error})"
    except (OSError, subprocess.CalledProcessError) as error:
        said = error.stderr.strip() if isinstance(error, subprocess.CalledProcessError) else error
        missing = f"{NEEDS_ROOT} ({said})"
    if os.environ.get("CI") == "true":
        raise AssertionError(f"hosts cannot be network namespaces: {missing}")
    warnings.warn(f"hosts are relays on the loopback address: {missing}", stacklevel=2)
    return None


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True, timeout=PATIENCE)


class Namespaces:
    """Hosts as network namespaces.

    The network is 10.N.0.0/16. Hosts on the left are 10.N.1.x and those on the right 10.N.2.x; the test has
    an interface on each switch, and its routes do not let one stand for the other.
    """

    silent = True

    def __init__(self) -> None:
        self._mark = f"hw{os.getpid()}"
        self._net = f"10.{64 + os.getpid() % 128}"
        self._switch = f"{self._mark}-switch"
        self._hosts = 0
        with ExitStack() as undo:
            undo.callback(self._remove)
            self._lay()
            self.close = undo.pop_all().__exit__

    def _lay(self) -> None:
        inside = ("-n", self._switch)
        _ip("netns", "add", self._switch)
        _ip(*inside, "link", "add", "cable-left", "type", "veth", "peer", "name", "cable-right")
        for number, side in enumerate(SIDES, 1):
            mine, port = f"{self._mark}{side[0]}", f"test-{side}"
            _ip(*inside, "link", "add", side, "type", "bridge")
            _ip(*inside, "link", "set", side, "up")
            _ip(*inside, "link", "set", f"cable-{side}", "master", side, "up")
            _ip("link", "add", mine, "type", "veth", "peer", "name", port, "netns", self._switch)
            _ip(*inside, "link", "set", port, "master", side, "up")
            # Else the kernel answers for both addresses on both sides, and a cut would take one away.
            Path(f"/proc/sys/net/ipv4/conf/{mine}/arp_ignore").write_text("1")
            _ip("address", "add", f"{self.address(side)}/32", "dev", mine)
            _ip("link", "set", mine, "up")
            _ip("route", "add", f"{self._net}.{number}.0/24", "dev", mine, "src", self.address(side))

    def address(self, side: Side) -> str:
        return f"{self._net}.0.{1 + SIDES.index(side)}"

    def _host(self, name: str, side: Side) -> tuple[str, str]:
        """A host on a side: its namespace and its address."""
        self._hosts += 1
        space, port = f"{self._mark}-{name}", f"port-{name}"
        address = f"{self._net}.{1 + SIDES.index(side)}.{self._hosts}"
        _ip("netns", "add", space)
        _ip("-n", self._switch, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", space)
        _ip("-n", self._switch, "link", "set", port, "master", side, "up")
        _ip("-n", space, "address", "add", f"{address}/16", "dev", "eth0")
        _ip("-n", space, "link", "set", "eth0", "up")
        _ip("-n", space, "link", "set", "lo", "up")
        return space, address

    def admin(self, folder: Path) -> AdminProcess:
        space, address = self._host("admin", "left")
        self._admin = AdminProcess(folder / "admin", "--host", address)
        self._admin.prefix = ("ip", "netns", "exec", space)
        return self._admin

    async def member(self, folder: Path, name: str, side: Side, *arguments: str) -> Member:
        space, address = self._host(name, side)
        node = Member(folder / name, name, "one", self._admin.base, "--host", address, *arguments)
        node.prefix = ("ip", "netns", "exec", space)
        return node

    def cut(self) -> None:
        _ip("-n", self._switch, "link", "set", "cable-left", "down")

    def heal(self) -> None:
        _ip("-n", self._switch, "link", "set", "cable-left", "up")

    def _remove(self) -> None:
        """The interfaces of a namespace go with it, and so do their other ends."""
        listed = subprocess.run(["ip", "netns", "list"], check=True, capture_output=True, text=True).stdout
        for space in (line.split()[0] for line in listed.splitlines()):
            if space.startswith(f"{self._mark}-"):
                _ip("netns", "delete", space)


class Relayed:
    """Everything on the loopback address, with relays in between."""

    silent = False

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self._sides: dict[str, Side] = {}
        self._relays: list[LossyRelay] = []
        self._cut = False

    def address(self, side: Side) -> str:
        return "127.0.0.1"

    def admin(self, folder: Path) -> AdminProcess:
        self._admin = AdminProcess(folder / "admin")
        return self._admin

    async def member(self, folder: Path, name: str, side: Side, *arguments: str) -> Member:
        self._sides[name] = side
        port = quiet_port()
        links = await self._relay(port)
        links.carries = lambda first: not self._cut or self._sides.get(_sender(first)) == side
        to_admin = await self._relay(urlsplit(self._admin.base).port or 0)
        to_admin.carries = lambda first: not self._cut or side == "left"
        settings = (f"routing.port={port}", f"routing.public={links.address}")
        given = [part for each in settings for part in ("--set", each)]
        return Member(folder / name, name, "one", f"http://{to_admin.address}", *given, *arguments)

    async def _relay(self, port: int) -> LossyRelay:
        relay = LossyRelay(("127.0.0.1", port))
        self._stack.push_async_callback(relay.close)
        await relay.start()
        self._relays.append(relay)
        return relay

    def cut(self) -> None:
        self._cut = True
        for relay in self._relays:
            relay.cut_connections()

    def heal(self) -> None:
        self._cut = False


def _sender(first: bytes) -> str:
    """Who sends: a datagram is a frame, and a connection begins with one after its length."""
    try:
        return parse_frame(first).sender
    except MalformedFrame:
        length = int.from_bytes(first[:4], "big")
        return parse_frame(first[4 : 4 + length]).sender
