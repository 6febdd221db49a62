"""Publications that are not reliable: each goes its way once, and nobody keeps it. Pure.

Whoever carries a publication on raises its leg, so that it ends after three steps whatever the nodes believe
of the topology, and knows by its id what came before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hpwsn.routing.interest.routes import Routes, topic_of
from hpwsn.routing.publications.duplicates import RecentNumbers
from hpwsn.routing.topology.cluster_view import Viewer
from hpwsn.routing.wire.effects import Deliver, Effect, RouterSettings, Send
from hpwsn.routing.wire.publication import Flag, Leg, Publication, PublicationId
from hpwsn_client.wsn.topics.topic_expressions import Topic

_MOST_HOPS = 3


class BestEffort:
    """What this node sends, delivers and carries on without keeping it."""

    def __init__(self, routes: Routes, viewer: Viewer, settings: RouterSettings) -> None:
        self._routes = routes
        self._viewer = viewer
        # Apart, since one that was delivered straight may still have to be carried on for another.
        self._delivered = RecentNumbers(settings.window, settings.max_origins)
        self._relayed = RecentNumbers(settings.window, settings.max_origins)
        self.duplicates = 0

    @property
    def origins(self) -> int:
        """Of how many origins recent numbers are remembered."""
        return len(self._delivered) + len(self._relayed)

    def publish(self, id_: PublicationId, topic: Topic | None, payload: bytes, flags: int) -> list[Effect]:
        """One of this node."""
        route = self._routes.of(topic)
        if not route.wanted:
            return []
        legs = ((Leg.UP, route.up), (Leg.CROSS, route.cross), (Leg.DIRECT, route.direct))
        return list(_forward(Publication(id_, route.text, payload, flags), legs))

    def take(self, publication: Publication) -> Iterator[Effect]:
        """One of another node: deliver it here, and carry it on."""
        route = self._routes.of(topic_of(publication.topic))
        if route.local:
            if self._delivered.is_new(publication.id):
                yield Deliver(publication)
            else:
                self.duplicates += 1
        if publication.leg is Leg.DIRECT or publication.hops >= _MOST_HOPS:
            return
        if not self._relayed.is_new(publication.id):
            self.duplicates += 1
        elif publication.leg is Leg.CROSS:
            yield from _forward(publication, ((Leg.DIRECT, route.nodes),))
        elif self._viewer.view.is_representative:
            yield from _forward(publication, ((Leg.CROSS, route.cross),))
        else:
            # Another represents the cluster by now, and its origin has not heard of it.
            yield from _forward(publication, ((Leg.UP, route.up),))


def _forward(publication: Publication, legs: Iterable[tuple[Leg, tuple[str, ...]]]) -> Iterator[Effect]:
    """Send it on each leg that somebody is on; between clusters always by TCP."""
    id_, topic, payload, flags, _, hops, floor = publication
    stream = bool(flags & Flag.STREAM)
    for leg, to in legs:
        if to:
            forwarded = Publication(id_, topic, payload, flags, leg, hops + 1, floor)
            yield Send(to, forwarded, stream or leg is Leg.CROSS)
