"""All interest that a node knows: its own, and that of other nodes and clusters by subject. Pure.

This module owns the state of the exchange and answers whether a subject wants a topic; `interest_exchange`
decides what is sent and when. `generation` changes with every interest, so that callers can drop cached
answers.
"""

from __future__ import annotations

from collections.abc import Iterable

from hpwsn.routing.interest.interest_sets import Advertisement, MergedPatterns, PatternTable, ReceivedInterest
from hpwsn.routing.topology.cluster_view import View
from hpwsn.routing.wire.router_messages import Interest, Scope, Subject, Version
from hpwsn_client.wsn.topics.topic_expressions import Topic

FOREIGN = Subject(Scope.FOREIGN, "*")
"""The interest of all other clusters; it is valid until the next representative sends its own."""


def key_of(subject: Subject) -> Subject:
    """Return the key of a subject's interest; all FOREIGN subjects share one."""
    return FOREIGN if subject.scope is Scope.FOREIGN else subject


class KnownInterest:
    """All interest that a node knows; `aggregated` is None unless it is the representative."""

    def __init__(self, name: str, incarnation: int, max_patterns: int) -> None:
        self.me = Subject(Scope.NODE, name)
        self.local = PatternTable()
        self._merged = MergedPatterns()
        self.own = Advertisement(self.me, incarnation, self._merged, max_patterns)
        self.received: dict[Subject, ReceivedInterest] = {}
        self.aggregated: AggregatedInterest | None = None
        self.generation = 0
        self._most = max_patterns
        self._versions = 1

    def want(self, text: str) -> bool:
        """Add a pattern of this node; return whether the node did not want it before."""
        if not self._merged.add(text):
            return False
        self.local.add(text)
        self._update_aggregates(self.me, (text,), ())
        return True

    def release(self, text: str) -> bool:
        """Remove a pattern of this node; return whether the node no longer wants it."""
        if not self._merged.discard(text):
            return False
        self.local.discard(text)
        self._update_aggregates(self.me, (), (text,))
        return True

    def wants(self, subject: Subject, topic: Topic | None, source: str | None) -> bool | None:
        """Whether the subject wants the topic; None if its interest is not known completely yet."""
        received = self.received.get(subject)
        if received is None:
            return None
        if received.table.wants(topic):
            return True
        return False if received.complete and source in (received.source, None) else None

    def receive(self, sender: str, message: Interest) -> tuple[int, bool] | None:
        """Store an advertised interest.

        Return the version before (0 for none) and whether the interest is new; None if a snapshot is needed.
        """
        key = key_of(message.subject)
        received = self.received.get(key)
        if (
            received is None
            or received.incarnation != message.incarnation
            or self._new_source(received, sender, key)
        ):
            if message.base:
                return None
            self.forget(key)
            received = self.received[key] = ReceivedInterest(message, sender)
            if self.aggregated is not None:
                self.aggregated.missing.discard(key)
            self._update_aggregates(key, received.table.texts, ())
            return 0, True
        before = received.version
        if message.version <= before:
            return before, False
        changed = received.apply(message)
        if changed is None:
            return None
        self._update_aggregates(key, *changed)
        return before, True

    def _new_source(self, received: ReceivedInterest, sender: str, key: Subject) -> bool:
        """Whether the source has changed; a node is the source of its own interest, even if it is relayed."""
        return key.scope is not Scope.NODE and received.source != sender

    def is_behind(self, entry: Version, sender: str) -> bool:
        """Whether the sender has a newer version than this node."""
        key = key_of(entry.subject)
        received = self.received.get(key)
        if received is None or received.incarnation != entry.incarnation:
            return True
        return entry.version > received.version or self._new_source(received, sender, key)

    def forget(self, key: Subject) -> None:
        """Forget an interest; aggregation no longer waits for it."""
        if self.aggregated is not None:
            self.aggregated.missing.discard(key)
        received = self.received.pop(key, None)
        if received is not None:
            self._update_aggregates(key, (), received.table.texts)

    def _update_aggregates(self, key: Subject, added: Iterable[str], removed: Iterable[str]) -> None:
        self.generation += 1
        if self.aggregated is None or key is FOREIGN:
            return
        merged = self.aggregated.merged(key.scope)
        for text in added:
            merged.add(text)
        for text in removed:
            merged.discard(text)

    def start_aggregating(self, view: View) -> None:
        """Begin to aggregate, because this node is the representative now."""
        assert view.cluster is not None
        self._versions += 1
        # When the same process becomes the representative again, its versions must be higher than before.
        version = self._versions << 32
        self.aggregated = AggregatedInterest(
            self.me.name, view.cluster, self.own.incarnation, self._most, version
        )
        self._update_aggregates(self.me, self.local.texts, ())
        for key, received in self.received.items():
            self._update_aggregates(key, received.table.texts, ())
        nodes = {Subject(Scope.NODE, name) for name in view.peers()}
        clusters = {Subject(Scope.CLUSTER, name) for name in view.others}
        self.aggregated.missing = (nodes | clusters) - self.received.keys()
        self.aggregated.cluster.delta(self.cluster_complete())
        self.aggregated.foreign.delta(self.foreign_complete())

    def stop_aggregating(self) -> None:
        """Stop aggregating; the interest of other clusters stays valid for now."""
        assert self.aggregated is not None
        foreign, self.aggregated = self.aggregated.foreign.snapshot(), None
        for key in [key for key in self.received if key.scope is Scope.CLUSTER]:
            self.forget(key)
        self.received[FOREIGN] = ReceivedInterest(foreign, self.me.name)
        self.generation += 1

    def cluster_complete(self) -> bool:
        """Whether the interest of all nodes that were present when aggregation began has arrived."""
        return self.aggregated is not None and not any(
            each.scope is Scope.NODE for each in self.aggregated.missing
        )

    def foreign_complete(self) -> bool:
        """Whether the interest of all clusters that were present when aggregation began has arrived."""
        received = (its for key, its in self.received.items() if key.scope is Scope.CLUSTER)
        return (
            self.aggregated is not None
            and not any(each.scope is Scope.CLUSTER for each in self.aggregated.missing)
            and all(its.complete for its in received)
        )


class AggregatedInterest:
    """What a representative aggregates: the interest of its cluster, and that of all other clusters."""

    __slots__ = ("cluster", "cluster_patterns", "foreign", "foreign_patterns", "missing")

    def __init__(self, name: str, cluster: str, incarnation: int, most: int, version: int) -> None:
        self.missing: set[Subject] = set()
        """Nodes and clusters whose interest must still arrive before the aggregate is complete."""
        self.cluster_patterns = MergedPatterns()
        self.foreign_patterns = MergedPatterns()
        self.cluster = Advertisement(
            Subject(Scope.CLUSTER, cluster), incarnation, self.cluster_patterns, most, version
        )
        self.foreign = Advertisement(
            Subject(Scope.FOREIGN, name), incarnation, self.foreign_patterns, most, version
        )

    def merged(self, scope: Scope) -> MergedPatterns:
        """Return the aggregate that includes an interest of this scope."""
        return self.cluster_patterns if scope is Scope.NODE else self.foreign_patterns
