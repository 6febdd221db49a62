"""Figures of a client, publisher or receiver: what it has sent and received, by a method and in the log.

An application that publishes or subscribes shows them in its own monitoring. The log gets at most one line a
minute while there is traffic, and one at the end, at level INFO; the only line of an object that lived for
less than a minute is at level DEBUG.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, fields

log = logging.getLogger(__name__)

LOG_INTERVAL = 60.0
"""Seconds between two lines in the log."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Counts since the object was created."""

    published: int = 0
    """Notifications that the broker has accepted."""
    failed: int = 0
    """Notifications that were not accepted: the broker refused them, or all retries failed."""
    requests: int = 0
    """Requests with notifications that the broker has accepted."""
    repeated: int = 0
    """Requests that were sent again, because a reply was lost or the broker was busy."""
    seconds: float = 0.0
    """Total time from sending to acceptance; divided by `requests`, the mean latency."""
    slowest: float = 0.0
    """The longest time from sending to acceptance, in seconds."""
    received: int = 0
    """Notifications that were delivered here or fetched from pull points."""
    deliveries: int = 0
    """Requests or fetches that delivered notifications."""
    refused: int = 0
    """Deliveries that were refused: malformed, no room, or the callback failed. The broker repeats them."""


class Counters:
    """Counts for one object; not for use by several threads at the same time."""

    def __init__(self, owner: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._owner = owner
        self._clock = clock
        self._counts = dict.fromkeys((each.name for each in fields(Figures)), 0.0)
        self._logged = dict(self._counts)
        self._created = clock()
        self._log_at = self._created + LOG_INTERVAL

    @property
    def now(self) -> float:
        """The time of the counters' clock, for `published`."""
        return self._clock()

    def published(self, count: int, sent_at: float) -> None:
        """Count the notifications of an accepted request; `sent_at` is the time when it was sent."""
        now = self._clock()
        counts, latency = self._counts, now - sent_at
        counts["published"] += count
        counts["requests"] += 1
        counts["seconds"] += latency
        counts["slowest"] = max(counts["slowest"], latency)
        self._log_if_due(now)

    def received(self, count: int) -> None:
        """Count the notifications of one delivery."""
        self._counts["received"] += count
        self._counts["deliveries"] += 1
        self._log_if_due(self._clock())

    def add(self, name: str, count: int = 1) -> None:
        """Add to another count."""
        self._counts[name] += count

    def figures(self) -> Figures:
        """The counts so far."""
        counts = self._counts
        whole = {name: int(count) for name, count in counts.items() if name not in ("seconds", "slowest")}
        return Figures(**whole, seconds=counts["seconds"], slowest=counts["slowest"])

    def close(self) -> None:
        """Log the figures since the last line, if there are any."""
        if self._counts != self._logged:
            self._log()

    def _log_if_due(self, now: float) -> None:
        if now >= self._log_at:
            self._log_at = now + LOG_INTERVAL
            self._log()

    def _log(self) -> None:
        figures = self.figures()
        self._logged = dict(self._counts)
        parts = []
        if figures.published or figures.failed:
            mean = 1000 * figures.seconds / figures.requests if figures.requests else 0.0
            parts.append(
                f"published {figures.published} in {figures.requests} requests (mean {mean:.1f} ms,"
                f" slowest {1000 * figures.slowest:.1f} ms), failed {figures.failed},"
                f" requests repeated {figures.repeated}"
            )
        if figures.received or figures.refused:
            parts.append(
                f"received {figures.received} in {figures.deliveries} deliveries, refused {figures.refused}"
            )
        young = self._clock() < self._created + LOG_INTERVAL
        log.log(logging.DEBUG if young else logging.INFO, "%s: %s", self._owner, "; ".join(parts))
