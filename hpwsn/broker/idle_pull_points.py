"""The end of pull points that nobody reads: they are destroyed with the subscriptions that fill them.

It is a registry for LeaseTimer, which calls it when a lifetime may have passed.
"""

from __future__ import annotations

import logging

from hpwsn.broker.broker import Broker
from hpwsn.errors import JournalUnavailable
from hpwsn.listeners import Listeners

log = logging.getLogger(__name__)

TRY_AGAIN = 5.0
"""Seconds until the next attempt to destroy a pull point when the journal has failed."""


class IdlePullPoints:
    """Destroys the pull points of a broker when their lifetime passes without a read."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.lifetimes_changed: Listeners[()] = broker.pull_points.lifetimes_changed

    def next_due(self) -> float | None:
        """When the next lifetime may have passed; None if no pull point has one."""
        return self._broker.pull_points.next_due()

    async def expire(self, now: float) -> int:
        """Destroy the pull points whose lifetime has passed; return their number."""
        points = self._broker.pull_points
        idle = points.idle(now)
        for point in idle:
            try:
                await self._broker.destroy_pull_point(point.id)
            except JournalUnavailable:
                for left in idle:
                    points.keep(left, now + TRY_AGAIN)
                raise
            log.warning("pull point %s was destroyed: nobody read it for %g s", point.id, point.lifetime or 0)
        return len(idle)
