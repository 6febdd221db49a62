"""The interests that a node has heard, by their subjects, and its own: who wants a topic. Pure.

Owns the state of the exchange and what may be concluded from it; what is sent, and when, is exchange's part.
Of a change of any interest, `generation` tells those who remember answers.
"""

from __future__ import annotations

from collections.abc import Iterable

from hpwsn.routing.interest.interest_sets import Heard, Merged, Statement, Table
from hpwsn.routing.topology.cluster_view import View
from hpwsn.routing.wire.router_messages import Interest, Scope, Subject, Version
from hpwsn_client.wsn.topics.topic_expressions import Topic

FOREIGN = Subject(Scope.FOREIGN, "*")
"""Whoever states it: there is one, and the last stays in force until the next representative has spoken."""


def key_of(subject: Subject) -> Subject:
    """What an interest is kept under."""
    return FOREIGN if subject.scope is Scope.FOREIGN else subject


class Lead:
    """What a representative puts together: the interest of its cluster, and that of all others."""

    __slots__ = ("cluster", "foreign", "missing", "of_cluster", "of_foreign")

    def __init__(self, name: str, cluster: str, incarnation: int, most: int, version: int) -> None:
        self.missing: set[Subject] = set()
        """Who was there at its beginning and has not been heard: until then more may be wanted."""
        self.of_cluster = Merged()
        self.of_foreign = Merged()
        self.cluster = Statement(Subject(Scope.CLUSTER, cluster), incarnation, self.of_cluster, most, version)
        self.foreign = Statement(Subject(Scope.FOREIGN, name), incarnation, self.of_foreign, most, version)

    def merged(self, scope: Scope) -> Merged:
        """Where an interest of that scope is counted."""
        return self.of_cluster if scope is Scope.NODE else self.of_foreign


class Told:
    """All that a node knows of interest."""

    def __init__(self, name: str, incarnation: int, max_patterns: int) -> None:
        self.me = Subject(Scope.NODE, name)
        self.local = Table()
        self._merged = Merged()
        self.own = Statement(self.me, incarnation, self._merged, max_patterns)
        self.heard: dict[Subject, Heard] = {}
        self.lead: Lead | None = None
        self.generation = 0
        self._most = max_patterns
        self._versions = 1

    def want(self, text: str) -> bool:
        """Count a pattern of this node; whether that is news."""
        if not self._merged.add(text):
            return False
        self.local.add(text)
        self._count(self.me, (text,), ())
        return True

    def release(self, text: str) -> bool:
        """Count a pattern of this node less; whether that is news."""
        if not self._merged.discard(text):
            return False
        self.local.discard(text)
        self._count(self.me, (), (text,))
        return True

    def wants(self, subject: Subject, topic: Topic | None, source: str | None) -> bool | None:
        """Whether the subject wants the topic; None where who speaks for it now may still say so."""
        heard = self.heard.get(subject)
        if heard is None:
            return None
        if heard.table.wants(topic):
            return True
        return False if heard.complete and source in (heard.source, None) else None

    def take(self, sender: str, message: Interest) -> tuple[int, bool] | None:
        """Take an interest: the version before, 0 for none, and whether it is news; None if it cannot be."""
        key = key_of(message.subject)
        heard = self.heard.get(key)
        if heard is None or heard.incarnation != message.incarnation or self._new_source(heard, sender, key):
            if message.base:
                return None
            self.forget(key)
            heard = self.heard[key] = Heard(message, sender)
            if self.lead is not None:
                self.lead.missing.discard(key)
            self._count(key, heard.table.texts, ())
            return 0, True
        before = heard.version
        if message.version <= before:
            return before, False
        changed = heard.take(message)
        if changed is None:
            return None
        self._count(key, *changed)
        return before, True

    def _new_source(self, heard: Heard, sender: str, key: Subject) -> bool:
        """Whether another node states it now; a node's own interest is its own whoever relays it."""
        return key.scope is not Scope.NODE and heard.source != sender

    def lacks(self, entry: Version, sender: str) -> bool:
        """Whether the sender has a version that should be asked for."""
        key = key_of(entry.subject)
        heard = self.heard.get(key)
        if heard is None or heard.incarnation != entry.incarnation:
            return True
        return entry.version > heard.version or self._new_source(heard, sender, key)

    def forget(self, key: Subject) -> None:
        """Forget an interest, and do not wait for it."""
        if self.lead is not None:
            self.lead.missing.discard(key)
        heard = self.heard.pop(key, None)
        if heard is not None:
            self._count(key, (), heard.table.texts)

    def _count(self, key: Subject, added: Iterable[str], removed: Iterable[str]) -> None:
        self.generation += 1
        if self.lead is None or key is FOREIGN:
            return
        merged = self.lead.merged(key.scope)
        for text in added:
            merged.add(text)
        for text in removed:
            merged.discard(text)

    def begin_to_lead(self, view: View) -> None:
        """Put together what a representative tells."""
        assert view.cluster is not None
        self._versions += 1
        # Later stints of the same process must be newer than what it told in earlier ones.
        version = self._versions << 32
        self.lead = Lead(self.me.name, view.cluster, self.own.incarnation, self._most, version)
        self._count(self.me, self.local.texts, ())
        for key, heard in self.heard.items():
            self._count(key, heard.table.texts, ())
        nodes = {Subject(Scope.NODE, name) for name in view.peers()}
        clusters = {Subject(Scope.CLUSTER, name) for name in view.others}
        self.lead.missing = (nodes | clusters) - self.heard.keys()
        self.lead.cluster.next(self.cluster_complete())
        self.lead.foreign.next(self.foreign_complete())

    def cease_to_lead(self) -> None:
        """Keep what other clusters want until the next representative says so."""
        assert self.lead is not None
        foreign, self.lead = self.lead.foreign.whole(), None
        for key in [key for key in self.heard if key.scope is Scope.CLUSTER]:
            self.forget(key)
        self.heard[FOREIGN] = Heard(foreign, self.me.name)
        self.generation += 1

    def cluster_complete(self) -> bool:
        """Whether all nodes have been heard that were there when this one began to lead."""
        return self.lead is not None and not any(each.scope is Scope.NODE for each in self.lead.missing)

    def foreign_complete(self) -> bool:
        """Whether all clusters have been heard that were there when this one began to lead."""
        heard = (its for key, its in self.heard.items() if key.scope is Scope.CLUSTER)
        return (
            self.lead is not None
            and not any(each.scope is Scope.CLUSTER for each in self.lead.missing)
            and all(its.complete for its in heard)
        )
