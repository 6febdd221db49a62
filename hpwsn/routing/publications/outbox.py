"""The outbox: reliable publications of this node, kept until all targets have acknowledged them. Pure.

Targets are the nodes of the cluster that want the topic, and the other clusters. The representative counts
each other cluster as a target; other nodes count all of them as one target (FOREIGN), which the
representative acknowledges. A node or cluster whose interest is unknown counts as a target until its
interest is known. An unacknowledged publication is sent again when its route changes, when a node requests
it, and after a timeout. A publication is dropped without an acknowledgement only if its last targets were
gone for longer than the grace period; this is reported as Abandoned.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

from hpwsn.routing.interest.known_interest import FOREIGN
from hpwsn.routing.interest.routes import Routes, next_hops
from hpwsn.routing.topology.cluster_view import View, Viewer
from hpwsn.routing.wire.effects import Abandoned, Effect, RouterSettings, Send
from hpwsn.routing.wire.publication import Payload
from hpwsn.routing.wire.router_messages import Leg, Publication, PublicationId, Scope, Subject
from hpwsn_client.wsn.topics.topic_expressions import Topic

_MAX_RESENT_AT_ONCE = 1000
_NUMBER_SPAN = 100


@dataclass(slots=True)
class _Unacknowledged:
    number: int
    topic: Topic | None
    payload: Payload
    flags: int
    pending: set[Subject]
    unknown: set[Subject]
    wait: float

    def drop(self, subject: Subject) -> bool:
        """Remove a target; return whether the publication had it."""
        found = subject in self.pending or subject in self.unknown
        self.pending.discard(subject)
        self.unknown.discard(subject)
        return found


class Outbox:
    """The unacknowledged publications of a node, in the order of their numbers."""

    def __init__(
        self, name: str, epoch: int, routes: Routes, viewer: Viewer, settings: RouterSettings
    ) -> None:
        self._name = name
        self._epoch = epoch
        self._routes = routes
        self._viewer = viewer
        self._settings = settings
        self._unacknowledged: dict[int, _Unacknowledged] = {}
        self._order: deque[int] = deque()
        self._unknown: set[int] = set()
        self._due: list[tuple[float, int]] = []
        self._newest = -1
        self.bytes = 0
        self.resent = 0

    def __len__(self) -> int:
        return len(self._unacknowledged)

    @property
    def floor(self) -> int | None:
        """The lowest unacknowledged number; None if there is none."""
        order = self._order
        while order and order[0] not in self._unacknowledged:
            order.popleft()
        return order[0] if order else None

    @property
    def full(self) -> bool:
        """Whether a limit is reached: publications, bytes, or the span of numbers."""
        most = self._settings.max_unacknowledged
        floor = self.floor
        return (
            len(self._unacknowledged) >= most
            or self.bytes >= self._settings.max_unacknowledged_bytes
            or (floor is not None and self._newest - floor >= most * _NUMBER_SPAN)
        )

    def add(
        self, topic: Topic | None, number: int, payload: Payload, flags: int, now: float
    ) -> Iterator[Effect]:
        """Send a publication, and keep it if it has targets."""
        route = self._routes.of(topic)
        wanted = {*route.node_targets.wanted, *route.cluster_targets.wanted}
        unknown = {*route.node_targets.unknown, *route.cluster_targets.unknown}
        if number <= self._newest:
            # Messages carry the floor, so that receivers would treat a lower number as a duplicate.
            raise ValueError(
                f"reliable publication {number} is not newer than {self._newest}; publish in increasing order"
            )
        self._newest = number
        if not (wanted or unknown):
            return
        entry = _Unacknowledged(number, topic, payload, flags, wanted, unknown, self._settings.resend_after)
        self._unacknowledged[number] = entry
        self._order.append(number)
        self.bytes += len(payload)
        if unknown:
            self._unknown.add(number)
        heappush(self._due, (now + entry.wait, number))
        yield from self._send(entry, wanted)

    def _send(self, entry: _Unacknowledged, subjects: Iterable[Subject]) -> Iterator[Effect]:
        hops: dict[Leg, dict[str, None]] = {Leg.UP: {}, Leg.CROSS: {}, Leg.DIRECT: {}}
        for subject, hop in next_hops(subjects, self._viewer.view):
            hops[_LEG[subject.scope]][hop] = None
        for leg, names in hops.items():
            # The representative also delivers what it receives on the leg UP.
            to = tuple(name for name in names if leg is not Leg.DIRECT or name not in hops[Leg.UP])
            if to:
                yield Send(to, self._publication(entry, leg), stream=True)

    def _publication(self, entry: _Unacknowledged, leg: Leg) -> Publication:
        id_ = PublicationId(self._name, self._epoch, entry.number)
        text = None if entry.topic is None else str(entry.topic)
        return Publication(id_, text, entry.payload, entry.flags, leg, 0, self.floor or 0)

    def acknowledged(self, leg: Leg, sender: str, numbers: Iterable[int]) -> None:
        """Handle acknowledgements of another node."""
        subjects = self._subjects_of(leg, sender)
        for number in numbers:
            entry = self._unacknowledged.get(number)
            if entry is not None:
                for subject in subjects:
                    entry.drop(subject)
                self._finish(entry)

    def resend_requested(self, leg: Leg, sender: str, numbers: Iterable[int]) -> Iterator[Effect]:
        """Send publications again that another node requests."""
        subjects = self._subjects_of(leg, sender)
        for number in numbers:
            entry = self._unacknowledged.get(number)
            if entry is not None:
                yield from self._resend(entry, [each for each in subjects if each in entry.pending])

    def _subjects_of(self, leg: Leg, sender: str) -> list[Subject]:
        """Return the targets for which the sender answers on this leg."""
        node = Subject(Scope.NODE, sender)
        if leg is Leg.DIRECT:
            return [node]
        if leg is Leg.UP:
            return [FOREIGN, node] if sender == self._viewer.view.representative else []
        cluster = self._viewer.cluster_of(sender)
        return [Subject(Scope.CLUSTER, cluster)] if cluster is not None else []

    def _resend(self, entry: _Unacknowledged, subjects: Iterable[Subject]) -> Iterator[Effect]:
        for effect in self._send(entry, subjects):
            self.resent += 1
            yield effect

    def _finish(self, entry: _Unacknowledged) -> None:
        if not entry.unknown:
            self._unknown.discard(entry.number)
            if not entry.pending:
                del self._unacknowledged[entry.number]
                self.bytes -= len(entry.payload)

    # Timeouts, and changes of interest, links and topology.

    def tick(self, now: float) -> Iterator[Effect]:
        """Send publications again whose acknowledgement is overdue."""
        sent = 0
        while self._due and self._due[0][0] <= now and sent < _MAX_RESENT_AT_ONCE:
            _, number = heappop(self._due)
            entry = self._unacknowledged.get(number)
            if entry is not None:
                sent += 1
                entry.wait = min(entry.wait * 2, self._settings.resend_max)
                heappush(self._due, (now + entry.wait, number))
                yield from self._resend(entry, entry.pending)

    def interest_changed(self) -> Iterator[Effect]:
        """Check the targets whose interest was unknown."""
        for number in sorted(self._unknown):
            yield from self._resolve_unknown(self._unacknowledged[number])

    def _resolve_unknown(self, entry: _Unacknowledged) -> Iterator[Effect]:
        route = self._routes.of(entry.topic)
        wanted = entry.unknown & (route.node_targets.wanted | route.cluster_targets.wanted)
        entry.unknown &= route.node_targets.unknown | route.cluster_targets.unknown
        entry.pending |= wanted
        yield from self._send(entry, wanted)
        self._finish(entry)

    def link_up(self, peer: str) -> Iterator[Effect]:
        """Send everything again that was in flight to the peer when its link broke."""
        for entry in list(self._unacknowledged.values()):
            lost = [subject for subject, hop in next_hops(entry.pending, self._viewer.view) if hop == peer]
            yield from self._resend(entry, lost)

    def view_changed(self, before: View, view: View) -> Iterator[Effect]:
        """Remove targets after their grace period, and send along new routes."""
        gone = {Subject(Scope.NODE, name) for name in set(before.peers()) - set(view.peers())}
        gone |= {Subject(Scope.CLUSTER, name) for name in before.others.keys() - view.others.keys()}
        for entry in list(self._unacknowledged.values()):
            if before.cluster is None:
                yield from self._set_first_targets(entry)
                continue
            for subject in [each for each in gone if entry.drop(each)]:
                yield Abandoned(entry.number, subject.name)
            self._retarget_clusters(entry, view)
            yield from self._resend(
                entry, [each for each in entry.pending if route_changed(each, before, view)]
            )
            yield from self._resolve_unknown(entry)

    def _set_first_targets(self, entry: _Unacknowledged) -> Iterator[Effect]:
        """Set the targets of a publication that was added before the first topology."""
        route = self._routes.of(entry.topic)
        entry.pending = {*route.node_targets.wanted, *route.cluster_targets.wanted}
        entry.unknown = {*route.node_targets.unknown, *route.cluster_targets.unknown}
        yield from self._send(entry, entry.pending)
        self._finish(entry)

    def _retarget_clusters(self, entry: _Unacknowledged, view: View) -> None:
        """Replace FOREIGN by the single clusters if this node is the representative now, or the reverse."""
        route = self._routes.of(entry.topic)
        if view.is_representative and entry.drop(FOREIGN):
            entry.pending |= route.cluster_targets.wanted
            entry.unknown |= route.cluster_targets.unknown
            if entry.unknown:
                self._unknown.add(entry.number)
        elif not view.is_representative:
            clusters = [each for each in entry.pending | entry.unknown if each.scope is Scope.CLUSTER]
            for each in clusters:
                entry.drop(each)
                entry.pending.add(FOREIGN)
            if not view.others and view.cluster is not None:
                entry.drop(FOREIGN)


_LEG = {Scope.NODE: Leg.DIRECT, Scope.CLUSTER: Leg.CROSS, Scope.FOREIGN: Leg.UP}


def route_changed(subject: Subject, before: View, view: View) -> bool:
    """Whether the next hop to a subject has changed."""
    scope, name = subject
    if scope is Scope.NODE:
        return name in view.alive and view.alive[name] != before.alive.get(name)
    if scope is Scope.CLUSTER:
        return not before.is_representative or view.others.get(name) != before.others.get(name)
    return view.representative != before.representative or before.is_representative
