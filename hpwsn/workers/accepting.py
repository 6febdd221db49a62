"""Accepts the node's connections and gives each to the door that has the fewest.

The system's own ways (SO_REUSEPORT, a socket that all doors listen on) spread connections by chance, and a
few publishers that keep theirs for hours would leave a door idle. Where no door is there to take them,
connections wait in the system's queue.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from typing import Protocol

log = logging.getLogger(__name__)

BURST = 64
"""Connections that are accepted before anything else has its turn."""
PAUSE = 0.05
"""Seconds until the next look for a door, or for a file that has become free."""


class Taking(Protocol):
    """A door as it is seen from here."""

    @property
    def ready(self) -> bool:
        """Whether it takes connections."""

    @property
    def load(self) -> int:
        """How many it has, those on their way included."""

    def give(self, file: int) -> None:
        """Pass an accepted connection on."""


class Acceptor:
    """The listening socket of a node."""

    def __init__(self, listener: socket.socket, doors: Callable[[], Sequence[Taking]]) -> None:
        self._listener = listener
        self._doors = doors
        self._loop = asyncio.get_running_loop()
        self._turn = 0
        self._later: asyncio.TimerHandle | None = None
        listener.setblocking(False)

    def start(self) -> None:
        """Accept from now on."""
        self._loop.add_reader(self._listener, self._readable)

    def _readable(self) -> None:
        for _ in range(BURST):
            ready = [door for door in self._doors() if door.ready]
            if not ready:
                self._pause()
                return
            try:
                connection, _ = self._listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:
                log.error("no connection can be accepted: %s", error)
                self._pause()
                return
            self._turn += 1
            # Doors with as many take turns: else connections that last for one request are all the first's.
            at = self._turn % len(ready)
            min(ready[at:] + ready[:at], key=lambda door: door.load).give(connection.detach())

    def _pause(self) -> None:
        self._loop.remove_reader(self._listener)
        self._later = self._loop.call_later(PAUSE, self.start)

    def close(self) -> None:
        """Accept no more."""
        if self._later is not None:
            self._later.cancel()
        self._loop.remove_reader(self._listener)
        self._listener.close()
