"""A network of routers in one process: events in the order of a simulated clock.

Drives the very Router that a node has; only its links, its journal and the admin node are replaced. A stream
keeps the order of what one node sends to another and loses what is under way when either end dies; a datagram
may get lost, doubled or overtaken. Topologies reach each node after a delay of its own. Everything follows
from the seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import count
from random import Random

from hpwsn.routing.publications.router import Router
from hpwsn.routing.topology.topology import Cluster, Member, State, Topology
from hpwsn.routing.wire.effects import Abandoned, Deliver, Effect, RouterSettings, Send
from hpwsn.routing.wire.router_messages import (
    Flag,
    Interest,
    Message,
    Publication,
    PublicationId,
    encode_messages,
)
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression, parse_topic_expression


@dataclass(frozen=True, slots=True)
class Conditions:
    """How the network behaves; times in seconds, shares of datagrams from 0 to 1."""

    latency: float = 0.0005
    between_clusters: float = 0.02
    loss: float = 0.0
    doubled: float = 0.0
    commit: float = 0.002
    tick: float = 0.1


@dataclass(slots=True)
class Node:
    """A node: its router, and what its journal would hold."""

    name: str
    cluster: str
    router: Router
    epoch: int
    incarnation: int
    since: float
    state: State = "alive"
    running: bool = True
    wanted: Counter[str] = field(default_factory=Counter)
    log: list[tuple[Topic, bool]] = field(default_factory=list)
    floor: int = 0
    """Where the journal's own reliable publications are sent again from after a restart."""
    arrived: Counter[PublicationId] = field(default_factory=Counter)
    """What came from others, and how often it was handed out for good."""
    stored: set[PublicationId] = field(default_factory=set)


@dataclass(slots=True)
class Traffic:
    """What has been sent, by kind of message."""

    messages: Counter[str] = field(default_factory=Counter)
    bytes: Counter[str] = field(default_factory=Counter)

    def add(self, message: Message, receivers: int, size: int) -> None:
        """Count a message to some receivers."""
        kind = type(message).__name__
        self.messages[kind] += receivers
        self.bytes[kind] += receivers * size


class Simulation:
    """Nodes, the admin node that tells them of each other, and the network between them."""

    def __init__(
        self, seed: int, conditions: Conditions | None = None, settings: RouterSettings | None = None
    ) -> None:
        self.now = 0.0
        self.nodes: dict[str, Node] = {}
        self.traffic = Traffic()
        self.abandoned: list[Abandoned] = []
        self.last_interest = 0.0
        """When a node last heard an interest."""
        self._random = Random(seed)
        self._conditions = conditions or Conditions()
        self._settings = settings or RouterSettings()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._streams: dict[tuple[str, str], float] = {}
        self._sessions: Counter[tuple[str, str]] = Counter()
        self._apart: frozenset[str] = frozenset()
        self._topology_sent: dict[str, tuple[float, int]] = {}
        self._representatives: dict[str, str] = {}
        self._version = 0

    # Time.

    def at(self, time: float, action: Callable[[], None]) -> None:
        """Do something at a time."""
        heappush(self._events, (time, next(self._numbers), action))

    def run(self, seconds: float) -> None:
        """Let time pass."""
        end = self.now + seconds
        while self._events and self._events[0][0] <= end:
            self.now, _, action = heappop(self._events)
            action()
        self.now = end

    # Nodes.

    def start(self, names: Iterable[tuple[str, str]]) -> None:
        """Start nodes, each with its cluster, and tell everybody once."""
        for name, cluster in names:
            before = self.nodes.get(name)
            self.nodes[name] = node = self._boot(name, cluster, before)
            self._tick(name, node.incarnation, self._random.random() * self._conditions.tick)
            if before:
                self._connect(name)
        self.announce()

    def _connect(self, name: str) -> None:
        for other in self.running():
            if other.name != name:
                self.at(self.now + self._delay(0.1), partial(self._link, other, name, True))

    def _boot(self, name: str, cluster: str, before: Node | None) -> Node:
        incarnation = before.incarnation + 1 if before else 1
        epoch = before.epoch if before else self._random.getrandbits(63)
        router = Router(name, incarnation=incarnation, epoch=epoch, settings=self._settings)
        node = Node(name, cluster, router, epoch, incarnation, self.now)
        if before:
            node.wanted, node.log, node.floor = before.wanted, before.log, before.floor
            node.arrived, node.stored = before.arrived, before.stored
            router.restore(node.stored)
        for text, times in node.wanted.items():
            for _ in range(times):
                self._do(node, router.want(_expressions(text), self.now))
        for number in range(node.floor, len(node.log)):
            topic, reliable = node.log[number]
            if reliable:
                self._do(node, router.publish(topic, number, b"", self.now, Flag.RELIABLE))
        return node

    def kill(self, name: str, noticed_after: float | None) -> None:
        """End a node without a word; the admin node notices, or does not."""
        node = self.nodes[name]
        node.running = False
        for other in self.running():
            self.at(self.now, partial(self._link, other, name, False))
        if noticed_after is not None:
            self.at(self.now + noticed_after, lambda: self._notice(node))

    def _notice(self, node: Node) -> None:
        if not node.running and self.nodes[node.name] is node and node.state == "alive":
            node.state = "dead"
            self.announce()

    def leave(self, name: str) -> None:
        """A node goes, and says so."""
        node = self.nodes[name]
        node.running, node.state = False, "left"
        self.announce()

    def running(self) -> Iterator[Node]:
        """The nodes that run."""
        return (node for node in self.nodes.values() if node.running)

    def cut(self, one: str, other: str) -> None:
        """Break the link between two nodes, with what is under way on it; it comes back at once."""
        for sender, receiver in ((one, other), (other, one)):
            self._sessions[sender, receiver] += 1
            if self.nodes[sender].running:
                self._link(self.nodes[sender], receiver, False)
        for sender, receiver in ((one, other), (other, one)):
            if self.nodes[sender].running and self.nodes[receiver].running:
                self._link(self.nodes[sender], receiver, True)

    def split(self, names: Iterable[str]) -> None:
        """Let nothing pass between these nodes and the others; nobody but they notices."""
        self.heal()
        self._apart = frozenset(names)
        self._links_across(False)

    def heal(self) -> None:
        """Let everything pass again."""
        across, self._apart = self._apart, frozenset()
        self._links_across(True, across)

    def _links_across(self, up: bool, names: frozenset[str] | None = None) -> None:
        apart = self._apart if names is None else names
        for node in [node for node in self.running() if apart]:
            for other in self.nodes:
                if (node.name in apart) != (other in apart) and (self.nodes[other].running or not up):
                    self._link(node, other, up)

    def _link(self, node: Node, peer: str, up: bool) -> None:
        if node.running:
            self._do(node, node.router.link_changed(peer, up, self.now))

    def _tick(self, name: str, incarnation: int, delay: float) -> None:
        def tick() -> None:
            node = self.nodes[name]
            if node.running and node.incarnation == incarnation:
                self._do(node, node.router.tick(self.now))
                node.floor = len(node.log) if node.router.floor is None else node.router.floor
                self._tick(name, incarnation, self._conditions.tick)

        self.at(self.now + delay, tick)

    # The admin node.

    def topology(self) -> Topology:
        """The topology as the admin node sees it."""
        members: dict[str, list[Member]] = {}
        for node in sorted(self.nodes.values(), key=lambda node: node.since):
            member = Member(node.name, node.cluster, "", "h", 1, "", node.state, node.since)
            members.setdefault(node.cluster, []).append(member)
        for name, its in members.items():
            living = [member.name for member in its if member.alive]
            if self._representatives.get(name) not in living:
                self._representatives[name] = living[0] if living else ""
        clusters = [
            Cluster(name, self._representatives[name] or None, tuple(its)) for name, its in members.items()
        ]
        return Topology(self._version, tuple(clusters))

    def announce(self) -> None:
        """Push the topology to every node, each in its own time, and never an older one after a newer."""
        self._version += 1
        topology = self.topology()
        for node in self.running():
            arrives = self.now + self._delay(self._conditions.between_clusters)
            arrives = max(arrives, self._topology_sent.get(node.name, (0.0, 0))[0])
            self._topology_sent[node.name] = (arrives, self._version)
            self.at(arrives, partial(self._hear, node, topology))

    def _hear(self, node: Node, topology: Topology) -> None:
        if node.running and self.nodes[node.name] is node:
            self._do(node, node.router.topology_changed(topology, self.now))

    # What is wanted and published.

    def subscribe(self, name: str, text: str) -> None:
        """One more at a node wants what the expression says."""
        node = self.nodes[name]
        node.wanted[text] += 1
        self._do(node, node.router.want(_expressions(text), self.now))

    def unsubscribe(self, name: str, text: str) -> None:
        """One less."""
        node = self.nodes[name]
        node.wanted[text] -= 1
        self._do(node, node.router.release(_expressions(text), self.now))

    def publish(self, name: str, topic: Topic, reliable: bool, payload: bytes = b"") -> PublicationId:
        """A node takes a publication."""
        node = self.nodes[name]
        number = len(node.log)
        node.log.append((topic, reliable))
        flags = Flag.RELIABLE if reliable else Flag.NONE
        self._do(node, node.router.publish(topic, number, payload, self.now, flags))
        return PublicationId(name, node.epoch, number)

    def wanting(self, topic: Topic) -> set[str]:
        """The nodes at which somebody wants the topic."""
        return {
            node.name
            for node in self.nodes.values()
            if any(times and _matches(text, topic) for text, times in node.wanted.items())
        }

    # Effects.

    def _do(self, node: Node, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                self._send(node, effect)
            elif isinstance(effect, Deliver):
                self._deliver(node, effect.publication)
            else:
                self.abandoned.append(effect)

    def _send(self, node: Node, send: Send) -> None:
        self.traffic.add(send.message, len(send.to), len(encode_messages([send.message])))
        for name in send.to:
            (self._stream if send.stream else self._datagram)(node, name, send.message)

    def _stream(self, node: Node, to: str, message: Message) -> None:
        arrives = max(
            self.now + self._delay(self._between(node, to)), self._streams.get((node.name, to), 0.0)
        )
        self._streams[node.name, to] = arrives
        session = self._sessions[node.name, to]
        self.at(arrives, lambda: self._arrive(node, to, message, session))

    def _datagram(self, node: Node, to: str, message: Message) -> None:
        copies = 0 if self._random.random() < self._conditions.loss else 1
        copies += self._random.random() < self._conditions.doubled
        for _ in range(copies):
            self.at(self.now + self._delay(self._between(node, to)), lambda: self._arrive(node, to, message))

    def _arrive(self, node: Node, to: str, message: Message, session: int | None = None) -> None:
        receiver = self.nodes.get(to)
        cut = session is not None and self._sessions[node.name, to] != session
        cut = cut or (node.name in self._apart) != (to in self._apart)
        if receiver is not None and receiver.running and node.running and not cut:
            if isinstance(message, Interest):
                self.last_interest = self.now
            self._do(receiver, receiver.router.received(node.name, message, self.now))

    def _deliver(self, node: Node, publication: Publication) -> None:
        if not publication.reliable:
            node.arrived[publication.id] += 1
            return
        self.at(self.now + self._delay(self._conditions.commit), lambda: self._commit(node, publication.id))

    def _commit(self, node: Node, publication: PublicationId) -> None:
        if node.running and self.nodes[node.name] is node:
            node.arrived[publication] += 1
            node.stored.add(publication)
            self._do(node, node.router.stored([publication], self.now))

    def _between(self, node: Node, to: str) -> float:
        other = self.nodes.get(to)
        near = other is not None and other.cluster == node.cluster
        return self._conditions.latency if near else self._conditions.between_clusters

    def _delay(self, usual: float) -> float:
        return usual * (0.5 + self._random.random())


def _expressions(text: str) -> tuple[TopicExpression, ...]:
    return (parse_topic_expression(text, None, {}),) if text else ()


def _matches(text: str, topic: Topic) -> bool:
    return all(expression.matches(topic) for expression in _expressions(text))
