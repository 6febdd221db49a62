"""The router of a node: events in, effects out, with neither I/O nor a clock. Pure.

It joins the parts: the view of the topology, the exchange of interest, the ways of publications, and what is
kept until it is acknowledged. Every method that takes `now` (seconds of a clock that only grows) gives back
what is to be done, in order. The same class runs in a node and, a thousand times, in the simulation (spec,
parts 8 to 10).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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
    """One node's part in carrying publications.

    `incarnation` differs for each start of the process (the time in microseconds); `epoch` is the life
    of the journal whose offsets are the numbers of publications: random, kept with it, new when it is new.
    """

    def __init__(
        self, name: str, *, incarnation: int, epoch: int, settings: RouterSettings | None = None
    ) -> None:
        settings = settings or RouterSettings()
        self.name = name
        self.epoch = epoch
        self._settings = settings
        self._viewer = Viewer(name, settings.dead_grace)
        self._known_interest = KnownInterest(name, incarnation, settings.max_patterns)
        self._interest_exchange = InterestExchange(self._known_interest, self._viewer, settings)
        self._routes = Routes(self._known_interest, self._viewer, settings.max_routes)
        self._outbox = Outbox(name, epoch, self._routes, self._viewer, settings)
        self._acknowledgements = Acknowledgements()
        self._relays = Relays(
            self._known_interest.me, self._routes, self._viewer, self._acknowledgements, settings
        )
        self._best_effort = BestEffort(self._routes, self._viewer, settings)
        self._stored = StoredNumbers(settings.max_origins)
        self._awaiting_ack: dict[PublicationId, set[str]] = {}
        """Who waits for this node's own acknowledgement of what it is storing."""
        self._broken: set[str] = set()
        self._generation = 0
        self._duplicates = 0

    @property
    def view(self) -> View:
        """The topology as this node sees it."""
        return self._viewer.view

    # Who is there, and who wants what here.

    def topology_changed(self, topology: Topology, now: float, utc: float | None = None) -> list[Effect]:
        """Take up a topology; all local interest should be known before the first."""
        before = self.view
        return self._view_changed(before, self._viewer.topology_changed(topology, now, utc))

    def _view_changed(self, before: View, view: View) -> list[Effect]:
        effects = list(self._interest_exchange.view_changed(before, view))
        effects += self._outbox.view_changed(before, view)
        effects += self._relays.view_changed(before, view)
        return self._complete(effects)

    def want(self, expressions: Expressions, now: float) -> list[Effect]:
        """Count one more here that wants topics that match all the expressions; with none, everything."""
        news = [
            self._known_interest.want(text)
            for text in patterns_of(expressions, self._settings.simple_subtree)
        ]
        return self._complete(self._interest_exchange.local_changed(now)) if any(news) else []

    def release(self, expressions: Expressions, now: float) -> list[Effect]:
        """Count one less."""
        news = [
            self._known_interest.release(text)
            for text in patterns_of(expressions, self._settings.simple_subtree)
        ]
        return self._complete(self._interest_exchange.local_changed(now)) if any(news) else []

    @property
    def heard(self) -> int:
        """A number that changes with every interest that is heard."""
        return self._known_interest.generation

    def wanted_elsewhere(self) -> set[str]:
        """The patterns that other nodes want, as far as is known here."""
        return {text for heard in self._known_interest.received.values() for text in heard.table.texts}

    # Publications.

    def wanted(self, topic: Topic | None) -> bool:
        """Whether another node wants it, as far as is known: one look-up."""
        return self._routes.of(topic).wanted

    def route(self, topic: Topic | None) -> Route:
        """Where publications of the topic go from here."""
        return self._routes.of(topic)

    def publish(
        self, topic: Topic | None, number: int, payload: bytes, now: float, flags: int = Flag.NONE
    ) -> list[Effect]:
        """Send a publication of this node on its way.

        A reliable one is kept until all who want it have it. Look at `full` first: it is taken in any case.
        Numbers of reliable ones must grow, so after a restart those that are published again come first.
        """
        if flags & Flag.RELIABLE:
            return list(self._outbox.add(topic, number, payload, flags, now))
        return self._best_effort.publish(PublicationId(self.name, self.epoch, number), topic, payload, flags)

    @property
    def full(self) -> bool:
        """Whether no more reliable publication should be taken now."""
        return self._outbox.full

    @property
    def floor(self) -> int | None:
        """The number of the oldest reliable publication that is still kept; None where none is.

        After a restart the reliable ones from there on are to be published again, under the same numbers.
        """
        return self._outbox.floor

    # What comes from others.

    def received(self, sender: str, message: Message, now: float) -> list[Effect]:
        """A message of another node, whose name the link has made sure of."""
        if isinstance(message, Publication):
            return self._complete(
                self._receive_reliable(sender, message, now)
                if message.reliable
                else self._best_effort.take(message)
            )
        return self._complete(self._control_message(sender, message, now))

    def _control_message(self, sender: str, message: Message, now: float) -> Iterator[Effect]:
        if isinstance(message, Interest):
            return self._interest_exchange.interest(sender, message, now)
        if isinstance(message, Versions):
            return self._interest_exchange.versions(sender, message)
        if isinstance(message, InterestRequest):
            return self._interest_exchange.ask(sender, message)
        assert isinstance(message, Ack | ResendRequest)
        return self._receive_acknowledgement(sender, message)

    def _receive_reliable(self, sender: str, publication: Publication, now: float) -> Iterator[Effect]:
        """A reliable one: deliver it once, acknowledge it when it is stored, and carry it on."""
        id_, leg = publication.id, publication.leg
        if id_.origin == self.name:
            return
        self._stored.raise_floor(id_, publication.floor)
        here = leg is Leg.DIRECT or self._routes.of(topic_of(publication.topic)).local
        storing = here and not self._stored.has(id_)
        if storing and self._stored.begin(id_):
            yield Deliver(publication)
        elif here:
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
        """Reliable publications that were delivered here have been committed."""
        for publication in publications:
            self._stored.stored(publication)
            for sender in self._awaiting_ack.pop(publication, ()):
                self._acknowledgements.ack(sender, Leg.DIRECT, publication)
            self._relays.stored(publication)
        return self._complete(())

    def refused(self, publications: Iterable[PublicationId]) -> None:
        """They could not be committed; they are delivered again when they come again."""
        for publication in publications:
            self._stored.refused(publication)
            self._awaiting_ack.pop(publication, None)

    def restore(self, stored: Iterable[PublicationId], floors: Iterable[PublicationId] = ()) -> None:
        """After a restart: what is stored already, and the number below which each origin sends none."""
        for publication in stored:
            self._stored.stored(publication)
        for floor in floors:
            self._stored.raise_floor(floor, floor.number)

    def floors(self) -> Iterator[PublicationId]:
        """For each origin the number below which no ids need be kept."""
        return self._stored.floors()

    # Links and time.

    def link_changed(self, member: str, up: bool, now: float) -> list[Effect]:
        """The TCP link to a node came up, or broke."""
        if not up:
            self._broken.add(member)
            return []
        effects = list(self._interest_exchange.link_up(member))
        if member in self._broken:
            self._broken.discard(member)
            effects += self._outbox.link_up(member)
        return self._complete(effects)

    def tick(self, now: float) -> list[Effect]:
        """Time has passed; to be called every 20 to 100 milliseconds."""
        before = self.view
        view = self._viewer.tick(now)
        effects = [] if view is None else self._view_changed(before, view)
        effects += self._interest_exchange.tick(now)
        effects += self._outbox.tick(now)
        self._relays.tick(now)
        return self._complete(effects)

    def _complete(self, effects: Iterable[Effect]) -> list[Effect]:
        """The effects, with what follows from a change of interest, and the answers that have gathered."""
        done = list(effects)
        if self._generation != self._known_interest.generation:
            self._generation = self._known_interest.generation
            done += self._outbox.interest_changed()
            self._relays.interest_changed()
        done += self._acknowledgements.take()
        return done

    def figures(self) -> dict[str, int]:
        """Counts of what is held now, and of what was."""
        heard = self._known_interest.received.values()
        return {
            "interests": len(heard),
            "patterns": sum(len(each.table.texts) for each in heard) + len(self._known_interest.local.texts),
            "ways": len(self._routes),
            "unacknowledged": len(self._outbox),
            "unacknowledged_bytes": self._outbox.bytes,
            "resent": self._outbox.resent,
            "relayed": len(self._relays),
            "storing": self._stored.storing,
            "origins": self._best_effort.origins,
            "duplicates": self._duplicates + self._best_effort.duplicates,
        }
