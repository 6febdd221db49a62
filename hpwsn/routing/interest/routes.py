"""The route of a publication: which nodes want its topic, and the next hops to them. Pure.

Every publication of a clustered node needs its route, so that a route is one look-up by topic. Routes are
cached, up to a limit, until an interest or the topology changes. Within a cluster a publication goes
directly to the nodes that want it; other clusters are reached through the representative. A topic that is
internal at this node goes to no other node, whatever they want; what comes from others is not passed on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from hpwsn.routing.interest.known_interest import FOREIGN, KnownInterest
from hpwsn.routing.topology.cluster_view import View, Viewer
from hpwsn.routing.wire.binary import MalformedMessage
from hpwsn.routing.wire.router_messages import Scope, Subject
from hpwsn_client.wsn.soap.faults import InvalidTopicExpressionFault
from hpwsn_client.wsn.topics.topic_expressions import Topic


class Targets(NamedTuple):
    """Subjects that must acknowledge a reliable publication, and those whose interest is not known yet."""

    wanted: frozenset[Subject]
    unknown: frozenset[Subject]


class Route(NamedTuple):
    """The next hops of the publications on a topic."""

    text: str | None
    local: bool
    """Whether this node wants the topic."""
    nodes: tuple[str, ...]
    """The other nodes of the cluster that want the topic."""
    direct: tuple[str, ...]
    """The nodes of `nodes` that this node sends its own publications to; `up` is excluded."""
    up: tuple[str, ...]
    """The representative, if this node is not it and other clusters want the topic."""
    cross: tuple[str, ...]
    """If this node is the representative: those of the other clusters that want the topic."""
    node_targets: Targets
    cluster_targets: Targets

    @property
    def wanted(self) -> bool:
        """Whether any other node wants the topic."""
        return bool(self.nodes or self.up or self.cross)


class Routes:
    """The routes from one node."""

    def __init__(
        self,
        known_interest: KnownInterest,
        viewer: Viewer,
        max_routes: int,
        is_internal: Callable[[Topic], bool],
    ) -> None:
        self._known = known_interest
        self._is_internal = is_internal
        self._viewer = viewer
        self._most = max_routes
        self._routes: dict[Topic | None, Route] = {}
        self._generation = -1

    def __len__(self) -> int:
        return len(self._routes)

    def of(self, topic: Topic | None) -> Route:
        """Return the route for a topic; None stands for publications without a topic."""
        if self._generation != self._known.generation or len(self._routes) > self._most:
            self._routes.clear()
            self._generation = self._known.generation
        if topic is not None and self._is_internal(topic):
            nobody = Targets(frozenset(), frozenset())
            return Route(str(topic), self._known.local.wants(topic), (), (), (), (), nobody, nobody)
        route = self._routes.get(topic)
        if route is None:
            route = self._routes[topic] = self._find(topic)
        return route

    def _find(self, topic: Topic | None) -> Route:
        known_interest, view = self._known, self._viewer.view
        node_targets, cluster_targets = self._nodes(topic, view), self._clusters(topic, view)
        nodes = tuple(name for name in view.alive if Subject(Scope.NODE, name) in node_targets.wanted)
        beyond = (
            ()
            if view.is_representative
            else _present(view.representative)
            if self._foreign(topic, view)
            else ()
        )
        cross = (
            its for name, its in view.others.items() if Subject(Scope.CLUSTER, name) in cluster_targets.wanted
        )
        return Route(
            None if topic is None else str(topic),
            known_interest.local.wants(topic),
            nodes,
            tuple(name for name in nodes if name not in beyond),
            beyond,
            _present(*cross) if view.is_representative else (),
            node_targets,
            cluster_targets,
        )

    def _foreign(self, topic: Topic | None, view: View) -> bool:
        return bool(view.others and self._known.wants(FOREIGN, topic, view.representative))

    def _nodes(self, topic: Topic | None, view: View) -> Targets:
        acknowledgements = {
            name: self._known.wants(Subject(Scope.NODE, name), topic, None) for name in view.peers()
        }
        return _targets(Scope.NODE, acknowledgements)

    def _clusters(self, topic: Topic | None, view: View) -> Targets:
        """Return the other clusters as targets: each, or FOREIGN unless this node represents its own."""
        if view.is_representative:
            wants = {
                name: self._known.wants(Subject(Scope.CLUSTER, name), topic, its)
                for name, its in view.others.items()
            }
            return _targets(Scope.CLUSTER, wants)
        if view.cluster is None:
            return Targets(frozenset(), frozenset((FOREIGN,)))
        # Unless the answer is a certain no, the publication goes to the representative, which decides.
        beyond = bool(view.others) and self._known.wants(FOREIGN, topic, view.representative) is not False
        return Targets(frozenset((FOREIGN,) if beyond else ()), frozenset())


def _targets(scope: Scope, acknowledgements: Mapping[str, bool | None]) -> Targets:
    return Targets(
        frozenset(Subject(scope, name) for name, wants in acknowledgements.items() if wants),
        frozenset(Subject(scope, name) for name, wants in acknowledgements.items() if wants is None),
    )


def _present(*names: str | None) -> tuple[str, ...]:
    return tuple(name for name in names if name is not None)


def next_hops(subjects: Iterable[Subject], view: View) -> Iterator[tuple[Subject, str]]:
    """Yield the next hop of each subject that can be reached now."""
    for subject in subjects:
        scope, name = subject
        if scope is Scope.NODE:
            hop = name if name in view.alive else None
        else:
            hop = view.others.get(name) if scope is Scope.CLUSTER else view.representative
        if hop is not None and hop != view.name:
            yield subject, hop


@lru_cache(16384)
def topic_of(text: str | None) -> Topic | None:
    """Parse the topic of a publication; None for a publication without a topic."""
    if text is None:
        return None
    try:
        return Topic.parse(text)
    except InvalidTopicExpressionFault as error:
        raise MalformedMessage(f"the topic of a publication is malformed: {error}") from error
