"""What is wrong in the clusters now: the rules of the admin node's alerts.

The rules look at the states of nodes, and at the figures and links in their heartbeats. Each alert names its
node, so that two nodes with the same trouble are two alerts. The thresholds are settings in `[monitoring]`;
the nodes' own alerts say more about one node.
"""

from __future__ import annotations

from collections.abc import Iterator

from hpwsn.logs import counted
from hpwsn.monitoring.alerts import Finding
from hpwsn.routing.membership.node_report import NodeReport
from hpwsn.settings import MonitoringSettings
from hpwsn_admin.members import Members
from hpwsn_admin.registry import DEAD, Record

NODE_DEAD = "NodeDead"
LATE = 2.0
"""Heartbeat intervals without a heartbeat after which a node is late."""


class ClusterFindings:
    """Looks at all nodes."""

    def __init__(self, members: Members, settings: MonitoringSettings) -> None:
        self._members = members
        self._settings = settings

    def look(self) -> Iterator[Finding]:
        """Everything that is wrong."""
        for record in self._members.registry:
            if record.state == DEAD:
                yield _dead(record)
            elif record.alive:
                yield from self._alive(record)

    def _alive(self, record: Record) -> Iterator[Finding]:
        age, name = self._members.heartbeat_age(record.name), record.name
        if age is not None and age >= LATE * self._members.registry.heartbeat:
            text = f"node {name} has sent no heartbeat for {age:.0f} s"
            remedy = "Look at the node's log and at the load of its host; the node is dead soon."
            yield Finding(f"HeartbeatLate:{name}", "warning", text, remedy, "topology")
        report = self._members.report(name)
        if report is not None:
            yield from self._figures(name, report)
            yield from self._links(name, report)

    def _figures(self, name: str, report: NodeReport) -> Iterator[Finding]:
        settings, after = self._settings, self._settings.alert_after
        waiting = report.figures.get("waiting") or 0
        if waiting >= settings.backlog:
            text = f"{counted(int(waiting), 'notification')} wait for consumers at node {name}"
            remedy = f"Look at the subscriptions of node {name}, the worst first."
            yield Finding(f"Backlog:{name}", "warning", text, remedy, "subscriptions", after)
        cpu = report.figures.get("cpu") or 0.0
        if cpu >= settings.cpu_percent / 100:
            text = f"node {name} uses {cpu:.0%} of a core; one node uses little more than one"
            remedy = "Add a node to the cluster, or spread the publishers."
            yield Finding(f"CpuSaturated:{name}", "warning", text, remedy, "health", 2 * after)

    def _links(self, name: str, report: NodeReport) -> Iterator[Finding]:
        down = sorted({link.to for link in report.links if link.state == "down" and link.unconfirmed})
        if down:
            text = f"node {name} cannot reach {', '.join(down[:5])}, and {len(down)} links have unsent bytes"
            remedy = "Open routing.port (UDP and TCP) between the hosts, and compare cluster.secret."
            yield Finding(f"LinkDown:{name}", "warning", text, remedy, "topology", self._settings.alert_after)


def _dead(record: Record) -> Finding:
    text = f"node {record.name} of cluster {record.cluster} at {record.url} is dead"
    remedy = (
        "Start the node again; reliable notifications are kept for it for routing.dead_grace. If it is gone"
        " for good, remove it at the admin node (DELETE /nodes/NAME), or wait for admin.forget."
    )
    return Finding(f"{NODE_DEAD}:{record.name}", "critical", text, remedy, "topology")
