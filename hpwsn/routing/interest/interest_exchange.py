"""The exchange of interest: who is told what, when, and who is asked. Pure.

A node tells its representative what is wanted at it. The representative tells it on to the other nodes of
its cluster, so that these send straight to each other; it tells other representatives what its cluster
wants, and its nodes what all other clusters want together. Interest is state: versions are told as
differences, and whoever misses one asks for the whole. Whenever a source of interest changes, both sides
act: the new one tells, the others ask, so that it does not matter who heard of the change first. Versions
are compared now and then, so that nothing that got lost stays lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hpwsn.routing.interest.interest_sets import Advertisement, ReceivedInterest
from hpwsn.routing.interest.known_interest import KnownInterest
from hpwsn.routing.topology.cluster_view import View, Viewer
from hpwsn.routing.wire.effects import Effect, RouterSettings, Send
from hpwsn.routing.wire.patterns import EVERYTHING, parse_pattern
from hpwsn.routing.wire.router_messages import (
    Interest,
    InterestRequest,
    Message,
    Scope,
    Subject,
    Version,
    Versions,
)


class InterestExchange:
    """One node's part in it."""

    def __init__(self, known_interest: KnownInterest, viewer: Viewer, settings: RouterSettings) -> None:
        self._known_interest = known_interest
        self._viewer = viewer
        self._view = viewer.view
        self._settings = settings
        self._changed = False
        self._sent_at = -settings.settle
        self._compared_at: float | None = None
        self._unlisted: set[Subject] = set()

    # What is wanted here.

    def local_changed(self, now: float) -> Iterator[Effect]:
        """What is wanted at this node has changed."""
        self._changed = True
        return self._advertise_if_due(now)

    def tick(self, now: float) -> Iterator[Effect]:
        """Tell what has gathered, and compare versions where it is time."""
        yield from self._advertise_if_due(now)
        if self._compared_at is None:
            self._compared_at = now
        elif now - self._compared_at >= self._settings.refresh:
            self._compared_at = now
            self._forget_unlisted()
            yield from self._send_versions()

    def _advertise_if_due(self, now: float) -> Iterator[Effect]:
        if self._changed and now - self._sent_at >= self._settings.settle:
            self._changed, self._sent_at = False, now
            yield from self._advertise()

    def _advertise(self) -> Iterator[Effect]:
        """Tell what has changed to all who are told."""
        own, aggregated, view = self._known_interest.own.delta(), self._known_interest.aggregated, self._view
        if aggregated is None:
            yield from _send((view.representative,), own)
            return
        yield from _send(view.alive, own)
        yield from _send(
            view.others.values(), aggregated.cluster.delta(self._known_interest.cluster_complete())
        )
        yield from _send(view.alive, aggregated.foreign.delta(self._known_interest.foreign_complete()))

    def _send_versions(self) -> Iterator[Effect]:
        aggregated, view = self._known_interest.aggregated, self._view
        if aggregated is None:
            yield from _send((view.representative,), _versions([self._known_interest.own]))
            return
        yield from _send(view.others.values(), _versions([aggregated.cluster]))
        yield from _send(view.alive, self._versions_for_nodes())

    def _versions_for_nodes(self) -> Versions:
        """What a representative has for its nodes."""
        assert self._known_interest.aggregated is not None
        relayed = tuple(
            Version(key, received.incarnation, received.version)
            for key, received in self._received_from_nodes()
        )
        return Versions(
            _versions([self._known_interest.own, self._known_interest.aggregated.foreign]).entries + relayed
        )

    def _received_from_nodes(self) -> list[tuple[Subject, ReceivedInterest]]:
        return [
            (key, received)
            for key, received in self._known_interest.received.items()
            if key.scope is Scope.NODE
        ]

    def _forget_unlisted(self) -> None:
        """Forget nodes that no topology names: it may be late, but not for two rounds."""
        known = {Subject(Scope.NODE, name) for name in self._view.peers()}
        unlisted = {key for key, _ in self._received_from_nodes()} - known
        for key in unlisted & self._unlisted:
            self._known_interest.forget(key)
        self._unlisted = unlisted

    # What changes around it.

    def view_changed(self, before: View, view: View) -> Iterator[Effect]:
        """Forget who is gone, take up or give up the lead, and turn to new sources."""
        self._view = view
        self._forget_gone(before, view)
        known_interest = self._known_interest
        if before.cluster is None:
            # What has gathered so far nobody could be told; the first word must say it all.
            known_interest.own.delta()
        if known_interest.aggregated is not None and (
            not view.is_representative or before.cluster != view.cluster
        ):
            known_interest.stop_aggregating()
        if view.is_representative and known_interest.aggregated is None:
            known_interest.start_aggregating(view)
            yield from self._become_representative(view)
        elif view.is_representative:
            yield from self._stay_representative(before, view)
        elif view.representative not in (None, before.representative):
            yield from self._follow_representative(before, view)

    def _forget_gone(self, before: View, view: View) -> None:
        known_interest = self._known_interest
        known_interest.generation += 1
        for name in set(before.peers()) - set(view.peers()):
            known_interest.forget(Subject(Scope.NODE, name))
        for name in before.others.keys() - view.others.keys():
            known_interest.forget(Subject(Scope.CLUSTER, name))
        self._changed = True

    def _become_representative(self, view: View) -> Iterator[Effect]:
        assert self._known_interest.aggregated is not None
        yield from _send(view.others.values(), self._known_interest.aggregated.cluster.snapshot())
        yield from self._ask_clusters(view.others)
        yield from _send(view.alive, self._versions_for_nodes())

    def _stay_representative(self, before: View, view: View) -> Iterator[Effect]:
        changed = [name for name, its in view.others.items() if its and its != before.others.get(name)]
        yield from self._ask_clusters(changed)
        new = [name for name, since in view.alive.items() if before.alive.get(name) != since]
        yield from _send(new, self._versions_for_nodes())

    def _follow_representative(self, before: View, view: View) -> Iterator[Effect]:
        own = self._known_interest.own
        if before.cluster is None:
            # What it has for a node that is new here it says when it hears this.
            yield from _send((view.representative,), own.snapshot())
            return
        yield from _send((view.representative,), _versions([own]))
        yield from _send(
            (view.representative,), InterestRequest((Subject(Scope.FOREIGN, view.representative or ""),))
        )

    def _ask_clusters(self, names: Iterable[str]) -> Iterator[Effect]:
        for name in names:
            yield from _send((self._view.others[name],), InterestRequest((Subject(Scope.CLUSTER, name),)))

    def link_up(self, peer: str) -> Iterator[Effect]:
        """What was sent to the peer before may be lost: compare versions with it."""
        aggregated, view = self._known_interest.aggregated, self._view
        if peer == view.representative:
            yield from _send((peer,), _versions([self._known_interest.own]))
        elif aggregated is not None and peer in view.alive:
            yield from _send((peer,), self._versions_for_nodes())
        elif aggregated is not None and peer in view.others.values():
            yield from _send((peer,), _versions([aggregated.cluster]))

    # What others say.

    def interest(self, sender: str, message: Interest, now: float) -> Iterator[Effect]:
        """Another node tells an interest."""
        if not self._speaks_for(sender, message.subject):
            return
        for text in (*message.added, *message.removed):
            if text != EVERYTHING:
                parse_pattern(text)
        taken = self._known_interest.receive(sender, message)
        if taken is None:
            yield from _send((sender,), InterestRequest((message.subject,)))
            return
        before, news = taken
        if news and self._known_interest.aggregated is not None:
            if message.subject.scope is Scope.NODE:
                yield from self._relay(message.subject, before, message)
            self._changed = True
            yield from self._advertise_if_due(now)

    def _relay(self, subject: Subject, before: int, message: Interest) -> Iterator[Effect]:
        """Tell the other nodes; as the difference that it was where it was one."""
        relayed = message if message.base == before else self._snapshot_of(subject)
        yield from _send([name for name in self._view.alive if name != subject.name], relayed)
        if not before:
            # It has just started, and knows nothing.
            yield from _send((subject.name,), self._versions_for_nodes())

    def versions(self, sender: str, message: Versions) -> Iterator[Effect]:
        """Another node says what it has."""
        lacking = [
            entry.subject
            for entry in message.entries
            if self._speaks_for(sender, entry.subject) and self._known_interest.is_behind(entry, sender)
        ]
        if lacking:
            yield from _send((sender,), InterestRequest(tuple(lacking)))

    def ask(self, sender: str, message: InterestRequest) -> Iterator[Effect]:
        """Another node asks for interests."""
        for subject in message.subjects:
            yield from _send((sender,), self._snapshot_of(subject))
        if self._known_interest.aggregated is not None and any(
            each.scope is Scope.FOREIGN for each in message.subjects
        ):
            yield from _send((sender,), self._versions_for_nodes())

    def _snapshot_of(self, subject: Subject) -> Interest | None:
        """What this node can say of a subject."""
        aggregated = self._known_interest.aggregated
        if subject == self._known_interest.me:
            return self._known_interest.own.snapshot()
        if aggregated is None:
            return None
        for statement in (aggregated.cluster, aggregated.foreign):
            if statement.subject == subject:
                return statement.snapshot()
        received = self._known_interest.received.get(subject) if subject.scope is Scope.NODE else None
        if received is None:
            return None
        texts = tuple(sorted(received.table.texts))
        return Interest(subject, received.incarnation, received.version, 0, texts, (), received.complete)

    def _speaks_for(self, sender: str, subject: Subject) -> bool:
        """Whether the sender is who speaks for the subject, as far as this node knows."""
        scope, name = subject
        view = self._view
        if scope is Scope.CLUSTER:
            return view.is_representative and view.others.get(name) == sender
        if scope is Scope.FOREIGN:
            return sender == view.representative and not view.is_representative
        if name == view.name:
            return False
        its_own = name == sender and self._viewer.cluster_of(sender) in (None, view.cluster)
        return its_own or sender == view.representative


def _versions(statements: Iterable[Advertisement]) -> Versions:
    return Versions(tuple(Version(each.subject, each.incarnation, each.version) for each in statements))


def _send(to: Iterable[str | None], message: Message | None) -> Iterator[Effect]:
    """Interest goes by TCP; to nobody where there is nobody or nothing."""
    names = tuple(name for name in to if name is not None)
    if names and message is not None:
        yield Send(names, message, stream=True)
