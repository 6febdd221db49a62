"""Who sends frames that nobody with the cluster secret wrote: told in the log, once a minute at most."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

log = logging.getLogger(__name__)

EVERY = 60.0
MOST = 1000


class Strangers:
    """Remembers whom the log has named lately."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._noted: dict[str, float] = {}

    def note(self, name: str, address: Any) -> None:
        """Write who it was, unless that was done within the minute."""
        now = self._clock()
        host = address[0] if isinstance(address, tuple) else str(address)
        if now - self._noted.get(host, -EVERY) < EVERY:
            return
        if len(self._noted) >= MOST:
            self._noted.clear()
        self._noted[host] = now
        log.warning(
            "frames from %s, which calls itself %r, are dropped: they were not written with this cluster's"
            " secret; compare cluster.secret on both nodes",
            host,
            name[:80],
        )
