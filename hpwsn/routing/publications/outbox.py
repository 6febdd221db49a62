"""The reliable publications of this node, kept until all who want them have them. Pure.

Those who must acknowledge are the nodes of the cluster that want it, and the other clusters: each by its own
name where this node represents its cluster, else all together through the representative. Where it is not
known yet whether somebody wants it, that counts as pending and is sent once it is known. What is pending is
sent again when the way to it changes, when the representative asks, and when time runs out. Nothing leaves
without an acknowledgement but what is for a node or cluster that is no longer waited for, and that is told.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

from hpwsn.routing.interest.known_interest import FOREIGN
from hpwsn.routing.interest.routes import Ways, next_hops
from hpwsn.routing.topology.cluster_view import View, Viewer
from hpwsn.routing.wire.effects import Abandoned, Effect, RouterSettings, Send
from hpwsn.routing.wire.router_messages import Leg, Publication, PublicationId, Scope, Subject
from hpwsn_client.wsn.topics.topic_expressions import Topic

_RESENT_AT_ONCE = 1000
_SPAN = 100


@dataclass(slots=True)
class _Kept:
    number: int
    topic: Topic | None
    payload: bytes
    flags: int
    pending: set[Subject]
    unsure: set[Subject]
    wait: float

    def drop(self, subject: Subject) -> bool:
        """Forget one that must acknowledge; whether it was there."""
        there = subject in self.pending or subject in self.unsure
        self.pending.discard(subject)
        self.unsure.discard(subject)
        return there


class Outbox:
    """What is kept, in the order of numbers."""

    def __init__(self, name: str, epoch: int, ways: Ways, viewer: Viewer, settings: RouterSettings) -> None:
        self._name = name
        self._epoch = epoch
        self._ways = ways
        self._viewer = viewer
        self._settings = settings
        self._kept: dict[int, _Kept] = {}
        self._order: deque[int] = deque()
        self._unsure: set[int] = set()
        self._due: list[tuple[float, int]] = []
        self._newest = -1
        self.bytes = 0
        self.resent = 0

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def floor(self) -> int | None:
        """The lowest number that is kept."""
        order = self._order
        while order and order[0] not in self._kept:
            order.popleft()
        return order[0] if order else None

    @property
    def full(self) -> bool:
        """Whether it holds as much as it may, or reaches too far back."""
        most = self._settings.max_unacknowledged
        floor = self.floor
        return (
            len(self._kept) >= most
            or self.bytes >= self._settings.max_unacknowledged_bytes
            or (floor is not None and self._newest - floor >= most * _SPAN)
        )

    def keep(
        self, topic: Topic | None, number: int, payload: bytes, flags: int, now: float
    ) -> Iterator[Effect]:
        """Keep a publication where somebody must acknowledge it, and send it."""
        way = self._ways.of(topic)
        wanted = {*way.of_nodes.wanted, *way.of_clusters.wanted}
        unsure = {*way.of_nodes.unsure, *way.of_clusters.unsure}
        if number <= self._newest:
            # What is sent states the lowest number that is kept, so a lower one would be taken for known.
            raise ValueError(f"the number {number} of a reliable publication is not above {self._newest}")
        self._newest = number
        if not (wanted or unsure):
            return
        kept = _Kept(number, topic, payload, flags, wanted, unsure, self._settings.resend_after)
        self._kept[number] = kept
        self._order.append(number)
        self.bytes += len(payload)
        if unsure:
            self._unsure.add(number)
        heappush(self._due, (now + kept.wait, number))
        yield from self._send(kept, wanted)

    def _send(self, kept: _Kept, subjects: Iterable[Subject]) -> Iterator[Effect]:
        hops: dict[Leg, dict[str, None]] = {Leg.UP: {}, Leg.CROSS: {}, Leg.DIRECT: {}}
        for subject, hop in next_hops(subjects, self._viewer.view):
            hops[_LEG[subject.scope]][hop] = None
        for leg, names in hops.items():
            # The representative takes what goes up for itself as well.
            to = tuple(name for name in names if leg is not Leg.DIRECT or name not in hops[Leg.UP])
            if to:
                yield Send(to, self._publication(kept, leg), stream=True)

    def _publication(self, kept: _Kept, leg: Leg) -> Publication:
        id_ = PublicationId(self._name, self._epoch, kept.number)
        text = None if kept.topic is None else str(kept.topic)
        return Publication(id_, text, kept.payload, kept.flags, leg, 0, self.floor or 0)

    def acknowledged(self, leg: Leg, sender: str, numbers: Iterable[int]) -> None:
        """Another node is done with these."""
        subjects = self._answering(leg, sender)
        for number in numbers:
            kept = self._kept.get(number)
            if kept is not None:
                for subject in subjects:
                    kept.drop(subject)
                self._finish(kept)

    def again(self, leg: Leg, sender: str, numbers: Iterable[int]) -> Iterator[Effect]:
        """Another node wants these once more."""
        subjects = self._answering(leg, sender)
        for number in numbers:
            kept = self._kept.get(number)
            if kept is not None:
                yield from self._resend(kept, [each for each in subjects if each in kept.pending])

    def _answering(self, leg: Leg, sender: str) -> list[Subject]:
        """For whom the sender speaks on that leg."""
        node = Subject(Scope.NODE, sender)
        if leg is Leg.DIRECT:
            return [node]
        if leg is Leg.UP:
            return [FOREIGN, node] if sender == self._viewer.view.representative else []
        cluster = self._viewer.cluster_of(sender)
        return [Subject(Scope.CLUSTER, cluster)] if cluster is not None else []

    def _resend(self, kept: _Kept, subjects: Iterable[Subject]) -> Iterator[Effect]:
        for effect in self._send(kept, subjects):
            self.resent += 1
            yield effect

    def _finish(self, kept: _Kept) -> None:
        if not kept.unsure:
            self._unsure.discard(kept.number)
            if not kept.pending:
                del self._kept[kept.number]
                self.bytes -= len(kept.payload)

    # What changes.

    def tick(self, now: float) -> Iterator[Effect]:
        """Send again what has waited too long."""
        sent = 0
        while self._due and self._due[0][0] <= now and sent < _RESENT_AT_ONCE:
            _, number = heappop(self._due)
            kept = self._kept.get(number)
            if kept is not None:
                sent += 1
                kept.wait = min(kept.wait * 2, self._settings.resend_most)
                heappush(self._due, (now + kept.wait, number))
                yield from self._resend(kept, kept.pending)

    def interest_changed(self) -> Iterator[Effect]:
        """See whether those of whom it was not known want it."""
        for number in sorted(self._unsure):
            yield from self._ask_again(self._kept[number])

    def _ask_again(self, kept: _Kept) -> Iterator[Effect]:
        way = self._ways.of(kept.topic)
        wanted = kept.unsure & (way.of_nodes.wanted | way.of_clusters.wanted)
        kept.unsure &= way.of_nodes.unsure | way.of_clusters.unsure
        kept.pending |= wanted
        yield from self._send(kept, wanted)
        self._finish(kept)

    def link_up(self, peer: str) -> Iterator[Effect]:
        """What was under way to the peer when its link broke may be lost."""
        for kept in list(self._kept.values()):
            lost = [subject for subject, hop in next_hops(kept.pending, self._viewer.view) if hop == peer]
            yield from self._resend(kept, lost)

    def view_changed(self, before: View, view: View) -> Iterator[Effect]:
        """Forget who is not waited for, and send along the new ways."""
        gone = {Subject(Scope.NODE, name) for name in set(before.peers()) - set(view.peers())}
        gone |= {Subject(Scope.CLUSTER, name) for name in before.others.keys() - view.others.keys()}
        for kept in list(self._kept.values()):
            if before.cluster is None:
                yield from self._aim(kept)
                continue
            for subject in [each for each in gone if kept.drop(each)]:
                yield Abandoned(kept.number, subject.name)
            self._turn(kept, view)
            yield from self._resend(kept, [each for each in kept.pending if moved(each, before, view)])
            yield from self._ask_again(kept)

    def _aim(self, kept: _Kept) -> Iterator[Effect]:
        """Find out who wants what came before the first topology."""
        way = self._ways.of(kept.topic)
        kept.pending = {*way.of_nodes.wanted, *way.of_clusters.wanted}
        kept.unsure = {*way.of_nodes.unsure, *way.of_clusters.unsure}
        yield from self._send(kept, kept.pending)
        self._finish(kept)

    def _turn(self, kept: _Kept, view: View) -> None:
        """Count other clusters one by one where this node represents its own, else together."""
        way = self._ways.of(kept.topic)
        if view.leads and kept.drop(FOREIGN):
            kept.pending |= way.of_clusters.wanted
            kept.unsure |= way.of_clusters.unsure
            if kept.unsure:
                self._unsure.add(kept.number)
        elif not view.leads:
            clusters = [each for each in kept.pending | kept.unsure if each.scope is Scope.CLUSTER]
            for each in clusters:
                kept.drop(each)
                kept.pending.add(FOREIGN)
            if not view.others and view.cluster is not None:
                kept.drop(FOREIGN)


_LEG = {Scope.NODE: Leg.DIRECT, Scope.CLUSTER: Leg.CROSS, Scope.FOREIGN: Leg.UP}


def moved(subject: Subject, before: View, view: View) -> bool:
    """Whether the way to it has changed."""
    scope, name = subject
    if scope is Scope.NODE:
        return name in view.alive and view.alive[name] != before.alive.get(name)
    if scope is Scope.CLUSTER:
        return not before.leads or view.others.get(name) != before.others.get(name)
    return view.representative != before.representative or before.leads
