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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import uvloop
from aiohttp import web

from hpwsn.background import in_thread
from hpwsn.broker.admission.admission import Publisher
from hpwsn.broker.admission.backbone_arrivals import Arrivals
from hpwsn.broker.broker import Broker
from hpwsn.broker.delivery.backlog import Recent
from hpwsn.broker.delivery.dead_letters import DeadLetters
from hpwsn.broker.delivery.delivery import Delivery
from hpwsn.broker.delivery.log_readers import Readers
from hpwsn.broker.delivery.processor import Processor
from hpwsn.broker.delivery.queue_limits import Overflow, QueueLimits
from hpwsn.broker.delivery.removed_topics import RemovedTopics
from hpwsn.broker.delivery.senders import Consumers, PullSender, PushSender
from hpwsn.broker.housekeeping import Housekeeping
from hpwsn.broker.lifetimes.retry import RetryPolicy, retry_policies
from hpwsn.broker.push.consumer_connection import consumer_context
from hpwsn.broker.push.pool import Pusher
from hpwsn.broker.reaper import Reaper
from hpwsn.broker.registrations.demand import CALLS, Demand
from hpwsn.broker.registrations.registered_publisher import Publishers
from hpwsn.broker.registrations.registrations import Registrations
from hpwsn.broker.subscriptions.audience import Audience
from hpwsn.broker.subscriptions.producer_conditions import Conditions
from hpwsn.broker.subscriptions.pull_points import PullPoints
from hpwsn.broker.subscriptions.resource_addresses import ResourceIds
from hpwsn.broker.subscriptions.subscription import Subscriber
from hpwsn.broker.subscriptions.subscriptions import Subscriptions, SubscriptionSettings
from hpwsn.door.onvif.event_service import OnvifDoor
from hpwsn.door.original.wsn_process import LegacyDoor
from hpwsn.door.rest.dead_letters import DeadLettersDoor
from hpwsn.door.rest.events import EventsDoor
from hpwsn.door.rest.operator_api import OperationsDoor
from hpwsn.door.rest.streams import StreamsDoor
from hpwsn.door.soap.operation import Context
from hpwsn.door.soap.property_documents import broker_properties
from hpwsn.door.soap.resource_operations import TopicNamespacesDoor
from hpwsn.door.soap.soap_door import SoapDoor
from hpwsn.errors import HpwsnError
from hpwsn.journal.journal import Journal
from hpwsn.journal.store.records import Arrival, Durability, Recovered
from hpwsn.listening import raise_file_limit
from hpwsn.logs import counted, set_up_logging
from hpwsn.matching.content.content_filters import ContentFilters
from hpwsn.node.backbones import choose_backbone
from hpwsn.node.cluster import InCluster
from hpwsn.node.content_engines import BrokerEngines
from hpwsn.node.port import Port
from hpwsn.notification import ORIGINAL, PARTIAL, Notification
from hpwsn.routing.original_peers import OriginalPeers
from hpwsn.settings import Config
from hpwsn.streams.registry.known_services import Services
from hpwsn.streams.registry.service_file import ServiceStore
from hpwsn.topics.directory.live_topics import LiveTopics
from hpwsn.topics.directory.tree_cache import TreeCache
from hpwsn.topics.opening import access_from, open_directory
from hpwsn.topics.tree.tree import TopicTree
from hpwsn_client.transport import Transport
from hpwsn_client.wsn.soap.envelope import SoapVersion
from hpwsn_client.wsn.soap.xml import Limits

log = logging.getLogger(__package__)


class Node:
    """One broker process."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.name = config.node.name or socket.gethostname()
        self.cluster: InCluster | None = None
        self._clock = time.time
        self._limits = Limits(
            body=config.server.body_limit,
            depth=config.server.depth_limit,
            attributes=config.server.attribute_limit,
            messages=config.server.message_limit,
        )
        self.port = Port(config, self._limits)
        self.base_url = self.port.base_url
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
        audience = Audience(
            self.tree, self.content, BrokerEngines(config.matching.compiled, Path(config.data.dir) / "kernel")
        )
        self.recent = Recent(config.delivery.cache_bytes)
        self.backbone = choose_backbone(config, self.name, self.journal, clock, self._limits)
        self.pusher = Pusher(
            connections_per_host=config.delivery.connections_per_host,
            connect_timeout=config.delivery.connect_timeout,
            response_timeout=config.delivery.response_timeout,
            ssl_context=consumer_context(config.delivery.ca_file),
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
                PushSender(self.pusher, config.delivery.batch, config.delivery.soap_action),
                PullSender(self.journal, pull_points),
                pull_points,
                self.base_url,
                ids,
                lambda: self.cluster.peer_urls() if self.cluster else [],
            ),
            retry=retry_policies(config.delivery, config.retry),
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
            self.cluster = InCluster(
                self.name, config, journal=self.journal, tree=self.tree, publisher=publisher, clock=clock
            )
            self.cluster.attach(self.journal, self.processor, subscriptions, self.readers, demand)
        self.originals = self._beside_originals(publisher) if config.routing.originals else None
        if config.delivery.on_gone == "end":
            self.delivery.on_gone = subscriptions.consumer_gone

    def _beside_originals(self, publisher: Publisher) -> OriginalPeers:
        """Have nodes of the original told of what is committed, and publish what they send."""
        publisher.carried |= PARTIAL | ORIGINAL
        originals = OriginalPeers(
            self.config.routing,
            self.config.server.host,
            self._limits,
            lambda messages, routing: publisher.publish(messages, routing=routing),
        )
        before = self.journal.on_commit
        assert before is not None

        def committed(first: int, notifications: Sequence[Notification]) -> None:
            before(first, notifications)
            originals.committed(first, notifications)

        self.journal.on_commit = committed
        return originals

    def _admission(self, overflow: Overflow) -> Callable[[Sequence[Notification]], None]:
        if not self.config.cluster.admin:
            return overflow.admit

        def admit(notifications: Sequence[Notification]) -> None:
            overflow.admit(notifications)
            assert self.cluster is not None
            self.cluster.forwarding.admit(notifications)

        return admit

    def _build_demand(self) -> Demand:
        delivery, registrations = self.config.delivery, self.config.registrations
        tls = consumer_context(delivery.ca_file)
        transports = {
            version: Transport(
                version,
                soap_action=delivery.soap_action,
                timeout=delivery.response_timeout,
                connections=CALLS,
                tls=tls,
            )
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

    def problems(self) -> list[str]:
        """Why this node is not ready, in plain words."""
        topics = self.topics.problem() if self.topics else None
        membership = self.cluster.problem() if self.cluster else None
        found = (self.backbone.problem(), self.journal.state.unavailable, topics, membership)
        return [problem for problem in found if problem]

    async def start(self) -> None:
        """Open everything; the node accepts requests when this returns."""
        recovered = await self.journal.open(ids_since=self._clock() - self.config.journal.id_window)
        self.port.listen()
        if self.topics:
            await self.topics.start()
        self._restore(recovered)
        await self.conditions.look()
        if self.cluster:
            await self.cluster.start(self.broker.subscriptions)
        arrivals = Arrivals(self.broker.publisher, self._limits, self._clock)
        await self.backbone.start(self._receive, arrivals.screen)
        if self.originals:
            await self.originals.start()
        self._reaper = Reaper(self.broker.subscriptions, self._clock)
        self._registrations_reaper = Reaper(self.broker.registrations, self._clock)
        self._housekeeping = Housekeeping(self.broker, self.config)
        if self.cluster:
            forwarding = self.cluster.forwarding
            self._housekeeping.needed_from = lambda: forwarding.needed_from
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
        if self.cluster:
            await self.cluster.join(self.base_url())
        await self._open_doors()
        self.broker.demand.start()

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
                "restored %s and %s; the log ends at offset %d",
                counted(subscriptions, "subscription"),
                counted(points, "pull point"),
                recovered.next_offset - 1,
            )

    async def _receive(self, notifications: Sequence[Notification], arrival: Arrival | None = None) -> int:
        return await self.journal.append(notifications, arrival)

    async def _open_doors(self) -> None:
        server = self.config.server
        app = web.Application(client_max_size=server.body_limit)
        context = Context(self.broker, self._limits)
        soap = SoapDoor(context, server.request_timeout)
        letters = DeadLetters(self.journal, self.broker.subscriptions, self.delivery)
        app.add_routes(soap.routes())
        elsewhere = self.cluster.open(app, soap, self._limits) if self.cluster else None
        app.add_routes(LegacyDoor(soap, context, self.config.routing, elsewhere).routes())
        OnvifDoor(soap, context, self.config).join(app)
        app.add_routes(DeadLettersDoor(letters).routes())
        app.add_routes(TopicNamespacesDoor(self.tree).routes())
        operations = OperationsDoor(self.name, self.broker, self.pusher, self.problems)
        operations.reports["backbone"] = self.backbone.figures
        if self.topics:
            operations.reports["directory"] = self.topics.status
        if self.cluster:
            operations.reports["routing"] = self.cluster.forwarding.figures
            operations.reports["cluster"] = self.cluster.figures
        if self.originals:
            operations.reports["originals"] = self.originals.figures
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
        await self.port.open(app, soap, self.broker.publisher)

    def reload(self) -> None:
        """Read again what is in files: the certificate and the topics."""
        self.port.reload()
        if self.topics:
            self.topics.reload()

    async def close(self) -> None:
        """Take nothing new, finish what is under way within the drain time, and put everything on disk."""
        self.port.stop()
        if self.originals:
            await self.originals.close()
        if self.cluster:
            await self.cluster.leave()
        if self.topics:
            await self.topics.close()
        await self._removed.close()
        await self._housekeeping.close()
        await self._reaper.close()
        await self.conditions.close()
        await self._registrations_reaper.close()
        await self.broker.demand.close()
        await self.delivery.close()
        await asyncio.gather(self.port.drained(), self.pusher.close(self.config.server.drain_timeout))
        await self.backbone.close()
        if self.cluster:
            await self.cluster.close()
        await self.journal.close()


def serve(config: Config, ready: Callable[[str], None]) -> int:
    """Run a node until SIGTERM or SIGINT, and call `ready` with its address once it accepts requests.

    Returns the exit status.
    """
    set_up_logging(config.log)
    return uvloop.run(_serve(config, ready))


async def _serve(config: Config, ready: Callable[[str], None]) -> int:
    stop = asyncio.Event()
    raise_file_limit()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    node = Node(config)
    with _uncollected():
        await node.start()
    if node.topics or node.port.has_certificate:
        loop.add_signal_handler(signal.SIGHUP, node.reload)
    log.info("node %s is ready; its state is in %s", node.name, config.data.dir)
    ready(node.port.listening_url)
    await stop.wait()
    log.info("stopping: finishing what is under way")
    await node.close()
    log.info("stopped")
    return 0


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without the search for cycles, which would walk again and again over all that is being restored.

    What the start has made is left alone after that, too, and looked for less often: notifications are in no
    cycle.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)
        gc.enable()
