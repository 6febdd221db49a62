"""The admin node's monitoring: once a second histories, alerts, events and the live stream.

The figures of nodes come with their heartbeats. Each second, the last figures of every live node become a
sample of its history; a node that is not alive has gaps. Histories are saved every SAVE_EVERY seconds and at
a clean stop, and so survive restarts. Nodes that join, die, return, leave or are removed are events, and do
not wait for the second to end.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from hpwsn.background import BackgroundTask
from hpwsn.monitoring.alerts import Alerts, Finding
from hpwsn.monitoring.events_log import EventsLog
from hpwsn.monitoring.histories import SAVE_EVERY, Histories
from hpwsn.monitoring.live import LiveHub
from hpwsn.settings import Config
from hpwsn_admin.cluster_findings import NODE_DEAD, ClusterFindings
from hpwsn_admin.members import Members
from hpwsn_admin.registry import Record

_DIED = "died"
_JOINED, _RETURNED = "joined", "returned"
_WORDS = {"alive": _JOINED, "dead": _DIED, "left": "left"}


class ClusterMonitor(BackgroundTask):
    """Watches all nodes from the admin node's start to its stop."""

    def __init__(self, config: Config, members: Members) -> None:
        super().__init__(self._run_each_second)
        data, settings = Path(config.admin.dir), config.monitoring
        self._members = members
        self.histories = Histories(data / "history")
        self.events_log = EventsLog(data / "events.log", clock=time.time, kept=settings.events_kept)
        self.alerts = Alerts(settings.alert_keep)
        self.live = LiveHub(time.monotonic)
        self._findings = ClusterFindings(members, settings)
        self._known: dict[str, Record] = {}
        self._saved = time.monotonic()

    async def open(self) -> None:
        """Load the histories, note the start, and begin; the registry must be restored."""
        problems = await asyncio.to_thread(self.histories.load)
        self.events_log.started("the admin node started")
        for problem in problems:
            self.events_log.note("problem", problem)
        self._known = {record.name: record for record in self._members.registry}
        self.live.source("topology", lambda: self._members.topology.encode())
        self.live.source("alerts", self._list_alerts)
        self.alerts.raised.add(self._raised)
        self.alerts.cleared.add(self._cleared)
        self._members.topology_changed.add(lambda topology: self._look_at_change())
        self.start()

    def _list_alerts(self) -> dict[str, Any]:
        items = self.alerts.described()
        return {"items": items, "next": None, "total": len(items)}

    async def _run_each_second(self) -> None:
        while True:
            await asyncio.sleep(1 - (time.time() - 0.5) % 1)
            self.look()
            if time.monotonic() - self._saved >= SAVE_EVERY:
                self._saved = time.monotonic()
                await self.histories.save()

    def look(self) -> None:
        """Do the work of one second."""
        now, wall = time.monotonic(), time.time()
        self._take_samples(wall)
        if self.alerts.update(self._findings.look(), now=now, wall=wall):
            self.live.changed("alerts")
        self.events_log.tick()
        self.live.tick()

    def _look_at_change(self) -> None:
        """A node that died or returned is told at once, with its alert."""
        now, wall = time.monotonic(), time.time()
        self._look_at_nodes(wall)
        self.live.tell("topology")
        if self.alerts.update(self._findings.look(), now=now, wall=wall):
            self.live.tell("alerts")

    def _take_samples(self, wall: float) -> None:
        for record in self._members.registry:
            report = self._members.report(record.name) if record.alive else None
            if report is not None and report.figures:
                self.histories.of(record.name).add(wall, report.figures)

    def _look_at_nodes(self, wall: float) -> None:
        before, self._known = self._known, {record.name: record for record in self._members.registry}
        for name, record in self._known.items():
            self._compare(before.get(name), record, wall)
        for name in before.keys() - self._known.keys():
            self.events_log.note("node", f"node {name} was removed")
            self.histories.forget(name)

    def _compare(self, before: Record | None, record: Record, wall: float) -> None:
        if before is not None and before.state == record.state and before.session == record.session:
            return
        word = _WORDS[record.state] if before is None or not record.alive else _RETURNED
        self.events_log.note("node", f"node {record.name} of cluster {record.cluster} {word}: {record.url}")
        if record.alive and (before is None or before.session != record.session):
            self.histories.of(record.name).restarted(wall)

    def _raised(self, finding: Finding) -> None:
        if not finding.name.startswith(NODE_DEAD):
            self.events_log.note("problem", f"alert {finding.name}: {finding.text}")

    def _cleared(self, finding: Finding) -> None:
        if not finding.name.startswith(NODE_DEAD):
            self.events_log.note("problem", f"alert {finding.name} is over")

    async def close(self) -> None:
        """Stop, save the histories, and note the clean stop."""
        await super().close()
        await self.histories.save()
        await asyncio.to_thread(self.events_log.close, "the admin node stopped")
