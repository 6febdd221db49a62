"""The interests that a node has heard, by their subjects, and its own: who wants a topic. Pure.

Owns the state of the exchange and what may be concluded from it; what is sent, and when, is exchange's part.
Of a change of any interest, `generation` tells those who remember answers.
"""

from __future__ import annotations

from collections.abc import Iterable

from hpwsn.routing.interest.interest_sets import Advertisement, MergedPatterns, PatternTable, ReceivedInterest
from hpwsn.routing.topology.cluster_view import View
from hpwsn.routing.wire.router_messages import Interest, Scope, Subject, Version
from hpwsn_client.wsn.topics.topic_expressions import Topic

FOREIGN = Subject(Scope.FOREIGN, "*")
"""Whoever states it: there is one, and the last stays in force until the next representative has spoken."""


def key_of(subject: Subject) -> Subject:
    """What an interest is kept under."""
    return FOREIGN if subject.scope is Scope.FOREIGN else subject


class AggregatedInterest:
    """What a representative puts together: the interest of its cluster, and that of all others."""

    __slots__ = ("cluster", "cluster_patterns", "foreign", "foreign_patterns", "missing")

    def __init__(self, name: str, cluster: str, incarnation: int, most: int, version: int) -> None:
        self.missing: set[Subject] = set()
        """Who was there at its beginning and has not been heard: until then more may be wanted."""
        self.cluster_patterns = MergedPatterns()
        self.foreign_patterns = MergedPatterns()
        self.cluster = Advertisement(
            Subject(Scope.CLUSTER, cluster), incarnation, self.cluster_patterns, most, version
        )
        self.foreign = Advertisement(
            Subject(Scope.FOREIGN, name), incarnation, self.foreign_patterns, most, version
        )

    def merged(self, scope: Scope) -> MergedPatterns:
        """Where an interest of that scope is counted."""
        return self.cluster_patterns if scope is Scope.NODE else self.foreign_patterns


class KnownInterest:
    """All that a node knows of interest."""

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
        """Count a pattern of this node; whether that is news."""
        if not self._merged.add(text):
            return False
        self.local.add(text)
        self._update_aggregates(self.me, (text,), ())
        return True

    def release(self, text: str) -> bool:
        """Count a pattern of this node less; whether that is news."""
        if not self._merged.discard(text):
            return False
        self.local.discard(text)
        self._update_aggregates(self.me, (), (text,))
        return True

    def wants(self, subject: Subject, topic: Topic | None, source: str | None) -> bool | None:
        """Whether the subject wants the topic; None where who speaks for it now may still say so."""
        received = self.received.get(subject)
        if received is None:
            return None
        if received.table.wants(topic):
            return True
        return False if received.complete and source in (received.source, None) else None

    def receive(self, sender: str, message: Interest) -> tuple[int, bool] | None:
        """Take an interest: the version before, 0 for none, and whether it is news; None if it cannot be."""
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
        """Whether another node states it now; a node's own interest is its own whoever relays it."""
        return key.scope is not Scope.NODE and received.source != sender

    def is_behind(self, entry: Version, sender: str) -> bool:
        """Whether the sender has a version that should be asked for."""
        key = key_of(entry.subject)
        received = self.received.get(key)
        if received is None or received.incarnation != entry.incarnation:
            return True
        return entry.version > received.version or self._new_source(received, sender, key)

    def forget(self, key: Subject) -> None:
        """Forget an interest, and do not wait for it."""
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
        """Put together what a representative tells."""
        assert view.cluster is not None
        self._versions += 1
        # Later stints of the same process must be newer than what it told in earlier ones.
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
        """Keep what other clusters want until the next representative says so."""
        assert self.aggregated is not None
        foreign, self.aggregated = self.aggregated.foreign.snapshot(), None
        for key in [key for key in self.received if key.scope is Scope.CLUSTER]:
            self.forget(key)
        self.received[FOREIGN] = ReceivedInterest(foreign, self.me.name)
        self.generation += 1

    def cluster_complete(self) -> bool:
        """Whether all nodes have been heard that were there when this one began to lead."""
        return self.aggregated is not None and not any(
            each.scope is Scope.NODE for each in self.aggregated.missing
        )

    def foreign_complete(self) -> bool:
        """Whether all clusters have been heard that were there when this one began to lead."""
        received = (its for key, its in self.received.items() if key.scope is Scope.CLUSTER)
        return (
            self.aggregated is not None
            and not any(each.scope is Scope.CLUSTER for each in self.aggregated.missing)
            and all(its.complete for its in received)
        )
