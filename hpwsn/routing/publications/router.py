"""The router of a node: events in, effects out, without I/O and without a clock. Pure.

It combines the view of the topology, the exchange of interest, the routes, the outbox and the relays. Every
method that takes `now` (seconds of a monotonic clock) returns the effects to be executed, in order. The
same class runs in a node and in the simulation of a thousand nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from hpwsn.routing.interest.interest_exchange import InterestExchange
from hpwsn.routing.interest.known_interest import KnownInterest
from hpwsn.routing.interest.routes import Route, Routes, topic_of
from hpwsn.routing.publications.best_effort import BestEffort
from hpwsn.routing.publications.duplicates import StoredNumbers
from hpwsn.routing.publications.outbox import Outbox
from hpwsn.routing.publications.relays import Acknowledgements, Relays
from hpwsn.routing.topology.cluster_view import View, Viewer
from hpwsn.routing.topology.topology import Topology
from hpwsn.routing.wire.effects import Deliver, Effect, RouterSettings
from hpwsn.routing.wire.patterns import Expressions, patterns_of
from hpwsn.routing.wire.publication import Payload
from hpwsn.routing.wire.router_messages import (
    Ack,
    Flag,
    Interest,
    InterestRequest,
    Leg,
    Message,
    Publication,
    PublicationId,
    ResendRequest,
    Scope,
    Subject,
    Versions,
)
from hpwsn_client.wsn.topics.topic_expressions import Topic


class Router:
    """Routes the publications of one node.

    `incarnation` is different for each start of the process (the time in microseconds). `epoch` identifies
    the journal whose offsets are the numbers of publications: it is random and stored in the journal.
    """

    def __init__(
        self,
        name: str,
        *,
        incarnation: int,
        epoch: int,
        settings: RouterSettings | None = None,
        is_internal: Callable[[Topic], bool] = lambda topic: False,
    ) -> None:
        settings = settings or RouterSettings()
        self.name = name
        self.epoch = epoch
        self._settings = settings
        self._viewer = Viewer(name, settings.dead_grace)
        self._known_interest = KnownInterest(name, incarnation, settings.max_patterns)
        self._interest_exchange = InterestExchange(self._known_interest, self._viewer, settings)
        self._routes = Routes(self._known_interest, self._viewer, settings.max_routes, is_internal)
        self._outbox = Outbox(name, epoch, self._routes, self._viewer, settings)
        self._acknowledgements = Acknowledgements()
        self._relays = Relays(
            self._known_interest.me, self._routes, self._viewer, self._acknowledgements, settings
        )
        self._best_effort = BestEffort(self._routes, self._viewer, settings)
        self._stored = StoredNumbers(settings.max_origins)
        self._awaiting_ack: dict[PublicationId, set[str]] = {}
        """The nodes that wait for an acknowledgement of each publication that is being stored."""
        self._broken: set[str] = set()
        self._generation = 0
        self._duplicates = 0

    @property
    def view(self) -> View:
        """The topology as this node sees it."""
        return self._viewer.view

    # Topology and local interest.

    def topology_changed(self, topology: Topology, now: float, utc: float | None = None) -> list[Effect]:
        """Use a new topology; local interest should be complete before the first one."""
        before = self.view
        return self._view_changed(before, self._viewer.topology_changed(topology, now, utc))

    def _view_changed(self, before: View, view: View) -> list[Effect]:
        effects = list(self._interest_exchange.view_changed(before, view))
        effects += self._outbox.view_changed(before, view)
        effects += self._relays.view_changed(before, view)
        return self._complete(effects)

    def want(self, expressions: Expressions, now: float) -> list[Effect]:
        """Add local interest in the topics that match all expressions; without expressions, in all topics."""
        changed = [
            self._known_interest.want(text)
            for text in patterns_of(expressions, self._settings.simple_subtree)
        ]
        return self._complete(self._interest_exchange.local_changed(now)) if any(changed) else []

    def release(self, expressions: Expressions, now: float) -> list[Effect]:
        """Remove local interest that was added with the same expressions."""
        changed = [
            self._known_interest.release(text)
            for text in patterns_of(expressions, self._settings.simple_subtree)
        ]
        return self._complete(self._interest_exchange.local_changed(now)) if any(changed) else []

    @property
    def heard(self) -> int:
        """A number that changes with every received interest."""
        return self._known_interest.generation

    def wanted_elsewhere(self) -> set[str]:
        """Return the patterns that other nodes want, as far as this node knows."""
        return {text for interest in self._known_interest.received.values() for text in interest.table.texts}

    # Publications.

    def route(self, topic: Topic | None) -> Route:
        """Return the route of a topic; `wanted` says whether another node is known to want it."""
        return self._routes.of(topic)

    def publish(
        self,
        topic: Topic | None,
        number: int,
        payload: Payload,
        now: float,
        flags: int = Flag.NONE,
        route: Route | None = None,
    ) -> list[Effect]:
        """Send a publication of this node; `route` is that of its topic, if the caller has it.

        A reliable publication is kept until all targets have acknowledged it. Check `full` before: this
        method accepts every publication. Numbers of reliable publications must increase, so that after a
        restart the unacknowledged ones must be published first.
        """
        if flags & Flag.RELIABLE:
            return list(self._outbox.add(topic, number, payload, flags, now))
        id_ = PublicationId(self.name, self.epoch, number)
        return self._best_effort.publish(id_, route or self._routes.of(topic), payload, flags)

    @property
    def full(self) -> bool:
        """Whether the outbox is full; do not publish reliable publications then."""
        return self._outbox.full

    @property
    def floor(self) -> int | None:
        """The number of the oldest unacknowledged publication of this node; None without one.

        After a restart, publish the reliable publications from this number on again, with the same numbers.
        """
        return self._outbox.floor

    # Messages of other nodes.

    def received(self, sender: str, message: Message, now: float) -> list[Effect]:
        """Handle a message of another node; the link has authenticated the sender."""
        if isinstance(message, Publication):
            return self._complete(
                self._receive_reliable(sender, message, now)
                if message.flags & Flag.RELIABLE
                else self._best_effort.take(message)
            )
        return self._complete(self._control_message(sender, message, now))

    def _control_message(self, sender: str, message: Message, now: float) -> Iterator[Effect]:
        if isinstance(message, Interest):
            return self._interest_exchange.interest(sender, message, now)
        if isinstance(message, Versions):
            return self._interest_exchange.versions(sender, message)
        if isinstance(message, InterestRequest):
            return self._interest_exchange.requested(sender, message)
        assert isinstance(message, Ack | ResendRequest)
        return self._receive_acknowledgement(sender, message)

    def _receive_reliable(self, sender: str, publication: Publication, now: float) -> Iterator[Effect]:
        """Deliver a reliable publication once, forward it, and acknowledge it when it is stored."""
        id_, leg = publication.id, publication.leg
        if id_.origin == self.name:
            return
        self._stored.raise_floor(id_, publication.floor)
        wanted_here = leg is Leg.DIRECT or self._routes.of(topic_of(publication.topic)).local
        storing = wanted_here and not self._stored.has(id_)
        if storing and self._stored.begin(id_):
            yield Deliver(publication)
        elif wanted_here:
            self._duplicates += 1
        if leg is not Leg.DIRECT:
            yield from self._relays.relay(sender, publication, storing, now)
        elif storing:
            self._awaiting_ack.setdefault(id_, set()).add(sender)
        else:
            self._acknowledgements.ack(sender, leg, id_)

    def _receive_acknowledgement(self, sender: str, message: Ack | ResendRequest) -> Iterator[Effect]:
        leg, again = message.leg, isinstance(message, ResendRequest)
        if message.origin == self.name:
            if message.epoch != self.epoch:
                return
            if again:
                yield from self._outbox.resend_requested(leg, sender, message.numbers)
            else:
                self._outbox.acknowledged(leg, sender, message.numbers)
            return
        ids = [PublicationId(message.origin, message.epoch, number) for number in message.numbers]
        if again:
            self._relays.resend_requested(leg, ids)
        else:
            self._relays.acknowledged(self._subject_of(sender, leg), leg, ids)

    def _subject_of(self, sender: str, leg: Leg) -> Subject | None:
        if leg is Leg.DIRECT:
            return Subject(Scope.NODE, sender)
        cluster = self._viewer.cluster_of(sender)
        return Subject(Scope.CLUSTER, cluster) if cluster is not None else None

    def stored(self, publications: Iterable[PublicationId], now: float) -> list[Effect]:
        """Acknowledge delivered publications, which the journal has committed."""
        for publication in publications:
            self._stored.stored(publication)
            for sender in self._awaiting_ack.pop(publication, ()):
                self._acknowledgements.ack(sender, Leg.DIRECT, publication)
            self._relays.stored(publication)
        return self._complete(())

    def refused(self, publications: Iterable[PublicationId]) -> None:
        """Forget publications that the journal could not commit; a resend delivers them again."""
        for publication in publications:
            self._stored.refused(publication)
            self._awaiting_ack.pop(publication, None)

    def restore(self, stored: Iterable[PublicationId], floors: Iterable[PublicationId] = ()) -> None:
        """Restore the state after a restart: the stored publications, and the floor of each origin."""
        for publication in stored:
            self._stored.stored(publication)
        for floor in floors:
            self._stored.raise_floor(floor, floor.number)

    def floors(self) -> Iterator[PublicationId]:
        """Return for each origin the number below which no ids need be stored."""
        return self._stored.floors()

    # Links and time.

    def link_changed(self, member: str, up: bool, now: float) -> list[Effect]:
        """Handle a TCP link that came up or broke."""
        if not up:
            self._broken.add(member)
            return []
        effects = list(self._interest_exchange.link_up(member))
        if member in self._broken:
            self._broken.discard(member)
            effects += self._outbox.link_up(member)
        return self._complete(effects)

    def tick(self, now: float) -> list[Effect]:
        """Run everything that is due; call this every 20 to 100 milliseconds."""
        before = self.view
        view = self._viewer.tick(now)
        effects = [] if view is None else self._view_changed(before, view)
        effects += self._interest_exchange.tick(now)
        effects += self._outbox.tick(now)
        self._relays.tick(now)
        return self._complete(effects)

    def _complete(self, effects: Iterable[Effect]) -> list[Effect]:
        """Add the effects of a changed interest, and the collected acknowledgements."""
        done = list(effects)
        if self._generation != self._known_interest.generation:
            self._generation = self._known_interest.generation
            done += self._outbox.interest_changed()
            self._relays.interest_changed()
        done += self._acknowledgements.take()
        return done

    def figures(self) -> dict[str, int]:
        """Return the counters for /status and /metrics."""
        received = self._known_interest.received.values()
        return {
            "interests": len(received),
            "patterns": sum(len(each.table.texts) for each in received)
            + len(self._known_interest.local.texts),
            "ways": len(self._routes),
            "unacknowledged": len(self._outbox),
            "unacknowledged_bytes": self._outbox.bytes,
            "resent": self._outbox.resent,
            "relayed": len(self._relays),
            "storing": self._stored.storing,
            "origins": self._best_effort.origins,
            "duplicates": self._duplicates + self._best_effort.duplicates,
        }
