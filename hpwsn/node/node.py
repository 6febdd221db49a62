"""A node: starts its parts in order and stops them in the opposite order, with one exit stack.

Start: journal, topic tree, recovery, backbone, background tasks, and the port last. Stop: the port first,
then the deliveries in flight, then the journal, so that all accepted notifications are on disk. A failed
start stops the parts that it has started. Recovery ends before a door is built.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from urllib.parse import urlsplit

import uvloop
from aiohttp import web

from hpwsn.background import in_thread
from hpwsn.broker.admission.backbone_arrivals import Arrivals
from hpwsn.broker.delivery.dead_letters import DeadLetters
from hpwsn.broker.delivery.presence import Presence
from hpwsn.broker.delivery.removed_topics import RemovedTopics
from hpwsn.broker.housekeeping import Housekeeping, RetentionPolicy
from hpwsn.broker.idle_pull_points import IdlePullPoints
from hpwsn.broker.lease_timer import LeaseTimer
from hpwsn.broker.topic_effect import TopicEffect
from hpwsn.door.onvif.event_service import OnvifDoor
from hpwsn.door.original.wsn_process import OriginalDoor
from hpwsn.door.rest.events.events_door import EventsDoor
from hpwsn.door.rest.json_answers import errors_in_json
from hpwsn.door.rest.operations.dead_letters import DeadLettersDoor
from hpwsn.door.rest.operations.metrics import MetricsDoor
from hpwsn.door.rest.operations.node_status import StatusDoor
from hpwsn.door.rest.operations.operator_actions import OperatorActions
from hpwsn.door.rest.operations.presence_door import PresenceDoor
from hpwsn.door.rest.operations.profile import ProfileDoor
from hpwsn.door.rest.operations.pull_points import PullPointsDoor
from hpwsn.door.rest.operations.registrations import RegistrationsDoor
from hpwsn.door.rest.operations.subscription_items import SubscriptionItems
from hpwsn.door.rest.operations.subscriptions import SubscriptionsDoor
from hpwsn.door.rest.services.service_requests import ServiceRequests
from hpwsn.door.rest.services.streams import StreamsDoor
from hpwsn.door.rest.topics.filter_check import FilterCheckDoor
from hpwsn.door.rest.topics.topic_changes import TopicChangesDoor
from hpwsn.door.rest.topics.topic_files import TopicFilesDoor
from hpwsn.door.rest.topics.topic_list import TopicListDoor
from hpwsn.door.soap.operation import Context
from hpwsn.door.soap.resource_operations import TopicNamespacesDoor
from hpwsn.door.soap.soap_door import SoapDoor
from hpwsn.histogram import Timings
from hpwsn.http_json.client_session import SessionDoor
from hpwsn.http_json.cross_origin import Origins
from hpwsn.http_json.monitoring_door import MonitoringDoor
from hpwsn.journal.store.records import Recovered
from hpwsn.listening import raise_file_limit
from hpwsn.logs import counted, set_up_logging
from hpwsn.node.cluster_doors import open_cluster_doors
from hpwsn.node.monitor.node_monitor import NodeMonitor
from hpwsn.node.node_parts import Parts
from hpwsn.node.port import Port
from hpwsn.page.page_door import PageDoor
from hpwsn.settings import Config
from hpwsn.settings_reload import Reread, SettingsReload
from hpwsn_client.wsn.soap.xml import Limits

log = logging.getLogger(__package__)


class Node:
    """One broker process."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.name = config.node.name or socket.gethostname()
        self._limits = Limits(
            body=config.server.body_limit,
            depth=config.server.depth_limit,
            attributes=config.server.attribute_limit,
            messages=config.server.message_limit,
        )
        timings = Timings()
        self.port = Port(config, self._limits, timings)
        self.parts = Parts(self.name, config, self.port.base_url, self._limits, timings, self.port.origin)
        self.monitor = NodeMonitor(self.parts, self.port.connections)
        self._running = AsyncExitStack()

    def problems(self) -> list[str]:
        """The reasons why this node is not ready; empty if it is."""
        return list(self.parts.problems().values())

    async def start(self) -> None:
        """Open everything; the node accepts requests when this returns."""
        async with AsyncExitStack() as running:
            await self._start(running)
            self._running = running.pop_all()

    async def _start(self, running: AsyncExitStack) -> None:
        parts = self.parts
        if parts.spans:
            running.push_async_callback(in_thread, parts.spans.close)
        recovered = await parts.journal.open(ids_since=parts.clock() - self.config.journal.id_window)
        running.push_async_callback(self.monitor.stopped)
        running.push_async_callback(parts.journal.close)
        self.port.listen()
        running.callback(self.port.stop)
        await parts.topics.start()
        running.push_async_callback(parts.topics.close)
        await self._recover(recovered)
        if parts.cluster:
            await parts.cluster.start(parts.subscriptions)
            running.push_async_callback(parts.cluster.close)
        await self._start_background(running)
        if parts.cluster:
            parts.cluster.sample = lambda: self.monitor.sample.report(time.monotonic())
            await parts.cluster.register(self.port.base_url())
            running.push_async_callback(parts.cluster.leave)
        if parts.agent:
            await parts.agent.start(self.port.url_for_jobs(self.config.streams.master))
            running.push_async_callback(parts.agent.close)
            parts.sensors.jobs.start()
            running.push_async_callback(parts.sensors.jobs.close)
        await self.monitor.open()
        running.push_async_callback(self.monitor.close)
        await self._open_doors()
        running.callback(self.port.stop)
        parts.demand.start()

    async def _recover(self, recovered: Recovered) -> None:
        """Restore the state of the journal, and clean up after a crash."""
        parts = self.parts
        parts.delivery.head = recovered.next_offset - 1
        parts.services.restore(parts.service_store.load())
        points = parts.pull_points.restore(recovered.pull_points)
        subscriptions = parts.subscriptions.restore(recovered.subscriptions)
        parts.demand.remember(recovered.upstreams)
        parts.registrations.restore(recovered.registrations)
        parts.processor.restore_current(recovered.current)
        parts.processor.restore_internal(recovered.internal)
        parts.admission.restore(recovered.message_ids)
        parts.sensors.restore(recovered)
        parts.dtn.restore(recovered)
        await parts.pull_subscriptions.remove_orphans()
        await parts.conditions.look()
        if recovered.next_offset > 1 or subscriptions or points:
            log.info(
                "restored %s and %s; the log ends at offset %d",
                counted(subscriptions, "subscription"),
                counted(points, "pull point"),
                recovered.next_offset - 1,
            )

    async def _start_background(self, running: AsyncExitStack) -> None:
        """Start the backbone and the background tasks."""
        parts = self.parts
        if parts.outcome_plugins:
            parts.outcome_plugins.start()
            running.push_async_callback(in_thread, parts.outcome_plugins.close)
        arrivals = Arrivals(parts.admission, self._limits, parts.clock)
        await parts.backbone.start(parts.journal.append, arrivals.screen)
        running.push_async_callback(parts.backbone.close)
        running.push_async_callback(self._drain)
        running.push_async_callback(parts.delivery.close)
        if parts.receipts:
            running.push_async_callback(parts.receipts.close)
        running.push_async_callback(parts.demand.close)
        if parts.originals:
            await parts.originals.start()
            running.push_async_callback(parts.originals.close)
        for task in (
            LeaseTimer(parts.subscriptions, parts.clock),
            LeaseTimer(parts.registrations, parts.clock),
            LeaseTimer(IdlePullPoints(parts.broker), parts.clock),
            parts.conditions,
            parts.delivery.rates,
            parts.topic_rates,
            Housekeeping(
                parts.broker,
                RetentionPolicy.of(self.config),
                needed_from=parts.needed_from,
            ),
        ):
            task.start()
            running.push_async_callback(task.close)
        if parts.receipts and any(s.cursor.acknowledged < parts.delivery.head for s in parts.subscriptions):
            parts.receipts.listen()
        parts.subscriptions.wake_all()
        removed = RemovedTopics(parts.tree, parts.subscriptions, parts.delivery, parts.backbone.holds)
        running.push_async_callback(removed.close)
        if self.config.topics.fixed and self.config.topics.on_remove == "end":
            parts.topics.removed.add(removed.look)
            running.callback(parts.topics.removed.remove, removed.look)
            if not parts.topics.problem():
                removed.look()
        await parts.sensors.start(running)
        await parts.dtn.start(running)

    async def _open_doors(self) -> None:
        parts, server = self.parts, self.config.server
        app = web.Application(client_max_size=server.body_limit, middlewares=[errors_in_json])
        own = (server.host, urlsplit(server.public_url).hostname or "")
        origins = Origins(server.cors_origins, server.websocket_origins, own, server.public_url)
        origins.join(app)
        app.middlewares.append(OperatorActions(parts.events_log.note, self.name).middleware)
        context = Context(parts.broker, self._limits)
        soap = SoapDoor(context, server.request_timeout)
        app.add_routes(soap.routes())
        proxy = parts.cluster.open(app, soap, self._limits) if parts.cluster else None
        app.add_routes(OriginalDoor(soap, context, self.config.routing, proxy).routes())
        OnvifDoor(soap, context, self.config, parts.pull_subscriptions).join(app)
        letters = DeadLetters(parts.journal, parts.subscriptions, parts.delivery)
        app.add_routes(DeadLettersDoor(letters).routes())
        app.add_routes(TopicNamespacesDoor(parts.tree).routes())
        self._open_topics(app)
        parts.sensors.open_doors(app)
        parts.dtn.open_doors(app)
        app.add_routes(FilterCheckDoor(parts.services.check, server.request_timeout).routes())
        items = SubscriptionItems(parts.broker, self.name, parts.pull_subscriptions.owns)
        app.add_routes(SubscriptionsDoor(parts.broker, items, server.request_timeout).routes())
        presence = Presence(parts.subscriptions, parts.delivery)
        app.add_routes(PresenceDoor(presence, server.request_timeout).routes())
        ProfileDoor(parts.job_token.accepts, self.config.monitoring.profiling).join(app)
        app.add_routes(PullPointsDoor(parts.broker).routes())
        app.add_routes(RegistrationsDoor(parts.broker).routes())
        status = self._open_status()
        app.add_routes(status.routes())
        app.add_routes(PageDoor().routes())
        app.add_routes(self._metrics(status).routes())
        open_cluster_doors(app, parts, lambda: self.monitor.sample.values)
        app.add_routes(SessionDoor(self.name, "node", parts.topic_editing.state).routes())
        MonitoringDoor(
            self.name, parts.clock, parts.histories, parts.alerts, parts.events_log, parts.live
        ).join(app)
        events = EventsDoor(
            parts.broker,
            parts.readers,
            parts.event_pages,
            self._limits,
            server.request_timeout,
            check_filter=parts.services.check,
            accepts_token=parts.job_token.accepts,
            origins=origins,
        )
        events.join(app)
        subtree = self.config.topics.simple_subtree
        streams = StreamsDoor(
            parts.services,
            parts.posted_services,
            events,
            ServiceRequests(parts.broker, events.open_streams, subtree=subtree),
            accepts_token=parts.job_token.accepts,
            request_timeout=server.request_timeout,
        )
        app.add_routes(streams.routes())
        await self.port.open(app, soap, parts.admission, parts.push_mark)

    def _open_topics(self, app: web.Application) -> None:
        parts, editing, overviews = self.parts, self.parts.topic_editing, self.parts.topic_overviews
        listed = TopicListDoor(parts.tree, overviews, lambda node: editing.etag(node.topic))
        app.add_routes(listed.routes())
        effect, patience = TopicEffect(parts.tree), self.config.server.request_timeout
        for door in (TopicChangesDoor, TopicFilesDoor):
            routes = door(
                editing, effect, lambda: overviews.revision, patience, parts.job_token.accepts
            ).routes()
            app.add_routes(routes)

    def _open_status(self) -> StatusDoor:
        parts = self.parts
        status = StatusDoor(
            self.name,
            parts.broker,
            parts.pusher,
            self.problems,
            parts.warnings,
            self.monitor.process.figures,
        )
        parts.live.source("status", status.document)
        status.reports["http"] = self.port.statistics.figures
        status.reports["latency"] = parts.timings.latency
        status.reports["figures"] = lambda: self.monitor.sample.values
        status.reports["backbone"] = parts.backbone.figures
        status.reports["matching"] = lambda: parts.engines.figures(parts.audience.content_subscriptions())
        if parts.receipts:
            status.reports["receipts"] = parts.receipts.figures
        if parts.outcome_plugins:
            status.reports["outcomes"] = parts.outcome_plugins.figures
        if parts.agent:
            status.reports["agent"] = parts.agent.figures
        status.reports["directory"] = parts.topics.status
        status.reports["sensors"] = parts.sensors.figures
        if parts.dtn.exchange:
            status.reports["dtn"] = parts.dtn.exchange.figures
        if parts.cluster:
            status.reports["routing"] = parts.cluster.forwarding.figures
            status.reports["cluster"] = parts.cluster.figures
        if parts.originals:
            status.reports["originals"] = parts.originals.figures
        return status

    def _metrics(self, status: StatusDoor) -> MetricsDoor:
        parts = self.parts
        return MetricsDoor(
            parts.admission,
            parts.timings,
            status.figures,
            lambda: parts.services,
            lambda: {"not_ready": len(self.problems()), "warning": len(parts.warnings())},
            self.monitor.sample,
        )

    def reload(self) -> None:
        """Reload the certificate, the topics and the sensors from their files."""
        self.parts.events_log.note("reload", "SIGHUP: reloading the certificate, the topics and the sensors")
        self.port.reload()
        self.parts.topics.reload()
        self.parts.sensors.reload()

    async def close(self) -> None:
        """Stop accepting requests, drain within `server.drain_timeout`, and write everything to disk."""
        await self._running.aclose()

    async def _drain(self) -> None:
        """Answer the requests and finish the pushes that are in flight, within the drain time."""
        await self.parts.webhooks.close()
        pushes = self.parts.pusher.close(self.config.server.drain_timeout)
        await asyncio.gather(self.port.drained(), pushes)


def serve(config: Config, ready: Callable[[str], None], reread: Reread) -> int:
    """Run a node until SIGTERM or SIGINT, and call `ready` with its address once it accepts requests.

    `reread` loads the settings again, after SIGHUP. Returns the exit status.
    """
    set_up_logging(config.log)
    return uvloop.run(_serve(config, ready, SettingsReload(config, reread)))


async def _serve(config: Config, ready: Callable[[str], None], settings: SettingsReload) -> int:
    stop = asyncio.Event()
    raise_file_limit()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    node = Node(config)
    with _without_garbage_collection():
        await node.start()
    # Before, the command ignores SIGHUP: a node that has just started has read everything.
    loop.add_signal_handler(signal.SIGHUP, _reload, node, settings, stop)
    page = f"{node.port.base_url()}/ui/"
    log.info("node %s is ready; its page is %s, its state is in %s", node.name, page, config.data.dir)
    ready(node.port.listening_url)
    await stop.wait()
    log.info("stopping: draining requests and deliveries")
    await node.close()
    log.info("stopped")
    return 0


def _reload(node: Node, settings: SettingsReload, stop: asyncio.Event) -> None:
    if stop.is_set():
        return
    log.info("SIGHUP: reloading the settings, the certificate, the topics and the sensors")
    settings.reload()
    node.reload()


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Disable the cyclic garbage collector, which would repeatedly scan all restored objects.

    Afterwards, the objects of the start are frozen, and collections are rarer, since notifications do not
    form cycles.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)
        gc.enable()
