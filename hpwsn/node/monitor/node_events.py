"""What of a node's life goes into its events log, and which changes the live stream is told of.

Parts with listeners are listened to; other changes are found once a second, by comparing with the second
before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpwsn.broker.subscriptions.subscription import Subscription
from hpwsn.logs import counted
from hpwsn.monitoring.alerts import Finding
from hpwsn.node.monitor.node_findings import AWAY

if TYPE_CHECKING:
    from hpwsn.node.node_parts import Parts

_NAMES = {
    "backbone": "the backbone",
    "journal": "the journal",
    "directory": "the topic directory",
    "cluster": "the cluster",
}

_TOLD = frozenset((*(name for name, _, _ in AWAY.values()), "NodesDead"))
"""Alerts whose beginning and end are events of their own."""


class NodeEvents:
    """Watches the parts of one node."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._problems: dict[str, str] = {}
        self._members: dict[str, str] | None = None
        self._topology: object = None
        self._revision = parts.tree.revision
        self._changes = 0

    def listen(self) -> None:
        """Start to listen, after recovery: what is restored is not new."""
        parts = self._parts
        subscriptions = parts.subscriptions
        subscriptions.created.add(self._created)
        subscriptions.ended.add(self._ended)
        subscriptions.interest_changed.add(lambda subscription: parts.live.changed("subscriptions"))
        parts.alerts.raised.add(self._raised)
        parts.alerts.cleared.add(self._cleared)
        self._changes = self._directory_changes()
        self._look_at_members()
        if parts.cluster:
            parts.cluster.topology_changed.add(lambda topology: self._look_at_members())

    def look(self) -> None:
        """Compare with the second before."""
        self._look_at_problems()
        self._look_at_topics()

    def _created(self, subscription: Subscription) -> None:
        self._parts.live.changed("subscriptions")
        self._parts.events_log.note("subscription", f"created: {_words(subscription)}")

    def _ended(self, subscription: Subscription) -> None:
        self._parts.live.changed("subscriptions")
        self._parts.events_log.note("subscription", f"ended: {_words(subscription)}")

    def _raised(self, finding: Finding) -> None:
        if finding.name in _TOLD:
            return
        kind = "dead-letters" if finding.name == "NewDeadLetters" else "problem"
        self._parts.events_log.note(kind, f"alert {finding.name}: {finding.text}")

    def _cleared(self, finding: Finding) -> None:
        if finding.name not in _TOLD:
            self._parts.events_log.note("problem", f"alert {finding.name} is over")

    def _look_at_problems(self) -> None:
        before, self._problems = self._problems, self._parts.problems()
        # A node whose directory was read once is ready without it, but does not follow its changes.
        if problem := self._parts.topics.status()["problem"]:
            self._problems.setdefault("directory", problem)
        note = self._parts.events_log.note
        for part in self._problems.keys() - before.keys():
            note("problem", f"{_NAMES[part]} is away: {self._problems[part]}")
        for part in before.keys() - self._problems.keys():
            note("problem", f"{_NAMES[part]} is back")

    def _directory_changes(self) -> int:
        return int(self._parts.topics.status()["changes"])

    def _look_at_topics(self) -> None:
        revision = self._parts.tree.revision
        if revision != self._revision:
            self._revision = revision
            self._parts.live.changed("topics")
        before, self._changes = self._changes, self._directory_changes()
        if self._changes > before:
            changed = counted(self._changes - before, "change")
            self._parts.events_log.note("topics", f"{changed} of topics in the directory")

    def _look_at_members(self) -> None:
        cluster = self._parts.cluster
        topology = cluster.topology if cluster else None
        if topology is None or topology is self._topology:
            return
        self._topology = topology
        self._parts.live.tell("topology")
        members: dict[str, str] = {member.name: member.state for member in topology}
        before, self._members = self._members, members
        if before is None:
            return
        note = self._parts.events_log.note
        for name, state in members.items():
            if before.get(name) != state:
                note("node", f"node {name} is {state}")
        for name in before.keys() - members.keys():
            note("node", f"node {name} is no longer a member")


def _words(subscription: Subscription) -> str:
    topics = ", ".join(expression.text for expression in subscription.topics) or "all topics"
    return f"subscription {subscription.id} to {topics} for {subscription.request.consumer.address}"
