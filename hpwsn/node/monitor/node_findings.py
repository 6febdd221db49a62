"""What is wrong with a node now: the rules of its alerts, over its figures and the problems of its parts.

A rule is a generator of findings. Its thresholds are settings in `[monitoring]`. A rule that Prometheus has
too has the name of the alert rule in scripts/deploy, without the `Hpwsn` before it.
"""

from __future__ import annotations

import resource
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hpwsn.logs import counted
from hpwsn.monitoring.alerts import Finding
from hpwsn.node.monitor.backlog_survey import Group
from hpwsn.node.monitor.node_sample import NodeSample

if TYPE_CHECKING:
    from hpwsn.node.node_parts import Parts

RECENT = 300.0
"""Seconds after the last dead, dropped or lost notification for which they are told."""
DESCRIPTORS_PERCENT = 80
"""Share of the limit of open files that is told."""
JUMP = 2.0
"""Seconds by which the clock must jump between two samples to be told."""
JUMP_TOLD = 600.0
"""Seconds for which a jump of the clock is told."""

AWAY = {
    "backbone": ("BackboneAway", "health", "Start ActiveMQ, or correct backbone.url; the node reconnects."),
    "journal": ("JournalUnavailable", "health", "Free space on the disk of the data directory."),
    "directory": (
        "DirectoryUnreachable",
        "topics",
        "Start the LDAP server, or correct topics.url; the node keeps the topics that it knows.",
    ),
    "cluster": ("ClusterAway", "topology", "Start the admin node, or correct cluster.admin and the secret."),
}
"""Name, view and remedy for each part that can make a node not ready."""


class _Growth:
    """How much a counter has grown, until it did not for RECENT seconds."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._grew = 0.0
        self.grown = 0

    def look(self, count: int, now: float) -> int:
        """Take the counter; the growth, 0 if there was none for RECENT seconds."""
        if count > self._count:
            self.grown += count - self._count
            self._count, self._grew = count, now
        elif now - self._grew >= RECENT:
            self.grown = 0
        return self.grown


class NodeFindings:
    """Looks at one node."""

    def __init__(self, parts: Parts, sample: NodeSample) -> None:
        self._parts = parts
        self._sample = sample
        self._settings = parts.config.monitoring
        self._buried = _Growth(parts.delivery.totals.buried)
        self._dropped = _Growth(parts.delivery.totals.dropped)
        self._lost = _Growth(0)
        self._ahead: float | None = None
        self._jumped: tuple[float, float] | None = None

    def look(self, *, now: float, wall: float) -> Iterator[Finding]:
        """Everything that is wrong; `now` is on a clock that nobody sets, `wall` in seconds since 1970."""
        yield from self._away()
        yield from self._undelivered(now)
        yield from self._consumers()
        yield from self._storage()
        yield from self._services()
        yield from self._members()
        yield from self._machine(now, wall)

    def _away(self) -> Iterator[Finding]:
        for part, problem in self._parts.problems().items():
            name, view, remedy = AWAY[part]
            yield Finding(name, "critical", f"The node is not ready: {problem}", remedy, view)
        for warning in self._parts.warnings():
            remedy = "Restore the folder `large` from a backup, or wait until retention removes the entries."
            yield Finding("ContentsMissing", "critical", warning, remedy, "health")
        directory = self._parts.topics.status()
        if directory["problem"] and "directory" not in self._parts.problems():
            text = f"the topics do not change: {directory['problem']}"
            remedy = "Start the directory's server; the node works with the topics that it has read."
            yield Finding("DirectoryUnreachable", "warning", text, remedy, "topics")
        if skipped := directory["skipped_entries"]:
            text = (
                f"{directory['skipped']} entries of the topic directory are not topics, such as {skipped[0]}"
            )
            yield Finding("DirectoryEntriesSkipped", "info", text, "Correct or remove the entries.", "topics")

    def _undelivered(self, now: float) -> Iterator[Finding]:
        totals = self._parts.delivery.totals
        if grown := self._buried.look(totals.buried, now):
            text = f"{counted(grown, 'notification')} became dead letters, the last within 5 minutes"
            remedy = "Look at the reasons, mend the consumers, and replay the dead letters."
            yield Finding("NewDeadLetters", "warning", text, remedy, "dead-letters")
        if grown := self._dropped.look(totals.dropped, now):
            text = f"{counted(grown, 'notification')} dropped from full queues, the last within 5 minutes"
            remedy = "Make the consumers faster, or raise delivery.max_queue."
            yield Finding("NotificationsDropped", "warning", text, remedy, "subscriptions")
        if grown := self._lost.look(self._parts.journal.state.lost, now):
            text = f"{counted(grown, 'accepted notification')} lost, which only durability none allows"
            remedy = "Look at the disk and the log, and set journal.durability to commit."
            yield Finding("NotificationsLost", "critical", text, remedy, "health")
        limit, kept = self._parts.config.dead_letters.limit, self._sample.values.get("dead_letters")
        if kept and kept >= limit * self._settings.queue_percent / 100:
            text = f"{kept:.0f} dead letters are kept, of {limit} (dead_letters.limit); the oldest go first"
            remedy = "Replay or drop dead letters, or raise dead_letters.limit."
            yield Finding("DeadLettersNearLimit", "warning", text, remedy, "dead-letters", self._after)

    @property
    def _after(self) -> float:
        return self._settings.alert_after

    def _consumers(self) -> Iterator[Finding]:
        found, after = self._sample.backlogs.result, self._after
        if found.failing.count:
            fails = "fails" if found.failing.count == 1 else "fail"
            text = f"{counted(found.failing.count, 'consumer')} {fails}; {_worst(found.failing, why=True)}"
            remedy = "Start the consumer, or end its subscription; the node retries until then."
            yield Finding("ConsumersFailing", "warning", text, remedy, "subscriptions", after)
        if found.behind.count:
            text = (
                f"{counted(found.behind.count, 'subscription')} with {self._settings.backlog} or more waiting"
            )
            text += f" notifications; {_worst(found.behind)}"
            remedy = "Make the consumer faster, or let it take larger batches (delivery.batch)."
            yield Finding("ConsumersBehind", "warning", text, remedy, "subscriptions", after)
        if found.nearly_full.count:
            text = f"{counted(found.nearly_full.count, 'queue')} near the limit; {_worst(found.nearly_full)}"
            remedy = "Mend or resume the consumer, or raise delivery.max_queue; beyond it, overflow applies."
            yield Finding("QueuesNearLimit", "warning", text, remedy, "subscriptions", after)

    def _storage(self) -> Iterator[Finding]:
        config, settings = self._parts.config, self._settings
        limit, used = config.journal.max_bytes, self._sample.values.get("journal_bytes") or 0
        if limit and used >= limit * settings.journal_percent / 100:
            text = f"the journal has {used / limit:.0%} of journal.max_bytes; a full one rejects publishers"
            remedy = "Raise journal.max_bytes, or end subscriptions whose consumers are gone."
            yield Finding("JournalNearlyFull", "critical", text, remedy, "health", self._after)
        try:
            disk = shutil.disk_usage(config.data.dir)
        except OSError:
            return
        if disk.total and disk.used / (disk.used + disk.free) >= settings.disk_percent / 100:
            text = f"the disk of the data directory has {disk.free >> 20} MiB left"
            remedy = "Free space on the disk, or lower journal.retention_bytes."
            yield Finding("DiskNearlyFull", "critical", text, remedy, "health", self._after)

    def _services(self) -> Iterator[Finding]:
        if not len(self._parts.services):
            return
        silent, lagging = [], []
        for service in self._parts.services:
            if service["state"] == "silent":
                silent.append(service["uri"])
            elif (
                service["state"] == "running"
                and service["figures"].get("lag", 0) >= self._settings.service_lag
            ):
                lagging.append(service["uri"])
        if silent:
            text = f"{counted(len(silent), 'stream service')} stopped reporting: {', '.join(silent[:3])}"
            yield Finding(
                "ServicesSilent", "warning", text, "Look at the job's log, and start it again.", "streams"
            )
        if lagging:
            text = f"{counted(len(lagging), 'stream service')} behind: {', '.join(lagging[:3])}"
            remedy = "Give the job more cores or larger batches."
            yield Finding("ServicesLagging", "warning", text, remedy, "streams", self._after)
        agent = self._parts.agent
        if agent and (failed := agent.figures()["failed"]):
            text = f"{counted(failed, 'stream service')} failed and will not be started again"
            remedy = "GET /streams/URI has the reason; post the definition again."
            yield Finding("ServicesFailed", "warning", text, remedy, "streams")

    def _members(self) -> Iterator[Finding]:
        cluster = self._parts.cluster
        if cluster is None:
            return
        dead = [member.name for member in cluster.topology or () if member.state == "dead"]
        if dead:
            text = f"{counted(len(dead), 'dead node')}: {', '.join(sorted(dead)[:5])}"
            remedy = "Start the node again; what is reliable is kept for it for routing.dead_grace."
            yield Finding("NodesDead", "critical", text, remedy, "topology")
        if away := cluster.figures().get("admin_away"):
            text = f"the admin node has been away for {away:.0f} s; the last topology stays in force"
            remedy = "Start the admin node; without it no node joins or leaves."
            yield Finding("AdminUnreachable", "warning", text, remedy, "topology", self._after)

    def _machine(self, now: float, wall: float) -> Iterator[Finding]:
        cpu = self._sample.values.get("cpu") or 0.0
        if cpu >= self._settings.cpu_percent / 100:
            text = f"the node uses {cpu:.0%} of a core; one node uses little more than one"
            remedy = "Add a node to the cluster, or spread the publishers."
            yield Finding("CpuSaturated", "warning", text, remedy, "health", 2 * self._after)
        files, limit = self._sample.values.get("files") or 0.0, resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if limit != resource.RLIM_INFINITY and files >= limit * DESCRIPTORS_PERCENT / 100:
            text = f"{files:.0f} files and connections are open, of {limit}"
            remedy = "Raise the limit of open files (LimitNOFILE), or see who opens connections."
            yield Finding("DescriptorsShort", "warning", text, remedy, "health", self._after)
        before, self._ahead = self._ahead, wall - now
        if before is not None and abs(self._ahead - before) >= JUMP:
            self._jumped = now, self._ahead - before
        if self._jumped is not None and now - self._jumped[0] < JUMP_TOLD:
            text = f"the clock of this machine jumped by {self._jumped[1]:+.0f} s"
            remedy = "Run a time service that slews the clock; lifetimes and retention depend on it."
            yield Finding("ClockJumped", "info", text, remedy, "health")


def _worst(group: Group, *, why: bool = False) -> str:
    subject = "it is" if group.count == 1 else "the worst is"
    waiting = f"{group.waiting:,} waiting" if group.waiting > 0 else "none waiting"
    # The error of a consumer begins with the address, which the text has already.
    error = f": {group.error.removeprefix(f'POST {group.consumer}: ')}" if why and group.error else ""
    return f"{subject} {group.consumer}{error}, {waiting}, subscription {group.subscription}"
