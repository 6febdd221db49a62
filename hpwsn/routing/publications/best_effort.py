"""Best-effort publications: each is sent once along its route, and not kept. Pure.

A node that forwards a publication sets the next leg and increments the hop count. A publication therefore
ends after three hops, even if nodes have different topologies. Duplicates are recognised by the publication
id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hpwsn.routing.interest.routes import Route, Routes, topic_of
from hpwsn.routing.publications.duplicates import RecentNumbers
from hpwsn.routing.topology.cluster_view import Viewer
from hpwsn.routing.wire.effects import Deliver, Effect, RouterSettings, Send
from hpwsn.routing.wire.publication import Flag, Leg, Payload, Publication, PublicationId

_MOST_HOPS = 3


class BestEffort:
    """Sends, delivers and forwards best-effort publications."""

    def __init__(self, routes: Routes, viewer: Viewer, settings: RouterSettings) -> None:
        self._routes = routes
        self._viewer = viewer
        # Separate windows: a publication that was delivered here may still have to be forwarded.
        self._delivered = RecentNumbers(settings.window, settings.max_origins)
        self._relayed = RecentNumbers(settings.window, settings.max_origins)
        self.duplicates = 0

    @property
    def origins(self) -> int:
        """The number of origins whose recent publications are remembered."""
        return len(self._delivered) + len(self._relayed)

    def publish(self, id_: PublicationId, route: Route, payload: Payload, flags: int) -> list[Effect]:
        """Send a publication of this node on its route."""
        if not route.wanted:
            return []
        legs = ((Leg.UP, route.up), (Leg.CROSS, route.cross), (Leg.DIRECT, route.direct))
        return list(_forward(Publication(id_, route.text, payload, flags), legs))

    def take(self, publication: Publication) -> Iterator[Effect]:
        """Handle a publication of another node: deliver it here, and forward it."""
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
            # Another node is the representative now, and the origin does not know it yet.
            yield from _forward(publication, ((Leg.UP, route.up),))


def _forward(publication: Publication, legs: Iterable[tuple[Leg, tuple[str, ...]]]) -> Iterator[Effect]:
    """Send a publication on each leg that has receivers; between clusters by UDP only if so flagged."""
    id_, topic, payload, flags, _, hops, floor = publication
    stream, datagram = bool(flags & Flag.STREAM), bool(flags & Flag.DATAGRAM)
    for leg, to in legs:
        if to:
            forwarded = Publication(id_, topic, payload, flags, leg, hops + 1, floor)
            yield Send(to, forwarded, stream or (leg is Leg.CROSS and not datagram))
