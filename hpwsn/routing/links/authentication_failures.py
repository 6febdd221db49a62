"""Who sends what nobody with the cluster secret wrote: told in the log, for each host once a minute."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

log = logging.getLogger(__name__)

LOG_INTERVAL = 60.0
MAX_HOSTS = 1000


_WRONG_SECRET = (
    "frames from %s, which calls itself %r, are dropped: they were not written with this cluster's"
    " secret; compare cluster.secret on both nodes"
)
_GARBAGE = "a connection from %s to the port for links is ended: %s"


class AuthenticationFailures:
    """Remembers whom the log has named lately."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._logged: dict[tuple[str, str], float] = {}

    def report_wrong_secret(self, name: str, address: Any) -> None:
        """Somebody there has another secret."""
        self._write(_WRONG_SECRET, address, name[:80])

    def report_unreadable(self, error: ValueError, address: Any) -> None:
        """Somebody there speaks another protocol."""
        self._write(_GARBAGE, address, str(error)[:200])

    def _write(self, message: str, address: Any, what: str) -> None:
        now = self._clock()
        host = address[0] if isinstance(address, tuple) else str(address)
        if now - self._logged.get((message, host), -LOG_INTERVAL) < LOG_INTERVAL:
            return
        if len(self._logged) >= MAX_HOSTS:
            self._logged.clear()
        self._logged[message, host] = now
        log.warning(message, host, what)
