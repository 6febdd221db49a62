"""The sample of a node: its counters as rates and levels, once a second.

It reads counters that the parts keep anyway. Only the number of dead letters is a query; it is asked again
when a dead letter was added, and otherwise every COUNT_AGAIN seconds, since operators and retention remove
some.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from hpwsn.errors import JournalUnavailable
from hpwsn.monitoring.process_figures import ProcessFigures
from hpwsn.node.monitor.backlog_survey import BacklogSurvey

if TYPE_CHECKING:
    from hpwsn.node.node_parts import Parts

COUNT_AGAIN = 10
"""Samples between two counts of the dead letters."""

Rates = tuple[float | None, float | None, float | None]
"""Published, delivered and failed per second; None where there is nothing to compare with."""


class _Rates:
    """The rates between two readings of the counters."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._at: float | None = None
        self._totals = (0, 0, 0)

    def read(self, now: float) -> Rates:
        """Read the counters; the rates since the reading before."""
        delivery = self._parts.delivery.totals
        totals = (self._parts.admission.accepted, delivery.delivered, sum(delivery.failures.values()))
        before, self._totals = self._totals, totals
        at, self._at = self._at, now
        if at is None or now <= at:
            return None, None, None
        published, delivered, failed = (
            (new - old) / (now - at) for new, old in zip(totals, before, strict=True)
        )
        return published, delivered, failed


class NodeSample:
    """Takes the samples of one node."""

    def __init__(self, parts: Parts, process: ProcessFigures, connections: Callable[[], int]) -> None:
        settings = parts.config.monitoring
        self._parts = parts
        self._process = process
        self._connections = connections
        self._sampled = _Rates(parts)
        self._reported = _Rates(parts)
        self._buried = -1
        self._asked = 0
        self._counting: asyncio.Task[None] | None = None
        self._dead_letters: int | None = None
        self.backlogs = BacklogSurvey(
            parts.subscriptions.__iter__,
            parts.overflow.limit,
            backlog=settings.backlog,
            queue_percent=settings.queue_percent,
        )
        self.values: dict[str, float | None] = {}
        """The last sample."""

    @property
    def failing(self) -> int:
        """Subscriptions whose consumer has failed, and for which notifications wait."""
        return self.backlogs.result.failing.count

    def take(self, now: float) -> dict[str, float | None]:
        """Take a sample; `now` is on a clock that nobody sets."""
        parts = self._parts
        self.backlogs.step()
        self._count_dead_letters()
        process = self._process.sample()
        published, delivered, failed = self._sampled.read(now)
        parts.timings.sample()
        self.values = {
            "published_rate": published,
            "delivered_rate": delivered,
            "failed_rate": failed,
            "waiting": self.backlogs.result.waiting,
            "dead_letters": self._dead_letters,
            "subscriptions": len(parts.subscriptions),
            "pull_points": len(parts.pull_points),
            "topics": len(parts.tree),
            "journal_bytes": parts.journal.state.database_bytes,
            "cpu": process["cpu"],
            "memory": process["rss"],
            "threads": process["threads"],
            "files": process["files"],
            "connections": self._connections(),
            **{
                f"{name}_{point}": seconds
                for name, points in parts.timings.latest.items()
                for point, seconds in points.items()
            },
        }
        return self.values

    def report(self, now: float) -> dict[str, float | None]:
        """The last sample, for a heartbeat; its rates are means since the report before."""
        names = ("published_rate", "delivered_rate", "failed_rate")
        rates = zip(names, self._reported.read(now), strict=True)
        return {**self.values, **{name: rate for name, rate in rates if rate is not None}}

    def _count_dead_letters(self) -> None:
        buried = self._parts.delivery.totals.buried
        self._asked += 1
        if self._counting is not None or (buried == self._buried and self._asked < COUNT_AGAIN):
            return
        self._buried, self._asked = buried, 0
        self._counting = asyncio.get_running_loop().create_task(self._count())

    async def _count(self) -> None:
        try:
            self._dead_letters = await self._parts.journal.dead_letter_count()
        except JournalUnavailable:
            self._dead_letters = None
        finally:
            self._counting = None

    async def close(self) -> None:
        """Wait for a count that is under way."""
        if self._counting is not None:
            await asyncio.wait([self._counting])
