"""The clock of a node's monitoring: once a second a sample, the alerts, the events and the live stream.

A sample is taken in the middle of a second, so that a step of one second has exactly one, unless the node is
too busy. The history is saved every SAVE_EVERY seconds and at a clean stop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hpwsn.background import BackgroundTask
from hpwsn.monitoring.histories import SAVE_EVERY
from hpwsn.monitoring.process_figures import ProcessFigures
from hpwsn.node.monitor.live_content import LiveContent
from hpwsn.node.monitor.node_events import NodeEvents
from hpwsn.node.monitor.node_findings import NodeFindings
from hpwsn.node.monitor.node_sample import NodeSample

if TYPE_CHECKING:
    from hpwsn.node.node_parts import Parts


SHORTEST = 0.1
"""Seconds between two samples: a timer that ends a moment early must not bring a second one at once."""


def until_sample(now: float) -> float:
    """Seconds until the middle of the next second, at least SHORTEST."""
    pause = 1 - (now - 0.5) % 1
    return pause if pause >= SHORTEST else pause + 1


class NodeMonitor(BackgroundTask):
    """Watches one node from its start to its stop."""

    def __init__(self, parts: Parts, connections: Callable[[], int]) -> None:
        super().__init__(self._run_each_second)
        self._parts = parts
        self.process = ProcessFigures()
        self.sample = NodeSample(parts, self.process, connections)
        self._findings = NodeFindings(parts, self.sample)
        self._events = NodeEvents(parts)
        self._content = LiveContent(parts, self.sample)
        self._saved = time.monotonic()

    async def open(self) -> None:
        """Load the history, note the start, and begin; call it once the state is recovered."""
        parts = self._parts
        problems = await asyncio.to_thread(parts.histories.load)
        crashed = parts.events_log.started(f"node {parts.name} started")
        for problem in problems:
            parts.events_log.note("problem", problem)
        parts.histories.of(parts.name).restarted(parts.clock())
        parts.live.source("alerts", lambda: listed(parts.alerts.described()))
        self._content.open()
        self._events.listen()
        self.crashed = crashed
        self.start()

    async def _run_each_second(self) -> None:
        while True:
            await asyncio.sleep(until_sample(self._parts.clock()))
            self.look()
            if time.monotonic() - self._saved >= SAVE_EVERY:
                self._saved = time.monotonic()
                await self._parts.histories.save()

    def look(self) -> None:
        """Do the work of one second."""
        parts, now, wall = self._parts, time.monotonic(), self._parts.clock()
        sample = self.sample.take(now)
        parts.histories.of(parts.name).add(wall, sample)
        if parts.alerts.update(self._findings.look(now=now, wall=wall), now=now, wall=wall):
            parts.live.changed("alerts")
        self._events.look()
        self._content.look()
        parts.events_log.tick()
        parts.live.tick()

    async def close(self) -> None:
        """Stop, and save the history."""
        await super().close()
        await self.sample.close()
        await self._parts.histories.save()

    async def stopped(self) -> None:
        """Note the clean stop; call it last, when everything else is stored."""
        parts = self._parts
        await asyncio.to_thread(parts.events_log.close, f"node {parts.name} stopped")


def listed(items: list[dict[str, Any]]) -> dict[str, Any]:
    """A complete list in the form of the API."""
    return {"items": items, "next": None, "total": len(items)}
