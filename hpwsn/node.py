"""A node: the one place where concrete classes are chosen, joined, started in order and stopped in order.

Start: journal, topic tree, what the journal remembers, backbone, and the port last. Stop: the port first,
then the deliveries under way, then the journal, so that whatever was accepted is on disk.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import uvloop
from aiohttp import web

from hpwsn.backbone.choose import choose_backbone
from hpwsn.broker.arrivals import Arrivals
from hpwsn.broker.audience import Audience
from hpwsn.broker.broker import Broker
from hpwsn.broker.conditions import Conditions
from hpwsn.broker.consumers import Consumers, PullSender, PushSender
from hpwsn.broker.dead_letters import DeadLetters
from hpwsn.broker.delivery import Delivery
from hpwsn.broker.demand import CALLS, Demand
from hpwsn.broker.engines import BrokerEngines
from hpwsn.broker.housekeeping import Housekeeping
from hpwsn.broker.ids import ResourceIds
from hpwsn.broker.intake import Intake
from hpwsn.broker.overflow import Overflow, QueueLimits
from hpwsn.broker.processor import Processor
from hpwsn.broker.properties import broker_properties
from hpwsn.broker.publisher import Publisher
from hpwsn.broker.pull_points import PullPoints
from hpwsn.broker.push import Pusher
from hpwsn.broker.push_request import OutcomeKind
from hpwsn.broker.readers import Readers
from hpwsn.broker.reaper import Reaper
from hpwsn.broker.recent import Recent
from hpwsn.broker.registrations import Registrations
from hpwsn.broker.removed_topics import RemovedTopics
from hpwsn.broker.retry import RetryPolicies, RetryPolicy
from hpwsn.broker.subscription import Subscriber, Subscription
from hpwsn.broker.subscriptions import Subscriptions, SubscriptionSettings
from hpwsn.broker.upstream import Publishers
from hpwsn.door.dead_letters import DeadLettersDoor
from hpwsn.door.documents import in_thread
from hpwsn.door.elsewhere import Elsewhere
from hpwsn.door.events import EventsDoor
from hpwsn.door.gate import Gate
from hpwsn.door.http import SoapDoor
from hpwsn.door.lane import Lanes
from hpwsn.door.legacy import LegacyDoor
from hpwsn.door.notify_lane import NotifyLane
from hpwsn.door.onvif import OnvifDoor
from hpwsn.door.operation import Context
from hpwsn.door.operations import OperationsDoor
from hpwsn.door.streams import StreamsDoor
from hpwsn.door.tls import load_certificate, server_context
from hpwsn.door.topic_namespaces import TopicNamespacesDoor
from hpwsn.errors import HpwsnError
from hpwsn.file_limit import raise_file_limit
from hpwsn.journal.journal import Journal
from hpwsn.journal.records import Arrival, Durability, Recovered
from hpwsn.logs import set_up_logging
from hpwsn.matching.content import ContentFilters
from hpwsn.notification import Notification
from hpwsn.routing.effects import RouterSettings
from hpwsn.routing.forwarding import Forwarding
from hpwsn.routing.membership import Membership
from hpwsn.routing.options import LinkOptions
from hpwsn.routing.secret import shared_secret
from hpwsn.routing.topology import Member, Topology
from hpwsn.settings import Config
from hpwsn.streams.registry import Services
from hpwsn.streams.store import ServiceStore
from hpwsn.topics.cache import TreeCache
from hpwsn.topics.directory import access_from, open_directory
from hpwsn.topics.live import LiveTopics
from hpwsn.topics.tree import TopicTree
from hpwsn.workers.core_link import Core
from hpwsn.workers.front import Front
from hpwsn_client import __version__
from hpwsn_client.transport import Transport
from hpwsn_client.wsn.soap import SoapVersion
from hpwsn_client.wsn.topics import Topic
from hpwsn_client.wsn.xml import Limits

log = logging.getLogger(__name__)


class Node:
    """One broker process."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.name = config.node.name or socket.gethostname()
        self._port = config.server.port
        self.membership: Membership | None = None
        self.forwarding: Forwarding | None = None
        self._elsewhere: Elsewhere | None = None
        self._forwards = False
        self._link_port = 0
        self._front: Front | None = None
        self._clock = time.time
        self._limits = Limits(
            body=config.server.body_limit,
            depth=config.server.depth_limit,
            attributes=config.server.attribute_limit,
            messages=config.server.message_limit,
        )
        self._tls = server_context(config.server)
        self._build()

    def _build(self) -> None:
        config, clock = self.config, self._clock
        ids = ResourceIds(self.name if config.cluster.admin else None)
        self._make_data_directory()
        self.journal = Journal(
            Path(config.data.dir) / "journal.db",
            durability=cast(Durability, config.journal.durability),
            max_bytes=config.journal.max_bytes or None,
            reserve=config.journal.reserve,
            max_waiting=config.journal.waiting_limit,
        )
        self.tree = self._open_tree()
        self.content = ContentFilters()
        audience = Audience(self.tree, self.content, BrokerEngines(config.matching.compiled))
        self.recent = Recent(config.delivery.cache_bytes)
        self.backbone = choose_backbone(config, self.name, self.journal, clock, self._limits)
        self.pusher = Pusher(
            connections_per_host=config.delivery.connections_per_host,
            connect_timeout=config.delivery.connect_timeout,
            response_timeout=config.delivery.response_timeout,
        )
        pull_points = PullPoints(self.journal, settings=config.pull_points, clock=clock, ids=ids)
        limits = QueueLimits(config.delivery.max_queue, config.delivery.overflow)
        overflow = Overflow(limits, audience)
        self.delivery = Delivery(
            journal=self.journal,
            tree=self.tree,
            content=self.content,
            recent=self.recent,
            reach=Consumers(
                PushSender(self.pusher, config.delivery.batch),
                PullSender(self.journal, pull_points),
                pull_points,
                self.base_url,
                ids,
                self._peer_urls,
            ),
            retry=_retry_policies(config),
            overflow=overflow,
            clock=clock,
        )
        self.conditions = Conditions(
            lambda: broker_properties(self.tree, config.registrations.required),
            lambda: self.tree.revision,
            in_thread,
        )
        subscriptions = Subscriptions(
            audience=audience,
            content=self.content,
            conditions=self.conditions,
            journal=self.journal,
            consumers=self.delivery,
            base_url=self.base_url,
            clock=clock,
            settings=SubscriptionSettings(
                limit=config.subscriptions.limit,
                grace=config.subscriptions.grace,
                max_lifetime=config.subscriptions.max_lifetime,
                window=config.delivery.window,
                raw_only=config.delivery.raw_only,
            ),
            ids=ids,
        )
        demand = self._build_demand()
        registrations = Registrations(
            tree=self.tree,
            journal=self.journal,
            watcher=demand,
            base_url=self.base_url,
            clock=clock,
            settings=config.registrations,
            simple_subtree=config.topics.simple_subtree,
            ids=ids,
        )
        publisher = Publisher(
            tree=self.tree,
            backbone=self.backbone,
            clock=clock,
            id_window=config.journal.id_window,
            admit=self._admission(overflow),
            content_limit=config.server.body_limit,
            registered=registrations.admit,
        )
        self.broker = Broker(
            publisher,
            subscriptions,
            pull_points,
            self.delivery,
            self.tree,
            self.journal,
            self.base_url,
            clock,
            registrations,
            demand,
        )
        self.readers = Readers(
            self.journal, self.tree, lambda: self.delivery.head, subtree=config.topics.simple_subtree
        )
        self.processor = Processor(
            tree=self.tree,
            audience=audience,
            recent=self.recent,
            delivery=self.delivery,
            pull_points=pull_points,
            readers=self.readers,
        )
        self.services = self._known_services()
        subscriptions.check_filter = self.services.check
        subscriptions.on_interest, self.readers.on_waiting = (
            demand.subscription_changed,
            demand.reader_changed,
        )
        demand.subscriptions, demand.watched = subscriptions.__iter__, self.readers.waited_for
        self.journal.on_commit = self.processor.process
        if config.cluster.admin:
            self.forwarding = self._build_forwarding(publisher)
            self._attach(self.forwarding, demand)
        if config.delivery.on_gone == "end":
            self.delivery.on_gone = subscriptions.consumer_gone

    def _admission(self, overflow: Overflow) -> Callable[[Sequence[Notification]], None]:
        if not self.config.cluster.admin:
            return overflow.admit

        def admit(notifications: Sequence[Notification]) -> None:
            overflow.admit(notifications)
            assert self.forwarding is not None
            self.forwarding.admit(notifications)

        return admit

    def _build_forwarding(self, publisher: Publisher) -> Forwarding:
        config, routing = self.config, self.config.routing
        publisher.in_cluster = True
        return Forwarding(
            self.name,
            shared_secret(config.cluster),
            host=routing.host or config.server.host,
            port=routing.port,
            options=LinkOptions(
                fragment_size=routing.fragment_size,
                buffer_bytes=routing.buffer,
                queue_bytes=routing.queue_bytes,
                reassembly_timeout=routing.reassembly_timeout,
                # What a door takes must get through, with its escapes.
                reassembly_bytes=max(routing.reassembly_bytes, 2 * config.server.body_limit),
                reassembly_messages=routing.reassembly_messages,
            ),
            settings=RouterSettings(
                simple_subtree=config.topics.simple_subtree,
                max_unacknowledged=routing.unacknowledged,
                max_unacknowledged_bytes=routing.unacknowledged_bytes,
                resend_after=routing.resend_after,
                dead_grace=routing.dead_grace,
            ),
            journal=self.journal,
            clock=self._clock,
            policy=self.tree.routing,
            note_id=publisher.published_elsewhere,
            has_peers=bool(config.backbone.peers),
        )

    def _attach(self, forwarding: Forwarding, demand: Demand) -> None:
        """Have forwarding told of what is committed, and of what somebody here wants."""

        def committed(first: int, notifications: Sequence[Notification]) -> None:
            self.processor.process(first, notifications)
            forwarding.committed(first, notifications)

        def subscription_changed(subscription: Subscription) -> None:
            demand.subscription_changed(subscription)
            if self._forwards:
                forwarding.subscription_changed(subscription)

        def reader_changed(topic: Topic, waiting: bool) -> None:
            demand.reader_changed(topic, waiting)
            forwarding.reader_changed(topic, waiting)

        demand.elsewhere, forwarding.on_elsewhere = forwarding.wanted_elsewhere, demand.elsewhere_changed
        self.journal.on_commit = committed
        self.broker.subscriptions.on_interest = subscription_changed
        self.readers.on_waiting = reader_changed

    def _build_demand(self) -> Demand:
        delivery, registrations = self.config.delivery, self.config.registrations
        transports = {
            version: Transport(version, timeout=delivery.response_timeout, connections=CALLS)
            for version in SoapVersion
        }
        return Demand(
            journal=self.journal,
            publishers=Publishers(transports, registrations.lifetime),
            clock=self._clock,
            retry=RetryPolicy(delivery.retry_first, delivery.retry_max),
            lifetime=registrations.lifetime,
            linger=registrations.linger,
            simple_subtree=self.config.topics.simple_subtree,
        )

    def _known_services(self) -> Services:
        streams = self.config.streams
        self._service_store = ServiceStore(Path(self.config.data.dir) / "streams.json")
        return Services(
            self._clock,
            limit=streams.limit,
            silent_after=streams.silent_after,
            forget_after=streams.forget_after,
        )

    def _make_data_directory(self) -> None:
        try:
            Path(self.config.data.dir).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise HpwsnError(
                f"the data directory {self.config.data.dir} cannot be made: {error.strerror};"
                " name another with --data"
            ) from error

    def _open_tree(self) -> TopicTree[Subscriber]:
        topics = self.config.topics
        tree: TopicTree[Subscriber] = TopicTree(
            fixed=bool(topics.url), simple_subtree=topics.simple_subtree, limit=topics.open_limit
        )
        self.topics: LiveTopics | None = None
        if topics.url:
            directory = open_directory(topics.url, access_from(topics))
            cache = TreeCache(Path(self.config.data.dir) / "topics.json", directory.identity)
            self.topics = LiveTopics(directory, tree, cache if directory.remote else None, topics.start_wait)
            self.topics.load_file()
        return tree

    def base_url(self) -> str:
        """The start of every address that this node hands out."""
        return self.config.server.base_url(self._port, socket.gethostname())

    @property
    def listening_url(self) -> str:
        """The broker's address on this machine."""
        server = self.config.server
        return f"{server.origin(server.host, self._port)}/wsn"

    def problems(self) -> list[str]:
        """Why this node is not ready, in plain words."""
        topics = self.topics.problem() if self.topics else None
        membership = self.membership.problem() if self.membership else None
        found = (self.backbone.problem(), self.journal.state.unavailable, topics, membership)
        return [problem for problem in found if problem]

    async def start(self) -> None:
        """Open everything; the node accepts requests when this returns."""
        recovered = await self.journal.open(ids_since=self._clock() - self.config.journal.id_window)
        listener = self._listen()
        if self.topics:
            await self.topics.start()
        self._restore(recovered)
        await self.conditions.look()
        if self.forwarding:
            await self._start_forwarding(self.forwarding)
        arrivals = Arrivals(self.broker.publisher, self._limits, self._clock)
        await self.backbone.start(self._receive, arrivals.screen)
        self._reaper = Reaper(self.broker.subscriptions, self._clock)
        self._registrations_reaper = Reaper(self.broker.registrations, self._clock)
        self._housekeeping = Housekeeping(self.broker, self.config)
        if self.forwarding:
            self._housekeeping.needed_from = lambda: cast(Forwarding, self.forwarding).needed_from
        self._reaper.start()
        self.conditions.start()
        self._registrations_reaper.start()
        self._housekeeping.start()
        self.broker.subscriptions.wake_all()
        self._removed = RemovedTopics(
            self.tree, self.broker.subscriptions, self.delivery, self.backbone.holds
        )
        if self.topics and self.config.topics.on_remove == "end":
            self.topics.on_removed = self._removed.look
            if not self.topics.problem():
                self._removed.look()
        if self.config.cluster.admin:
            await self._join_cluster()
        await self._open_doors(listener)
        self.broker.demand.start()

    async def _start_forwarding(self, forwarding: Forwarding) -> None:
        _, self._link_port = await forwarding.start()
        self._forwards = True
        for subscription in self.broker.subscriptions:
            forwarding.subscription_changed(subscription)

    async def _join_cluster(self) -> None:
        base = self.config.cluster.url or self.base_url()
        try:
            host, port = self.config.routing.announced(self._link_port, urlsplit(base).hostname or "")
        except ValueError as error:
            raise HpwsnError(str(error)) from error
        me = Member(
            name=self.name,
            cluster=self.config.node.cluster or "default",
            url=base,
            host=host,
            port=port,
            version=__version__,
        )
        self.membership = Membership(self.config, me, self._follow_topology)
        if self.forwarding:
            self.forwarding.on_broken = self.membership.suspect
        await self.membership.start()

    def _peer_urls(self) -> list[str]:
        topology = self.membership.topology if self.membership else None
        return [member.url for member in topology or () if member.name != self.name]

    def _follow_topology(self, topology: Topology) -> None:
        if self.forwarding is not None:
            self.forwarding.follow(topology)
        if self._elsewhere is not None:
            self._elsewhere.follow(topology)

    def _listen(self) -> socket.socket:
        server = self.config.server
        try:
            family, _, _, _, address = socket.getaddrinfo(
                server.host, server.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            listener = socket.create_server(address[:2], family=family, backlog=1024, reuse_port=False)
        except OSError as error:
            raise HpwsnError(
                f"cannot listen on {server.host}:{server.port}: {error.strerror or error};"
                " stop what uses it, or choose another with --host and --port (0 takes a free one)"
            ) from error
        self._port = listener.getsockname()[1]
        return listener

    def _restore(self, recovered: Recovered) -> None:
        self.delivery.head = recovered.next_offset - 1
        self.services.restore(self._service_store.load())
        points = self.broker.pull_points.restore(recovered.pull_points)
        subscriptions = self.broker.subscriptions.restore(recovered.subscriptions)
        self.broker.demand.remember(recovered.upstreams)
        self.broker.registrations.restore(recovered.registrations)
        self.processor.restore_current(recovered.current)
        self.broker.publisher.remember(recovered.message_ids)
        if recovered.next_offset > 1 or subscriptions or points:
            log.info(
                "restored %d subscriptions and %d pull points; the log ends at offset %d",
                subscriptions,
                points,
                recovered.next_offset - 1,
            )

    async def _receive(self, notifications: Sequence[Notification], arrival: Arrival | None = None) -> int:
        return await self.journal.append(notifications, arrival)

    async def _open_doors(self, listener: socket.socket) -> None:
        server = self.config.server
        app = web.Application(client_max_size=server.body_limit)
        context = Context(self.broker, self._limits)
        soap = SoapDoor(context, server.request_timeout)
        letters = DeadLetters(self.journal, self.broker.subscriptions, self.delivery)
        app.add_routes(soap.routes())
        if self.membership:
            self._elsewhere = Elsewhere(self.name, self.config, soap, self._limits)
            if self.membership.topology is not None:
                self._elsewhere.follow(self.membership.topology)
            self._elsewhere.join(app)
        app.add_routes(LegacyDoor(soap, context, self.config.routing, self._elsewhere).routes())
        OnvifDoor(soap, context, self.config).join(app)
        app.add_routes(DeadLettersDoor(letters).routes())
        app.add_routes(TopicNamespacesDoor(self.tree).routes())
        operations = OperationsDoor(self.name, self.broker, self.pusher, self.problems)
        operations.reports["backbone"] = self.backbone.figures
        if self.topics:
            operations.reports["directory"] = self.topics.status
        if self.forwarding:
            operations.reports["routing"] = self.forwarding.figures
        if self.membership:
            operations.reports["cluster"] = self.membership.figures
        app.add_routes(operations.routes())
        app.add_routes(StreamsDoor(self.services, self._service_store).routes())
        EventsDoor(
            self.broker,
            self.readers,
            self._limits,
            server.request_timeout,
            check_filter=self.services.check,
            origins=server.websocket_origins,
        ).join(app)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=server.drain_timeout)
        gate = Gate(limit=server.connections, head_within=server.request_timeout)
        app.middlewares.append(gate.middleware)
        await self._runner.setup()
        gate.server = cast(web.Server, self._runner.server)
        publisher = self.broker.publisher
        if server.workers > 1:
            core = Core(
                publisher.ready, publisher.take_once, Intake(publisher.send_ready), soap.answer_broker
            )
            self._front = Front(self.config, listener, gate, core)
            operations.reports["doors"] = self._front.figures
            await self._front.start()
            return
        self._lanes = Lanes(
            soap,
            NotifyLane(publisher, self._limits),
            body_limit=server.body_limit,
            arrive_within=server.request_timeout,
            hand_over=gate.hand_over,
        )
        # Whether a publisher is registered is in its message, which only the full lane reads.
        if server.fast_lane and not self.config.registrations.required:
            gate.lanes = self._lanes
        self._server = await asyncio.get_running_loop().create_server(
            gate,
            sock=listener,
            ssl=self._tls,
            ssl_handshake_timeout=server.request_timeout if self._tls else None,
        )

    def reload(self) -> None:
        """Read again what is in files: the certificate and the topics."""
        if self._tls:
            try:
                load_certificate(self._tls, self.config.server)
                if self._front is not None:
                    self._front.reload()
                log.info("read the certificate again: new connections get it")
            except HpwsnError as error:
                log.error("%s; connections go on with the certificate from before", error)
        if self.topics:
            self.topics.reload()

    async def close(self) -> None:
        """Take nothing new, finish what is under way within the drain time, and put everything on disk."""
        within = self.config.server.drain_timeout
        if self._front is not None:
            self._front.drain(within)
        else:
            self._server.close()
        if self.membership:
            await self.membership.close()
        if self.topics:
            await self.topics.close()
        await self._removed.close()
        await self._housekeeping.close()
        await self._reaper.close()
        await self.conditions.close()
        await self._registrations_reaper.close()
        await self.broker.demand.close()
        await self.delivery.close()
        doors = self._lanes.close(within) if self._front is None else self._front.drained()
        await asyncio.gather(doors, self._runner.cleanup(), self.pusher.close(within))
        await self.backbone.close()
        if self.forwarding:
            await self.forwarding.close()
        await self.journal.close()


def _retry_policies(config: Config) -> RetryPolicies:
    delivery, retry = config.delivery, config.retry
    classes = {
        OutcomeKind.REFUSED: (retry.refused_first, retry.refused_max, retry.refused_attempts),
        OutcomeKind.LOST: (retry.refused_first, retry.refused_max, retry.refused_attempts),
        OutcomeKind.TIMEOUT: (retry.timeout_first, retry.timeout_max, retry.timeout_attempts),
        OutcomeKind.CLIENT_ERROR: (
            retry.client_error_first,
            retry.client_error_max,
            retry.client_error_attempts,
        ),
        OutcomeKind.SERVER_ERROR: (
            retry.server_error_first,
            retry.server_error_max,
            retry.server_error_attempts,
        ),
    }
    return RetryPolicies(
        RetryPolicy(delivery.retry_first, delivery.retry_max, delivery.retry_for),
        {
            kind: RetryPolicy(
                first or delivery.retry_first,
                max(longest or delivery.retry_max, first or delivery.retry_first),
                delivery.retry_for,
                attempts,
            )
            for kind, (first, longest, attempts) in classes.items()
        },
    )


def serve(config: Config) -> int:
    """Run a node until SIGTERM or SIGINT; the exit status."""
    set_up_logging(config.log)
    return uvloop.run(_serve(config))


async def _serve(config: Config) -> int:
    stop = asyncio.Event()
    raise_file_limit()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    node = Node(config)
    await node.start()
    if node.topics or config.server.tls_certificate:
        loop.add_signal_handler(signal.SIGHUP, node.reload)
    _collect_seldom()
    log.info("node %s is ready; its state is in %s", node.name, config.data.dir)
    print(f"ready {node.listening_url}", flush=True)  # noqa: T201
    await stop.wait()
    log.info("stopping: finishing what is under way")
    await node.close()
    log.info("stopped")
    return 0


def _collect_seldom() -> None:
    """Leave what the start has made alone, and look for cycles less often: notifications are in none."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
