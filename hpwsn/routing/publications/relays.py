"""Reliable publications of others that this node carries on, until it can acknowledge them. Pure.

A representative takes what its nodes send up and carries it to other clusters; one that takes from
another cluster gives it to its nodes. It acknowledges when all behind it have. It keeps no payload: where
the way to somebody changes or becomes known, it asks whoever sent the publication for it once more.
Forgetting one is safe, since its origin has it and sends it again. Bounded by number and by age.

Acknowledgements gathered, so that those to one node for one origin travel in one message. Pure.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hpwsn.routing.interest.known_interest import FOREIGN
from hpwsn.routing.interest.routes import Targets, Way, Ways, next_hops, topic_of
from hpwsn.routing.publications.outbox import moved
from hpwsn.routing.topology.cluster_view import View, Viewer
from hpwsn.routing.wire.effects import Abandoned, Effect, RouterSettings, Send
from hpwsn.routing.wire.router_messages import (
    MAX_NUMBERS,
    Ack,
    Again,
    Leg,
    Publication,
    PublicationId,
    Scope,
    Subject,
)
from hpwsn_client.wsn.topics.topic_expressions import Topic


class Answers:
    """Acks and requests to send again that are to be sent."""

    def __init__(self) -> None:
        self._gathered: dict[tuple[type[Ack] | type[Again], str, Leg, str, int], list[int]] = {}

    def ack(self, to: str, leg: Leg, publication: PublicationId) -> None:
        """This node is done with it."""
        self._add(Ack, to, leg, publication)

    def again(self, to: str, leg: Leg, publication: PublicationId) -> None:
        """This node wants it once more."""
        self._add(Again, to, leg, publication)

    def _add(self, kind: type[Ack] | type[Again], to: str, leg: Leg, publication: PublicationId) -> None:
        origin, epoch, number = publication
        self._gathered.setdefault((kind, to, leg, origin, epoch), []).append(number)

    def take(self) -> Iterator[Effect]:
        """All that has gathered."""
        if not self._gathered:
            return
        gathered, self._gathered = self._gathered, {}
        for (kind, to, leg, origin, epoch), numbers in gathered.items():
            for at in range(0, len(numbers), MAX_NUMBERS):
                part = tuple(numbers[at : at + MAX_NUMBERS])
                yield Send((to,), kind(leg, origin, epoch, part), stream=True)


_Key = tuple[PublicationId, Leg]
_ONWARDS = {Leg.UP: Leg.CROSS, Leg.CROSS: Leg.DIRECT}


@dataclass(slots=True)
class _Carried:
    upstream: str
    topic: Topic | None
    pending: set[Subject]
    unsure: set[Subject]
    touched: float


class Relays:
    """What is carried, the longest untouched first."""

    def __init__(self, me: Subject, ways: Ways, viewer: Viewer, answers: Answers, settings: RouterSettings):
        self._me = me
        self._ways = ways
        self._viewer = viewer
        self._answers = answers
        self._settings = settings
        self._carried: OrderedDict[_Key, _Carried] = OrderedDict()
        self._unsure: set[_Key] = set()

    def __len__(self) -> int:
        return len(self._carried)

    def carry(self, sender: str, publication: Publication, storing: bool, now: float) -> Iterator[Effect]:
        """Carry it on to all who have not acknowledged; `storing` where this node itself must first."""
        key = (publication.id, publication.leg)
        carried = self._carried.get(key)
        if carried is None:
            carried = self._begin(key, sender, publication, now)
        if storing:
            carried.pending.add(self._me)
        carried.upstream, carried.touched = sender, now
        self._carried.move_to_end(key)
        self._decide(key, carried)
        hops = tuple(dict.fromkeys(hop for _, hop in next_hops(carried.pending, self._viewer.view)))
        if hops and publication.leg in _ONWARDS:
            onwards = publication._replace(leg=_ONWARDS[publication.leg], hops=publication.hops + 1)
            yield Send(hops, onwards, stream=True)
        self._finish(key, carried)

    def _begin(self, key: _Key, sender: str, publication: Publication, now: float) -> _Carried:
        topic = topic_of(publication.topic)
        wanted, unsure = self._targets(key[1], self._ways.of(topic))
        carried = _Carried(sender, topic, set(wanted), set(unsure), now)
        self._carried[key] = carried
        if unsure:
            self._unsure.add(key)
        while len(self._carried) > self._settings.max_relayed:
            self._forget(next(iter(self._carried)))
        return carried

    def _targets(self, leg: Leg, way: Way) -> Targets:
        view = self._viewer.view
        if leg is Leg.CROSS and view.cluster is not None:
            return way.of_nodes
        if view.leads:
            return way.of_clusters
        # It was taken for the representative, and will be told that it is, or of its cluster at all.
        return Targets(frozenset(), frozenset((FOREIGN,)))

    def _decide(self, key: _Key, carried: _Carried) -> set[Subject]:
        """Of whom it is known by now that they want it; the others of whom it is known are dropped."""
        if not carried.unsure:
            return set()
        wanted, unsure = self._targets(key[1], self._ways.of(carried.topic))
        found = (
            set(wanted) if FOREIGN in carried.unsure and FOREIGN not in unsure else carried.unsure & wanted
        )
        carried.unsure = set(unsure) if FOREIGN in carried.unsure else carried.unsure & unsure
        carried.pending |= found
        return found

    def _finish(self, key: _Key, carried: _Carried) -> None:
        if not carried.unsure:
            self._unsure.discard(key)
            if not carried.pending:
                del self._carried[key]
                self._answers.ack(carried.upstream, key[1], key[0])

    def _forget(self, key: _Key) -> None:
        del self._carried[key]
        self._unsure.discard(key)

    def acknowledged(self, subject: Subject | None, leg: Leg, publications: Iterable[PublicationId]) -> None:
        """A node behind this one is done with what it got on that leg."""
        for publication in publications:
            for key in ((publication, taken) for taken, given in _ONWARDS.items() if given is leg):
                carried = self._carried.get(key)
                if carried is not None and subject is not None:
                    carried.pending.discard(subject)
                    self._finish(key, carried)

    def stored(self, publication: PublicationId) -> None:
        """This node itself has stored it."""
        for leg in _ONWARDS:
            carried = self._carried.get((publication, leg))
            if carried is not None:
                carried.pending.discard(self._me)
                self._finish((publication, leg), carried)

    def again(self, leg: Leg, publications: Iterable[PublicationId]) -> None:
        """A node behind this one wants what it got on that leg once more: ask for it in turn."""
        for publication in publications:
            for taken, given in _ONWARDS.items():
                carried = self._carried.get((publication, taken))
                if carried is not None and given is leg:
                    self._answers.again(carried.upstream, taken, publication)

    # What changes.

    def interest_changed(self) -> None:
        """See whether those of whom it was not known want it."""
        for key in list(self._unsure):
            carried = self._carried[key]
            if self._decide(key, carried):
                self._answers.again(carried.upstream, key[1], key[0])
            self._finish(key, carried)

    def view_changed(self, before: View, view: View) -> Iterator[Abandoned]:
        """Forget who is not waited for, which is told, and ask again for what has a new way."""
        gone = {Subject(Scope.NODE, name) for name in set(before.peers()) - set(view.peers())}
        gone |= {Subject(Scope.CLUSTER, name) for name in before.others.keys() - view.others.keys()}
        for key, carried in list(self._carried.items()):
            if before.leads and not view.leads and key[1] is Leg.UP:
                # The nodes of the cluster turn to the next representative.
                self._forget(key)
                continue
            # The origin is told that all is done: nobody but this node knows whom it did not reach.
            yield from (Abandoned(key[0].number, subject.name) for subject in carried.pending & gone)
            carried.pending -= gone
            carried.unsure -= gone
            new = self._decide(key, carried)
            if new or any(moved(each, before, view) for each in carried.pending if each != self._me):
                self._answers.again(carried.upstream, key[1], key[0])
            self._finish(key, carried)

    def tick(self, now: float) -> None:
        """Forget what nobody has touched for long."""
        age = 3 * self._settings.resend_most
        while self._carried:
            key, carried = next(iter(self._carried.items()))
            if now - carried.touched < age:
                return
            self._forget(key)
