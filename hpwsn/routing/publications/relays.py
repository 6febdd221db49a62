"""Relays: reliable publications of other nodes that this node forwards and later acknowledges. Pure.

A representative forwards publications of its nodes to other clusters, and those of other clusters to its
nodes. It acknowledges a publication when all its own targets have acknowledged. It keeps no payload: if a
route changes or an interest becomes known, it requests the publication again from the node that sent it. A
relay may forget a publication, because the origin keeps it and sends it again; entries are limited in
number and age. `Acknowledgements` collects the acknowledgements for one node and origin, so that they
travel in one message.
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
    """The relayed publications; the least recently used is first."""

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
        """Forward a publication to all targets that have not acknowledged it.

        `storing` means that this node itself is a target, because it still has to store the publication.
        """
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
        # The sender treats this node as the representative; the topology of this node may be late.
        return Targets(frozenset(), frozenset((FOREIGN,)))

    def _resolve_unknown(self, key: _Key, relayed: _Relayed) -> set[Subject]:
        """Return the new targets among those whose interest was unknown; drop those that do not want it."""
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
        """Handle acknowledgements of a target on this leg."""
        for publication in publications:
            for key in ((publication, received) for received, sent in _NEXT_LEG.items() if sent is leg):
                relayed = self._relayed.get(key)
                if relayed is not None and subject is not None:
                    relayed.pending.discard(subject)
                    self._finish(key, relayed)

    def stored(self, publication: PublicationId) -> None:
        """Record that this node itself has stored a publication."""
        for leg in _NEXT_LEG:
            relayed = self._relayed.get((publication, leg))
            if relayed is not None:
                relayed.pending.discard(self._me)
                self._finish((publication, leg), relayed)

    def resend_requested(self, leg: Leg, publications: Iterable[PublicationId]) -> None:
        """Pass a target's resend request on to the node that sent the publication."""
        for publication in publications:
            for received, sent in _NEXT_LEG.items():
                relayed = self._relayed.get((publication, received))
                if relayed is not None and sent is leg:
                    self._acknowledgements.request_resend(relayed.upstream, received, publication)

    # Timeouts, and changes of interest and topology.

    def interest_changed(self) -> None:
        """Check the targets whose interest was unknown."""
        for key in list(self._unknown):
            relayed = self._relayed[key]
            if self._resolve_unknown(key, relayed):
                self._acknowledgements.request_resend(relayed.upstream, key[1], key[0])
            self._finish(key, relayed)

    def view_changed(self, before: View, view: View) -> Iterator[Abandoned]:
        """Remove targets after their grace period, and request publications again whose route has changed."""
        gone = {Subject(Scope.NODE, name) for name in set(before.peers()) - set(view.peers())}
        gone |= {Subject(Scope.CLUSTER, name) for name in before.others.keys() - view.others.keys()}
        for key, relayed in list(self._relayed.items()):
            if before.is_representative and not view.is_representative and key[1] is Leg.UP:
                # The nodes of the cluster send to the next representative.
                self._forget(key)
                continue
            # The origin receives an acknowledgement; only this node knows the target that was not reached.
            yield from (Abandoned(key[0].number, subject.name) for subject in relayed.pending & gone)
            relayed.pending -= gone
            relayed.unknown -= gone
            new = self._resolve_unknown(key, relayed)
            if new or any(route_changed(each, before, view) for each in relayed.pending if each != self._me):
                self._acknowledgements.request_resend(relayed.upstream, key[1], key[0])
            self._finish(key, relayed)

    def tick(self, now: float) -> None:
        """Forget publications that have not been used for three times the longest resend interval."""
        age = 3 * self._settings.resend_max
        while self._relayed:
            key, relayed = next(iter(self._relayed.items()))
            if now - relayed.touched < age:
                return
            self._forget(key)


class Acknowledgements:
    """Acknowledgements and resend requests that are not sent yet."""

    def __init__(self) -> None:
        self._pending: dict[tuple[type[Ack] | type[ResendRequest], str, Leg, str, int], list[int]] = {}

    def ack(self, to: str, leg: Leg, publication: PublicationId) -> None:
        """Acknowledge a publication to a node."""
        self._add(Ack, to, leg, publication)

    def request_resend(self, to: str, leg: Leg, publication: PublicationId) -> None:
        """Request a publication again from a node."""
        self._add(ResendRequest, to, leg, publication)

    def _add(
        self, kind: type[Ack] | type[ResendRequest], to: str, leg: Leg, publication: PublicationId
    ) -> None:
        origin, epoch, number = publication
        self._pending.setdefault((kind, to, leg, origin, epoch), []).append(number)

    def take(self) -> Iterator[Effect]:
        """Yield the collected messages, and clear them."""
        if not self._pending:
            return
        pending, self._pending = self._pending, {}
        for (kind, to, leg, origin, epoch), numbers in pending.items():
            for at in range(0, len(numbers), MAX_NUMBERS):
                part = tuple(numbers[at : at + MAX_NUMBERS])
                yield Send((to,), kind(leg, origin, epoch, part), stream=True)
