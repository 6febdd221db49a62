"""A node: the one place where concrete classes are chosen, joined, started in order and stopped in order.

Start: journal, topic tree, what the journal remembers, backbone, and the port last. Stop: the port first,
then the deliveries under way, then the journal, so that whatever was accepted is on disk.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import signal
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import uvloop
from aiohttp import web

from hpwsn.backbone.embedded import EmbeddedBackbone
from hpwsn.backbone.port import Backbone
from hpwsn.broker.broker import Broker
from hpwsn.broker.consumers import Consumers, PullSender, PushSender
from hpwsn.broker.dead_letters import DeadLetters
from hpwsn.broker.delivery import Delivery
from hpwsn.broker.housekeeping import Housekeeping
from hpwsn.broker.overflow import Overflow, QueueLimits
from hpwsn.broker.processor import Processor
from hpwsn.broker.publisher import Publisher
from hpwsn.broker.pull_points import PullPoints
from hpwsn.broker.push import Pusher
from hpwsn.broker.push_request import OutcomeKind
from hpwsn.broker.readers import Readers
from hpwsn.broker.reaper import Reaper
from hpwsn.broker.recent import Recent
from hpwsn.broker.retry import RetryPolicies, RetryPolicy
from hpwsn.broker.subscription import Subscription
from hpwsn.broker.subscriptions import Subscriptions, SubscriptionSettings
from hpwsn.door.dead_letters import DeadLettersDoor
from hpwsn.door.events import EventsDoor
from hpwsn.door.gate import Gate
from hpwsn.door.http import SoapDoor
from hpwsn.door.legacy import LegacyDoor
from hpwsn.door.operation import Context
from hpwsn.door.operations import OperationsDoor
from hpwsn.door.topic_namespaces import TopicNamespacesDoor
from hpwsn.errors import HpwsnError
from hpwsn.journal.journal import Journal
from hpwsn.journal.records import Durability, Recovered
from hpwsn.logs import set_up_logging
from hpwsn.matching.content import ContentFilters
from hpwsn.notification import Notification
from hpwsn.settings import Config
from hpwsn.topics.directory import open_directory
from hpwsn.topics.tree import TopicTree
from hpwsn_client.wsn.xml import Limits

log = logging.getLogger(__name__)


class Node:
    """One broker process."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.name = config.node.name or socket.gethostname()
        self._port = config.server.port
        self._clock = time.time
        self._limits = Limits(
            body=config.server.body_limit,
            depth=config.server.depth_limit,
            attributes=config.server.attribute_limit,
            messages=config.server.message_limit,
        )
        self._build()

    def _build(self) -> None:
        config, clock = self.config, self._clock
        self._make_data_directory()
        self.journal = Journal(
            Path(config.data.dir) / "journal.db",
            durability=cast(Durability, config.journal.durability),
            max_bytes=config.journal.max_bytes or None,
            reserve=config.journal.reserve,
            max_waiting=config.journal.waiting_limit,
        )
        self.tree = self._load_tree()
        self.content = ContentFilters()
        self.recent = Recent(config.delivery.cache_bytes)
        self.backbone: Backbone = EmbeddedBackbone()
        self.pusher = Pusher(
            connections_per_host=config.delivery.connections_per_host,
            connect_timeout=config.delivery.connect_timeout,
            response_timeout=config.delivery.response_timeout,
        )
        pull_points = PullPoints(self.journal, settings=config.pull_points, clock=clock)
        limits = QueueLimits(config.delivery.max_queue, config.delivery.overflow)
        overflow = Overflow(limits, self.tree, self.content)
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
            ),
            retry=_retry_policies(config),
            overflow=overflow,
            clock=clock,
        )
        subscriptions = Subscriptions(
            tree=self.tree,
            content=self.content,
            journal=self.journal,
            consumers=self.delivery,
            base_url=self.base_url,
            clock=clock,
            settings=SubscriptionSettings(
                limit=config.subscriptions.limit,
                grace=config.subscriptions.grace,
                max_lifetime=config.subscriptions.max_lifetime,
                window=config.delivery.window,
            ),
        )
        publisher = Publisher(
            tree=self.tree,
            backbone=self.backbone,
            clock=clock,
            id_window=config.journal.id_window,
            admit=overflow.admit,
            content_limit=config.server.body_limit,
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
        )
        self.readers = Readers(
            self.journal, self.tree, lambda: self.delivery.head, subtree=config.topics.simple_subtree
        )
        self.processor = Processor(
            tree=self.tree,
            content=self.content,
            recent=self.recent,
            delivery=self.delivery,
            pull_points=pull_points,
            readers=self.readers,
        )
        self.journal.on_commit = self.processor.process
        if config.delivery.on_gone == "end":
            self.delivery.on_gone = subscriptions.consumer_gone

    def _make_data_directory(self) -> None:
        try:
            Path(self.config.data.dir).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise HpwsnError(
                f"the data directory {self.config.data.dir} cannot be made: {error.strerror};"
                " name another with --data"
            ) from error

    def _load_tree(self) -> TopicTree[Subscription]:
        topics = self.config.topics
        declarations = open_directory(topics.url).load() if topics.url else ()
        return TopicTree(
            declarations,
            fixed=bool(topics.url),
            simple_subtree=topics.simple_subtree,
            limit=topics.open_limit,
        )

    def base_url(self) -> str:
        """The start of every address that this node hands out."""
        return self.config.server.base_url(self._port, socket.gethostname())

    @property
    def listening_url(self) -> str:
        """The broker's address on this machine."""
        host = self.config.server.host
        return f"http://[{host}]:{self._port}/wsn" if ":" in host else f"http://{host}:{self._port}/wsn"

    def problems(self) -> list[str]:
        """Why this node is not ready, in plain words."""
        return [problem for problem in (self.backbone.problem(), self.journal.state.unavailable) if problem]

    async def start(self) -> None:
        """Open everything; the node accepts requests when this returns."""
        recovered = await self.journal.open(ids_since=self._clock() - self.config.journal.id_window)
        listener = self._listen()
        self._restore(recovered)
        await self.backbone.start(self._receive)
        self._reaper = Reaper(self.broker.subscriptions, self._clock)
        self._housekeeping = Housekeeping(self.broker, self.config)
        self._reaper.start()
        self._housekeeping.start()
        self.broker.subscriptions.wake_all()
        await self._open_doors(listener)

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
        points = self.broker.pull_points.restore(recovered.pull_points)
        subscriptions = self.broker.subscriptions.restore(recovered.subscriptions)
        self.processor.restore_current(recovered.current)
        self.broker.publisher.remember(recovered.message_ids)
        if recovered.next_offset > 1 or subscriptions or points:
            log.info(
                "restored %d subscriptions and %d pull points; the log ends at offset %d",
                subscriptions,
                points,
                recovered.next_offset - 1,
            )

    async def _receive(self, notifications: Sequence[Notification]) -> int:
        return await self.journal.append(notifications)

    async def _open_doors(self, listener: socket.socket) -> None:
        server = self.config.server
        app = web.Application(client_max_size=server.body_limit)
        context = Context(self.broker, self._limits)
        soap = SoapDoor(context, server.request_timeout)
        letters = DeadLetters(self.journal, self.broker.subscriptions, self.delivery)
        app.add_routes(soap.routes())
        app.add_routes(LegacyDoor(soap, context).routes())
        app.add_routes(DeadLettersDoor(letters).routes())
        app.add_routes(TopicNamespacesDoor(self.tree).routes())
        app.add_routes(OperationsDoor(self.name, self.broker, self.pusher, self.problems).routes())
        EventsDoor(self.broker, self.readers, self._limits, server.request_timeout).join(app)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=server.drain_timeout)
        gate = Gate(limit=server.connections, head_within=server.request_timeout)
        app.middlewares.append(gate.middleware)
        await self._runner.setup()
        gate.server = cast(web.Server, self._runner.server)
        self._server = await asyncio.get_running_loop().create_server(gate, sock=listener)

    async def close(self) -> None:
        """Take nothing new, finish what is under way within the drain time, and put everything on disk."""
        self._server.close()
        await self._housekeeping.close()
        await self._reaper.close()
        await self.delivery.close()
        await asyncio.gather(self._runner.cleanup(), self.pusher.close(self.config.server.drain_timeout))
        await self.backbone.close()
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
    _raise_file_limit()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    node = Node(config)
    await node.start()
    log.info("node %s is ready; its state is in %s", node.name, config.data.dir)
    print(f"ready {node.listening_url}", flush=True)  # noqa: T201
    await stop.wait()
    log.info("stopping: finishing what is under way")
    await node.close()
    log.info("stopped")
    return 0


def _raise_file_limit() -> None:
    """Every connection is a file: allow as many as the system lets this process have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
