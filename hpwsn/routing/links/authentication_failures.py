"""Log messages about a wrong secret or an unknown protocol, one a minute for each host."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

log = logging.getLogger(__name__)

LOG_INTERVAL = 60.0
MAX_HOSTS = 1000


_WRONG_SECRET = (
    "frames from %s with the name %r are dropped: their tags were not made with this cluster's secret;"
    " compare cluster.secret on both nodes"
)
_UNREADABLE = "closed a connection from %s to the port for links: %s"


class AuthenticationFailures:
    """Logs failures, and remembers which hosts were logged recently."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._logged: dict[tuple[str, str], float] = {}

    def report_wrong_secret(self, name: str, address: Any) -> None:
        """Log that a frame was authenticated with another secret."""
        self._write(_WRONG_SECRET, address, name[:80])

    def report_unreadable(self, error: ValueError, address: Any) -> None:
        """Log that the peer does not speak the protocol of links."""
        self._write(_UNREADABLE, address, str(error)[:200])

    def _write(self, message: str, address: Any, what: str) -> None:
        now = self._clock()
        host = address[0] if isinstance(address, tuple) else str(address)
        if now - self._logged.get((message, host), -LOG_INTERVAL) < LOG_INTERVAL:
            return
        if len(self._logged) >= MAX_HOSTS:
            self._logged.clear()
        self._logged[message, host] = now
        log.warning(message, host, what)
