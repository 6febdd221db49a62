"""The cluster parts of a node: forwarding, membership, and the proxy to resources of other nodes.

They exist only if `cluster.admin` is set. Forwarding is told of committed notifications and of local
interests. Membership receives the topology and passes it to forwarding and to the proxy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web

from hpwsn.broker.admission.admission import Admission, Limit
from hpwsn.broker.readers.log_readers import Readers
from hpwsn.broker.registrations.interest_follower import InterestFollower
from hpwsn.broker.subscriptions.subscription import Subscriber, Subscription
from hpwsn.broker.subscriptions.subscriptions import Subscriptions
from hpwsn.door.soap.owner_proxy import OwnerProxy
from hpwsn.door.soap.soap_door import SoapDoor
from hpwsn.errors import HpwsnError
from hpwsn.journal.journal import Journal
from hpwsn.listeners import Listeners
from hpwsn.notification import PARTIAL, RELIABLE
from hpwsn.routing.forwarding import Forwarding
from hpwsn.routing.links.link_traffic import LinkRates, LinkReport
from hpwsn.routing.links.udp_sending import LinkOptions
from hpwsn.routing.membership.credentials import shared_secret
from hpwsn.routing.membership.membership import Membership
from hpwsn.routing.membership.node_report import Figures, NodeReport
from hpwsn.routing.topology.topology import Member, Topology
from hpwsn.routing.wire.effects import RouterSettings
from hpwsn.settings import Config
from hpwsn.topics.tree.tree import TopicTree
from hpwsn_client import __version__
from hpwsn_client.wsn.soap.xml import Limits


class InCluster:
    """Connects forwarding, membership and the proxy to the other parts of a node."""

    def __init__(
        self,
        name: str,
        config: Config,
        *,
        journal: Journal,
        tree: TopicTree[Subscriber],
        admission: Admission,
        clock: Callable[[], float],
    ) -> None:
        self._name = name
        self._config = config
        self._membership: Membership | None = None
        self._owner_proxy: OwnerProxy | None = None
        self._link_port = 0
        self._started = False
        self._link_rates = LinkRates()
        self.topology_changed: Listeners[Topology] = Listeners("a new topology")
        self.sample: Callable[[], Figures] = dict
        """The node's figures for a heartbeat, with rates since the heartbeat before."""
        admission.carried |= RELIABLE | PARTIAL
        routing = config.routing
        self.forwarding = Forwarding(
            name,
            shared_secret(config.cluster),
            host=routing.host or config.server.host,
            port=routing.port,
            options=_link_options(config),
            settings=_router_settings(config),
            journal=journal,
            clock=clock,
            policy=tree.routing,
            is_internal=tree.is_internal,
            store=admission.store_from_peer,
            has_peers=bool(config.backbone.peers),
        )

    def join(
        self,
        admission: Admission,
        journal: Journal,
        subscriptions: Subscriptions,
        readers: Readers,
        followers: Sequence[InterestFollower[Any]],
    ) -> None:
        """Connect forwarding to committed notifications and to local interests."""
        forwarding = self.forwarding
        admission.limits.append(Limit(forwarding.check_room, routing=RELIABLE))
        admission.limits.append(Limit(forwarding.check_large_room, large=True))
        journal.committed.add(forwarding.committed)
        subscriptions.interest_changed.add(self._subscription_changed)
        readers.waiting_changed.add(forwarding.reader_changed)
        for follower in followers:
            forwarding.interest_changed.add(follower.elsewhere_changed)
            follower.elsewhere = forwarding.wanted_elsewhere

    def _subscription_changed(self, subscription: Subscription) -> None:
        # `start` passes all restored subscriptions at once.
        if self._started:
            self.forwarding.subscription_changed(subscription)

    def needed_from(self) -> int | None:
        """The first offset that other nodes may still need, or None."""
        return self.forwarding.needed_from

    async def start(self, subscriptions: Subscriptions) -> None:
        """Open the links, and announce the interests of the existing subscriptions."""
        _, self._link_port = await self.forwarding.start()
        self._started = True
        for subscription in subscriptions:
            self.forwarding.subscription_changed(subscription)

    async def register(self, base_url: str) -> None:
        """Register with the admin node, and start to follow the topology."""
        base = self._config.cluster.url or base_url
        try:
            host, port = self._config.routing.announced(self._link_port, urlsplit(base).hostname or "")
        except ValueError as error:
            raise HpwsnError(str(error)) from error
        me = Member(
            name=self._name,
            cluster=self._config.node.cluster or "default",
            url=base,
            host=host,
            port=port,
            version=__version__,
        )
        self._membership = Membership(self._config, me, self._follow, self._report)
        self.forwarding.link_broken.add(self._membership.suspect)
        await self._membership.start()

    def open(self, app: web.Application, soap: SoapDoor, limits: Limits) -> OwnerProxy:
        """Create the proxy for resources of other nodes."""
        self._owner_proxy = OwnerProxy(self._name, self._config, soap, limits)
        topology = self._membership.topology if self._membership else None
        if topology is not None:
            self._owner_proxy.follow(topology)
        self._owner_proxy.join(app)
        return self._owner_proxy

    @property
    def topology(self) -> Topology | None:
        """The topology that is valid now; None while none is known."""
        return self._membership.topology if self._membership else None

    @property
    def me(self) -> Member | None:
        """This node as it registers; None before that."""
        return self._membership.me if self._membership else None

    def links(self) -> tuple[LinkReport, ...]:
        """The traffic of the links on which this node sends."""
        return self._link_rates.read(self.forwarding.link_traffic(), time.monotonic())

    async def ask(self, path: str, *, timeout_seconds: float) -> dict[str, Any]:
        """The admin node's answer to a GET; AdminUnreachable or AdminRefused without one."""
        assert self._membership is not None
        return await self._membership.ask(path, timeout_seconds=timeout_seconds)

    def _report(self) -> NodeReport:
        return NodeReport(self.sample(), self.links())

    def peer_urls(self) -> list[str]:
        """The base URLs of the other nodes."""
        return [member.url for member in self.topology or () if member.name != self._name]

    def problem(self) -> str | None:
        """Why the node is not a member of its cluster; None if it is."""
        return self._membership.problem() if self._membership else None

    def figures(self) -> Mapping[str, object]:
        """The counters of membership."""
        return self._membership.figures() if self._membership else {}

    async def leave(self) -> None:
        """Tell the admin node that this node leaves."""
        if self._membership:
            await self._membership.close()

    async def close(self) -> None:
        """Close the links; call it when nothing more is sent."""
        await self.forwarding.close()

    def _follow(self, topology: Topology) -> None:
        self.forwarding.follow(topology)
        if self._owner_proxy is not None:
            self._owner_proxy.follow(topology)
        self.topology_changed(topology)


def _at_least_two(limit: int, config: Config) -> int:
    """A limit in bytes with room for two of the largest messages, so that what is accepted can be sent."""
    return max(limit, 2 * config.server.body_limit)


def _link_options(config: Config) -> LinkOptions:
    routing = config.routing
    return LinkOptions(
        fragment_size=routing.fragment_size,
        buffer_bytes=routing.buffer,
        queue_bytes=_at_least_two(routing.queue_bytes, config),
        reassembly_timeout=routing.reassembly_timeout,
        reassembly_bytes=_at_least_two(routing.reassembly_bytes, config),
        reassembly_messages=routing.reassembly_messages,
    )


def _router_settings(config: Config) -> RouterSettings:
    routing = config.routing
    return RouterSettings(
        simple_subtree=config.topics.simple_subtree,
        max_unacknowledged=routing.unacknowledged,
        max_unacknowledged_bytes=_at_least_two(routing.unacknowledged_bytes, config),
        resend_after=routing.resend_after,
        dead_grace=routing.dead_grace,
    )
