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
from hpwsn.routing.interest.routes import Route, Routes, Targets, next_hops, topic_of
from hpwsn.routing.publications.outbox import route_changed
from hpwsn.routing.topology.cluster_view import View, Viewer
from hpwsn.routing.wire.effects import Abandoned, Effect, RouterSettings, Send
from hpwsn.routing.wire.router_messages import (
    MAX_NUMBERS,
    Ack,
    Leg,
    Publication,
    PublicationId,
    ResendRequest,
    Scope,
    Subject,
)
from hpwsn_client.wsn.topics.topic_expressions import Topic


class Acknowledgements:
    """Acks and requests to send again that are to be sent."""

    def __init__(self) -> None:
        self._pending: dict[tuple[type[Ack] | type[ResendRequest], str, Leg, str, int], list[int]] = {}

    def ack(self, to: str, leg: Leg, publication: PublicationId) -> None:
        """This node is done with it."""
        self._add(Ack, to, leg, publication)

    def request_resend(self, to: str, leg: Leg, publication: PublicationId) -> None:
        """This node wants it once more."""
        self._add(ResendRequest, to, leg, publication)

    def _add(
        self, kind: type[Ack] | type[ResendRequest], to: str, leg: Leg, publication: PublicationId
    ) -> None:
        origin, epoch, number = publication
        self._pending.setdefault((kind, to, leg, origin, epoch), []).append(number)

    def take(self) -> Iterator[Effect]:
        """All that has gathered."""
        if not self._pending:
            return
        pending, self._pending = self._pending, {}
        for (kind, to, leg, origin, epoch), numbers in pending.items():
            for at in range(0, len(numbers), MAX_NUMBERS):
                part = tuple(numbers[at : at + MAX_NUMBERS])
                yield Send((to,), kind(leg, origin, epoch, part), stream=True)


_Key = tuple[PublicationId, Leg]
_NEXT_LEG = {Leg.UP: Leg.CROSS, Leg.CROSS: Leg.DIRECT}


@dataclass(slots=True)
class _Relayed:
    upstream: str
    topic: Topic | None
    pending: set[Subject]
    unknown: set[Subject]
    touched: float


class Relays:
    """What is carried, the longest untouched first."""

    def __init__(
        self,
        me: Subject,
        routes: Routes,
        viewer: Viewer,
        acknowledgements: Acknowledgements,
        settings: RouterSettings,
    ):
        self._me = me
        self._routes = routes
        self._viewer = viewer
        self._acknowledgements = acknowledgements
        self._settings = settings
        self._relayed: OrderedDict[_Key, _Relayed] = OrderedDict()
        self._unknown: set[_Key] = set()

    def __len__(self) -> int:
        return len(self._relayed)

    def relay(self, sender: str, publication: Publication, storing: bool, now: float) -> Iterator[Effect]:
        """Carry it on to all who have not acknowledged; `storing` where this node itself must first."""
        key = (publication.id, publication.leg)
        relayed = self._relayed.get(key)
        if relayed is None:
            relayed = self._begin(key, sender, publication, now)
        if storing:
            relayed.pending.add(self._me)
        relayed.upstream, relayed.touched = sender, now
        self._relayed.move_to_end(key)
        self._resolve_unknown(key, relayed)
        hops = tuple(dict.fromkeys(hop for _, hop in next_hops(relayed.pending, self._viewer.view)))
        if hops and publication.leg in _NEXT_LEG:
            forwarded = publication._replace(leg=_NEXT_LEG[publication.leg], hops=publication.hops + 1)
            yield Send(hops, forwarded, stream=True)
        self._finish(key, relayed)

    def _begin(self, key: _Key, sender: str, publication: Publication, now: float) -> _Relayed:
        topic = topic_of(publication.topic)
        wanted, unknown = self._targets(key[1], self._routes.of(topic))
        relayed = _Relayed(sender, topic, set(wanted), set(unknown), now)
        self._relayed[key] = relayed
        if unknown:
            self._unknown.add(key)
        while len(self._relayed) > self._settings.max_relayed:
            self._forget(next(iter(self._relayed)))
        return relayed

    def _targets(self, leg: Leg, route: Route) -> Targets:
        view = self._viewer.view
        if leg is Leg.CROSS and view.cluster is not None:
            return route.node_targets
        if view.is_representative:
            return route.cluster_targets
        # It was taken for the representative, and will be told that it is, or of its cluster at all.
        return Targets(frozenset(), frozenset((FOREIGN,)))

    def _resolve_unknown(self, key: _Key, relayed: _Relayed) -> set[Subject]:
        """Of whom it is known by now that they want it; the others of whom it is known are dropped."""
        if not relayed.unknown:
            return set()
        wanted, unknown = self._targets(key[1], self._routes.of(relayed.topic))
        found = (
            set(wanted) if FOREIGN in relayed.unknown and FOREIGN not in unknown else relayed.unknown & wanted
        )
        relayed.unknown = set(unknown) if FOREIGN in relayed.unknown else relayed.unknown & unknown
        relayed.pending |= found
        return found

    def _finish(self, key: _Key, relayed: _Relayed) -> None:
        if not relayed.unknown:
            self._unknown.discard(key)
            if not relayed.pending:
                del self._relayed[key]
                self._acknowledgements.ack(relayed.upstream, key[1], key[0])

    def _forget(self, key: _Key) -> None:
        del self._relayed[key]
        self._unknown.discard(key)

    def acknowledged(self, subject: Subject | None, leg: Leg, publications: Iterable[PublicationId]) -> None:
        """A node behind this one is done with what it got on that leg."""
        for publication in publications:
            for key in ((publication, taken) for taken, given in _NEXT_LEG.items() if given is leg):
                relayed = self._relayed.get(key)
                if relayed is not None and subject is not None:
                    relayed.pending.discard(subject)
                    self._finish(key, relayed)

    def stored(self, publication: PublicationId) -> None:
        """This node itself has stored it."""
        for leg in _NEXT_LEG:
            relayed = self._relayed.get((publication, leg))
            if relayed is not None:
                relayed.pending.discard(self._me)
                self._finish((publication, leg), relayed)

    def resend_requested(self, leg: Leg, publications: Iterable[PublicationId]) -> None:
        """A node behind this one wants what it got on that leg once more: ask for it in turn."""
        for publication in publications:
            for taken, given in _NEXT_LEG.items():
                relayed = self._relayed.get((publication, taken))
                if relayed is not None and given is leg:
                    self._acknowledgements.request_resend(relayed.upstream, taken, publication)

    # What changes.

    def interest_changed(self) -> None:
        """See whether those of whom it was not known want it."""
        for key in list(self._unknown):
            relayed = self._relayed[key]
            if self._resolve_unknown(key, relayed):
                self._acknowledgements.request_resend(relayed.upstream, key[1], key[0])
            self._finish(key, relayed)

    def view_changed(self, before: View, view: View) -> Iterator[Abandoned]:
        """Forget who is not waited for, which is told, and ask again for what has a new way."""
        gone = {Subject(Scope.NODE, name) for name in set(before.peers()) - set(view.peers())}
        gone |= {Subject(Scope.CLUSTER, name) for name in before.others.keys() - view.others.keys()}
        for key, relayed in list(self._relayed.items()):
            if before.is_representative and not view.is_representative and key[1] is Leg.UP:
                # The nodes of the cluster turn to the next representative.
                self._forget(key)
                continue
            # The origin is told that all is done: nobody but this node knows whom it did not reach.
            yield from (Abandoned(key[0].number, subject.name) for subject in relayed.pending & gone)
            relayed.pending -= gone
            relayed.unknown -= gone
            new = self._resolve_unknown(key, relayed)
            if new or any(route_changed(each, before, view) for each in relayed.pending if each != self._me):
                self._acknowledgements.request_resend(relayed.upstream, key[1], key[0])
            self._finish(key, relayed)

    def tick(self, now: float) -> None:
        """Forget what nobody has touched for long."""
        age = 3 * self._settings.resend_max
        while self._relayed:
            key, relayed = next(iter(self._relayed.items()))
            if now - relayed.touched < age:
                return
            self._forget(key)
