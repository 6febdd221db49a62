"""The exchange of interest between nodes: what is advertised, to whom, when, and what is requested. Pure.

A node advertises its own interest to the representative of its cluster. The representative relays it to the
other nodes of the cluster, which then send publications to each other directly. The representative also
advertises the interest of its cluster to the other representatives, and the interest of all other clusters
to its nodes.

Interest is versioned state. A new version is sent as a delta, and a node that lacks the base version
requests a snapshot. When the source of an interest changes, the new source advertises and the receivers
request, so that the order in which they learn of the change does not matter. Versions are compared
periodically, which repairs lost messages.
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
    """The exchange of interest as one node runs it."""

    def __init__(self, known: KnownInterest, viewer: Viewer, settings: RouterSettings) -> None:
        self._known = known
        self._viewer = viewer
        self._view = viewer.view
        self._settings = settings
        self._changed = False
        self._sent_at = -settings.settle
        self._compared_at: float | None = None
        self._unlisted: set[Subject] = set()

    # Interest of this node.

    def local_changed(self, now: float) -> Iterator[Effect]:
        """Handle a change of this node's own interest."""
        self._changed = True
        return self._advertise_if_due(now)

    def tick(self, now: float) -> Iterator[Effect]:
        """Advertise collected changes, and compare versions when the refresh interval is over."""
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
        """Send the changes to all nodes that receive this node's advertisements."""
        own, aggregated, view = self._known.own.delta(), self._known.aggregated, self._view
        if aggregated is None:
            yield from _send((view.representative,), own)
            return
        yield from _send(view.alive, own)
        yield from _send(view.others.values(), aggregated.cluster.delta(self._known.cluster_complete()))
        yield from _send(view.alive, aggregated.foreign.delta(self._known.foreign_complete()))

    def _send_versions(self) -> Iterator[Effect]:
        aggregated, view = self._known.aggregated, self._view
        if aggregated is None:
            yield from _send((view.representative,), _versions([self._known.own]))
            return
        yield from _send(view.others.values(), _versions([aggregated.cluster]))
        yield from _send(view.alive, self._versions_for_nodes())

    def _versions_for_nodes(self) -> Versions:
        """Return the versions of all interests that a representative sends to its nodes."""
        assert self._known.aggregated is not None
        relayed = tuple(
            Version(key, received.incarnation, received.version)
            for key, received in self._received_from_nodes()
        )
        return Versions(_versions([self._known.own, self._known.aggregated.foreign]).entries + relayed)

    def _received_from_nodes(self) -> list[tuple[Subject, ReceivedInterest]]:
        return [(key, received) for key, received in self._known.received.items() if key.scope is Scope.NODE]

    def _forget_unlisted(self) -> None:
        """Forget nodes that the topology did not contain at two refreshes; a topology can arrive late."""
        known = {Subject(Scope.NODE, name) for name in self._view.peers()}
        unlisted = {key for key, _ in self._received_from_nodes()} - known
        for key in unlisted & self._unlisted:
            self._known.forget(key)
        self._unlisted = unlisted

    # Changes of the topology and of links.

    def view_changed(self, before: View, view: View) -> Iterator[Effect]:
        """Forget nodes that are gone, change the role of this node, and use new sources."""
        self._view = view
        self._forget_gone(before, view)
        known = self._known
        if before.cluster is None:
            # Nobody has received the changes so far, so that the first advertisement must be a snapshot.
            known.own.delta()
        if known.aggregated is not None and (not view.is_representative or before.cluster != view.cluster):
            known.stop_aggregating()
        if view.is_representative and known.aggregated is None:
            known.start_aggregating(view)
            yield from self._become_representative(view)
        elif view.is_representative:
            yield from self._stay_representative(before, view)
        elif view.representative not in (None, before.representative):
            yield from self._follow_representative(before, view)

    def _forget_gone(self, before: View, view: View) -> None:
        known = self._known
        known.generation += 1
        for name in set(before.peers()) - set(view.peers()):
            known.forget(Subject(Scope.NODE, name))
        for name in before.others.keys() - view.others.keys():
            known.forget(Subject(Scope.CLUSTER, name))
        self._changed = True

    def _become_representative(self, view: View) -> Iterator[Effect]:
        assert self._known.aggregated is not None
        yield from _send(view.others.values(), self._known.aggregated.cluster.snapshot())
        yield from self._request_clusters(view.others)
        yield from _send(view.alive, self._versions_for_nodes())

    def _stay_representative(self, before: View, view: View) -> Iterator[Effect]:
        changed = [name for name, its in view.others.items() if its and its != before.others.get(name)]
        yield from self._request_clusters(changed)
        new = [name for name, since in view.alive.items() if before.alive.get(name) != since]
        yield from _send(new, self._versions_for_nodes())

    def _follow_representative(self, before: View, view: View) -> Iterator[Effect]:
        own = self._known.own
        if before.cluster is None:
            # The representative answers the advertisement of a new node with its versions.
            yield from _send((view.representative,), own.snapshot())
            return
        yield from _send((view.representative,), _versions([own]))
        yield from _send(
            (view.representative,), InterestRequest((Subject(Scope.FOREIGN, view.representative or ""),))
        )

    def _request_clusters(self, names: Iterable[str]) -> Iterator[Effect]:
        for name in names:
            yield from _send((self._view.others[name],), InterestRequest((Subject(Scope.CLUSTER, name),)))

    def link_up(self, peer: str) -> Iterator[Effect]:
        """Compare versions with a peer, because earlier messages to it may be lost."""
        aggregated, view = self._known.aggregated, self._view
        if peer == view.representative:
            yield from _send((peer,), _versions([self._known.own]))
        elif aggregated is not None and peer in view.alive:
            yield from _send((peer,), self._versions_for_nodes())
        elif aggregated is not None and peer in view.others.values():
            yield from _send((peer,), _versions([aggregated.cluster]))

    # Messages of other nodes.

    def interest(self, sender: str, message: Interest, now: float) -> Iterator[Effect]:
        """Handle an advertisement of another node."""
        if not self._speaks_for(sender, message.subject):
            return
        for text in (*message.added, *message.removed):
            if text != EVERYTHING:
                parse_pattern(text)
        result = self._known.receive(sender, message)
        if result is None:
            yield from _send((sender,), InterestRequest((message.subject,)))
            return
        before, is_new = result
        if is_new and self._known.aggregated is not None:
            if message.subject.scope is Scope.NODE:
                yield from self._relay(message.subject, before, message)
            self._changed = True
            yield from self._advertise_if_due(now)

    def _relay(self, subject: Subject, before: int, message: Interest) -> Iterator[Effect]:
        """Relay an advertisement to the other nodes: as a delta if it was one, else as a snapshot."""
        relayed = message if message.base == before else self._snapshot_of(subject)
        yield from _send([name for name in self._view.alive if name != subject.name], relayed)
        if not before:
            # The node has just started, and needs all versions.
            yield from _send((subject.name,), self._versions_for_nodes())

    def versions(self, sender: str, message: Versions) -> Iterator[Effect]:
        """Request a snapshot of each interest of which the sender has a newer version."""
        lacking = [
            entry.subject
            for entry in message.entries
            if self._speaks_for(sender, entry.subject) and self._known.is_behind(entry, sender)
        ]
        if lacking:
            yield from _send((sender,), InterestRequest(tuple(lacking)))

    def requested(self, sender: str, message: InterestRequest) -> Iterator[Effect]:
        """Answer a request for snapshots."""
        for subject in message.subjects:
            yield from _send((sender,), self._snapshot_of(subject))
        if self._known.aggregated is not None and any(
            each.scope is Scope.FOREIGN for each in message.subjects
        ):
            yield from _send((sender,), self._versions_for_nodes())

    def _snapshot_of(self, subject: Subject) -> Interest | None:
        """Return the snapshot of a subject; None if this node does not speak for the subject."""
        aggregated = self._known.aggregated
        if subject == self._known.me:
            return self._known.own.snapshot()
        if aggregated is None:
            return None
        for advertisement in (aggregated.cluster, aggregated.foreign):
            if advertisement.subject == subject:
                return advertisement.snapshot()
        received = self._known.received.get(subject) if subject.scope is Scope.NODE else None
        if received is None:
            return None
        texts = tuple(sorted(received.table.texts))
        return Interest(subject, received.incarnation, received.version, 0, texts, (), received.complete)

    def _speaks_for(self, sender: str, subject: Subject) -> bool:
        """Whether the sender is the source of the subject's interest, according to this node's topology."""
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


def _versions(advertisements: Iterable[Advertisement]) -> Versions:
    return Versions(tuple(Version(each.subject, each.incarnation, each.version) for each in advertisements))


def _send(to: Iterable[str | None], message: Message | None) -> Iterator[Effect]:
    """Send a message over TCP; do nothing without a receiver or a message."""
    names = tuple(name for name in to if name is not None)
    if names and message is not None:
        yield Send(names, message, stream=True)
