"""The parts of a node: created from its configuration and connected to each other.

This is the only place where concrete classes are chosen and listeners are connected. hpwsn.node.node starts
and stops the parts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from hpwsn.background import in_thread
from hpwsn.broker.admission.admission import Admission, Limit, Source
from hpwsn.broker.broker import Broker
from hpwsn.broker.delivery.backlog import Recent
from hpwsn.broker.delivery.delivery import Delivery
from hpwsn.broker.delivery.processor import Processor
from hpwsn.broker.delivery.queue_limits import Overflow, QueueLimits
from hpwsn.broker.delivery.senders import PullSender, PushSender, SenderRegistry
from hpwsn.broker.delivery.traced_pushes import NO_SPANS, SpannedDeliveries
from hpwsn.broker.delivery.webhook_sender import WebhookSender
from hpwsn.broker.job_token import load_job_token
from hpwsn.broker.lifetimes.retry import RetryPolicy, retry_policies
from hpwsn.broker.outcomes.plugins import OutcomePlugins, installed_plugins
from hpwsn.broker.outcomes.receipts import Receipts
from hpwsn.broker.push.consumer_connection import consumer_context
from hpwsn.broker.push.pool import Pusher
from hpwsn.broker.queueing.transmissions import Transmissions
from hpwsn.broker.readers.feeds import Feeds
from hpwsn.broker.readers.live_delivery import LiveDelivery
from hpwsn.broker.readers.log_readers import Readers
from hpwsn.broker.registrations.demand import CALLS, Demand
from hpwsn.broker.registrations.interest_follower import InterestFollower
from hpwsn.broker.registrations.registered_publisher import Publishers
from hpwsn.broker.registrations.registrations import Registrations
from hpwsn.broker.subscriptions.audience import Audience
from hpwsn.broker.subscriptions.producer_conditions import Conditions
from hpwsn.broker.subscriptions.pull_points import PullPoints
from hpwsn.broker.subscriptions.resource_addresses import ResourceIds
from hpwsn.broker.subscriptions.subscription import Subscriber
from hpwsn.broker.subscriptions.subscriptions import Subscriptions, SubscriptionSettings
from hpwsn.broker.topic_overview import TopicOverviews
from hpwsn.broker.topic_rates import TopicRates
from hpwsn.door.onvif.pull_subscriptions import PullSubscriptions
from hpwsn.door.rest.events.event_pages import EventPages
from hpwsn.door.soap.property_documents import broker_properties
from hpwsn.errors import HpwsnError
from hpwsn.histogram import Timings
from hpwsn.journal.journal import Journal
from hpwsn.journal.store.records import Durability
from hpwsn.matching.content.content_filters import ContentFilters
from hpwsn.monitoring.alerts import Alerts
from hpwsn.monitoring.events_log import EventsLog
from hpwsn.monitoring.histories import Histories
from hpwsn.monitoring.live import LiveHub
from hpwsn.node.backbones import choose_backbone
from hpwsn.node.cluster import InCluster
from hpwsn.node.content_engines import BrokerEngines
from hpwsn.node.dtn_parts import DtnParts
from hpwsn.node.engine_choice import EngineChoice
from hpwsn.node.sensor_parts import SensorParts
from hpwsn.notification import ORIGINAL, PARTIAL
from hpwsn.push_mark import PushMark
from hpwsn.routing.original_peers import OriginalPeers
from hpwsn.settings import Config, TracingSettings
from hpwsn.streams.agent.posted_services import PostedServices
from hpwsn.streams.agent.service_agent import ServiceAgent
from hpwsn.streams.registry.known_services import Services
from hpwsn.streams.registry.service_file import ServiceStore
from hpwsn.topics.directory.directory import Directory
from hpwsn.topics.directory.live_topics import LiveTopics
from hpwsn.topics.directory.topic_editing import TopicEditing
from hpwsn.topics.directory.tree_cache import TreeCache
from hpwsn.topics.opening import access_from, edit_access_from, open_directory
from hpwsn.topics.tree.tree import TopicTree
from hpwsn.tracing.span_hooks import Spans
from hpwsn_client.transport import Transport
from hpwsn_client.wsn.soap.envelope import SoapVersion
from hpwsn_client.wsn.soap.xml import Limits

ORIGINAL_NODE = Source(door="peer")
"""A node of the original HPwsn."""


class Parts:
    """The connected parts of one node, without its doors."""

    def __init__(
        self,
        name: str,
        config: Config,
        base_url: Callable[[], str],
        limits: Limits,
        timings: Timings,
        origin: Callable[[], str] | None = None,
    ) -> None:
        """`origin` is the URL at which the node listens, if it is not the base URL."""
        self.name = name
        self.config = config
        self.base_url = base_url
        self._origin = origin or base_url
        self.push_mark = PushMark(lambda: config.cluster.url or base_url(), self._peer_urls)
        self.limits = limits
        self.clock = time.time
        self.timings = timings
        self.started = time.time()
        self._ids = ResourceIds(name if config.cluster.admin else None)
        self.spans = open_spans(config.tracing, name) if config.tracing.enabled else None
        self._make_data_directory()
        self.job_token = load_job_token(Path(config.data.dir))
        self._build_monitoring()
        self._build_log()
        self._build_delivery()
        self._build_resources()
        self._build_broker()
        self.cluster = self._build_cluster() if config.cluster.admin else None
        self.originals = self._build_originals() if config.routing.originals else None
        self._join()

    def _make_data_directory(self) -> None:
        try:
            Path(self.config.data.dir).mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise HpwsnError(
                f"the data directory {self.config.data.dir} cannot be created: {error.strerror};"
                " name another with --data"
            ) from error

    def _build_monitoring(self) -> None:
        """What the node remembers about itself; hpwsn.node.monitor fills it."""
        data, settings = Path(self.config.data.dir), self.config.monitoring
        self.histories = Histories(data / "history")
        self.events_log = EventsLog(data / "events.log", clock=self.clock, kept=settings.events_kept)
        self.alerts = Alerts(settings.alert_keep)
        self.live = LiveHub(time.monotonic)

    def problems(self) -> dict[str, str]:
        """Why the node is not ready, by the part that is the reason; empty if it is ready."""
        found = {
            "backbone": self.backbone.problem(),
            "journal": self.journal.unavailable,
            "directory": self.topics.problem(),
            "cluster": self.cluster.problem() if self.cluster else None,
            **self.sensors.problems(),
        }
        return {part: problem for part, problem in found.items() if problem}

    def warnings(self) -> list[str]:
        """What an operator must see to although the node is ready."""
        problem = self.journal.problem
        own = [] if problem is None or problem in self.problems().values() else [problem]
        return own + self.sensors.warnings()

    def needed_from(self) -> int | None:
        """The first offset of the log that retention must keep beside what consumers need, or None."""
        needs = (
            self.cluster.needed_from() if self.cluster else None,
            self.sensors.needed_from(),
            self.dtn.needed_from(),
        )
        return min((offset for offset in needs if offset is not None), default=None)

    def _build_log(self) -> None:
        config = self.config
        self.journal = Journal(
            Path(config.data.dir) / "journal.db",
            durability=cast(Durability, config.journal.durability),
            max_bytes=config.journal.max_bytes or None,
            reserve=config.journal.reserve,
            max_waiting=max(config.journal.waiting_limit, 2 * config.server.body_limit),
            commit_times=self.timings.commit,
        )
        topics = config.topics
        directory = open_directory(topics.url, access_from(topics), Path(config.data.dir))
        # A server's tree is fixed until it was read: no topic may be used that is internal there.
        self.tree: TopicTree[Subscriber] = TopicTree(
            fixed=topics.fixed or directory.remote,
            simple_subtree=topics.simple_subtree,
            limit=topics.open_limit,
        )
        self.backbone = choose_backbone(
            config, self.name, self.journal, self.clock, self.limits, self.tree.is_internal
        )
        self.topics = self._open_topics(directory)
        self.topic_editing = TopicEditing(topics, directory, self._topic_editor(directory), self.topics)

    def _topic_editor(self, directory: Directory) -> Directory | None:
        """The directory as the node edits it; None if the node only reads it."""
        topics = self.config.topics
        if not directory.remote:
            return directory
        return open_directory(topics.url, edit_access_from(topics)) if topics.edit_bind_dn else None

    def _open_topics(self, directory: Directory) -> LiveTopics:
        topics = self.config.topics
        cache = TreeCache(Path(self.config.data.dir) / "topics.json", directory.identity)
        live = LiveTopics(
            directory,
            self.tree,
            cache if directory.remote else None,
            topics.start_wait,
            opens=not topics.fixed,
        )
        live.load_file()
        return live

    def _build_delivery(self) -> None:
        config, delivery = self.config, self.config.delivery
        self.content = ContentFilters()
        default = BrokerEngines(config.matching.compiled, Path(config.data.dir) / "kernel")
        self.engines = EngineChoice(config.matching.engine, config.matching.topics, default)
        self.audience = Audience(self.tree, self.content, self.engines.of_expressions)
        self.recent = Recent(delivery.cache_bytes)
        self.pusher = Pusher(
            connections_per_host=delivery.connections_per_host,
            connect_timeout=delivery.connect_timeout,
            response_timeout=delivery.response_timeout,
            ssl_context=consumer_context(delivery.ca_file),
        )
        self.event_pages = EventPages()
        self.tracing = NO_SPANS if self.spans is None else SpannedDeliveries(self.spans)
        self.pull_points = PullPoints(
            self.journal, settings=config.pull_points, clock=self.clock, ids=self._ids
        )
        self.overflow = Overflow(QueueLimits(delivery.max_queue, delivery.overflow), self.audience)
        encode, mark = self.event_pages.json_events, self.push_mark.header
        self.webhooks = WebhookSender(self.pusher, delivery.batch, encode, self.tracing, mark)
        self.transmissions = Transmissions()
        self.delivery = Delivery(
            journal=self.journal,
            tree=self.tree,
            content=self.content,
            recent=self.recent,
            senders=SenderRegistry(
                PushSender(self.pusher, delivery.batch, delivery.soap_action, self.tracing, mark),
                PullSender(self.journal, self.pull_points),
                self.webhooks,
                self.pull_points,
                self.base_url,
                self._ids,
                self._peer_urls if config.cluster.admin else tuple,
                self._origin,
            ),
            retry=retry_policies(delivery, config.retry),
            overflow=self.overflow,
            audience=self.audience,
            transmissions=self.transmissions,
            clock=self.clock,
            timings=self.timings,
        )
        self.readers = Readers(
            self.journal,
            self.tree,
            lambda: self.delivery.head,
            live=LiveDelivery(Feeds(self.content, self.engines.of_topics)),
            content=self.content,
            subtree=config.topics.simple_subtree,
        )
        self.topic_rates = TopicRates()
        self.topic_overviews = TopicOverviews(self.tree, self.topic_rates, self.journal, self.clock())
        self.receipts = self._build_receipts() if delivery.receipts else None
        plugins = installed_plugins()
        self.outcome_plugins = OutcomePlugins(plugins, delivery.outcome_limit) if plugins else None
        self.processor = Processor(
            tree=self.tree,
            audience=self.audience,
            recent=self.recent,
            delivery=self.delivery,
            pull_points=self.pull_points,
            match_times=self.timings.match,
        )

    def _build_receipts(self) -> Receipts:
        delivery = self.config.delivery
        return Receipts(
            self.delivery.reports.listeners,
            self.journal,
            self.pusher.post,
            RetryPolicy(delivery.retry_first, delivery.retry_max, delivery.receipt_retry_for),
            delivery.receipt_limit,
        )

    def _peer_urls(self) -> list[str]:
        return self.cluster.peer_urls() if self.cluster else []

    def _build_resources(self) -> None:
        config = self.config
        self.conditions = Conditions(
            lambda: broker_properties(self.tree, config.registrations.required),
            lambda: self.tree.revision,
            in_thread,
        )
        self.subscriptions = Subscriptions(
            audience=self.audience,
            content=self.content,
            conditions=self.conditions,
            journal=self.journal,
            consumers=self.delivery,
            base_url=self.base_url,
            clock=self.clock,
            settings=SubscriptionSettings(
                limit=config.subscriptions.limit,
                grace=config.subscriptions.grace,
                max_lifetime=config.subscriptions.max_lifetime,
                window=config.delivery.window,
                raw_only=config.delivery.raw_only,
            ),
            transmissions=self.transmissions,
            ids=self._ids,
        )
        self.demand = self._build_demand()
        self.registrations = Registrations(
            tree=self.tree,
            journal=self.journal,
            watcher=self.demand,
            base_url=self.base_url,
            clock=self.clock,
            settings=config.registrations,
            simple_subtree=config.topics.simple_subtree,
            ids=self._ids,
        )
        self.service_store = ServiceStore(Path(config.data.dir) / "streams.json")
        self.services = Services(
            self.clock,
            limit=config.streams.limit,
            silent_after=config.streams.silent_after,
            forget_after=config.streams.forget_after,
        )
        data = Path(config.data.dir)
        self.agent = (
            ServiceAgent(
                data / "streams",
                config.streams,
                heard=self.services.heard,
                token_file=data / "job.token",
                clock=self.clock,
            )
            if config.streams.agent
            else None
        )

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
            clock=self.clock,
            retry=RetryPolicy(delivery.retry_first, delivery.retry_max),
            lifetime=registrations.lifetime,
            linger=registrations.linger,
            simple_subtree=self.config.topics.simple_subtree,
        )

    def _build_broker(self) -> None:
        config = self.config
        self.admission = Admission(
            tree=self.tree,
            backbone=self.backbone,
            store=self.journal.append,
            clock=self.clock,
            id_window=config.journal.id_window,
            content_limit=config.server.body_limit,
            registrations=self.registrations,
        )
        self.admission.spans = self.spans
        self.broker = Broker(
            self.admission,
            self.subscriptions,
            self.pull_points,
            self.delivery,
            self.tree,
            self.journal,
            self.base_url,
            self.clock,
            self.registrations,
            self.demand,
            sends_receipts=self.receipts is not None,
        )
        self.pull_subscriptions = PullSubscriptions(
            self.broker, config.onvif, config.subscriptions.max_lifetime
        )

    def _build_cluster(self) -> InCluster:
        return InCluster(
            self.name,
            self.config,
            journal=self.journal,
            tree=self.tree,
            admission=self.admission,
            clock=self.clock,
        )

    def _build_originals(self) -> OriginalPeers:
        """Links to nodes of the original HPwsn: they get committed notifications, and publish here."""
        admission = self.admission
        admission.carried |= PARTIAL | ORIGINAL
        return OriginalPeers(
            self.config.routing,
            self.config.server.host,
            self.limits,
            lambda messages, routing: admission.publish(messages, source=ORIGINAL_NODE, routing=routing),
        )

    def _join(self) -> None:
        """Connect the listeners; they are called in the order in which they are added."""
        journal, subscriptions = self.journal, self.subscriptions
        self.admission.limits.append(Limit(self.overflow.check_room, applies=self.overflow.full))
        if self.receipts:
            journal.committed.add(self.receipts.committed)
        if self.outcome_plugins:
            self.delivery.reports.listeners.add(self.outcome_plugins.note)
        journal.committed.add(self.processor.process)
        journal.committed.add(self.readers.committed)
        journal.committed.add(self.topic_rates.committed)
        self.posted_services = PostedServices(
            self.services,
            self.service_store,
            self.agent,
            check_topic=self.tree.check_publish,
            check_input=self.readers.check,
        )
        self.sensors = SensorParts(self)
        self.dtn = DtnParts(self)
        followers: Sequence[InterestFollower[Any]] = (self.demand.interests, *self.sensors.followers)
        subscriptions.check_filter = self.services.check
        subscriptions.ended.add(self.pull_subscriptions.subscription_ended)
        for follower in followers:
            subscriptions.interest_changed.add(follower.subscription_changed)
            self.readers.waiting_changed.add(follower.reader_changed)
            follower.subscriptions, follower.watched = subscriptions.__iter__, self.readers.waited_for
        demanded, members = self.demand.interests, self.sensors.member_topics
        members.changed.add(demanded.reader_changed)
        demanded.watched = lambda: (*self.readers.waited_for(), *members)
        if self.config.delivery.on_gone == "end":
            self.delivery.consumer_gone.add(subscriptions.consumer_gone)
        if self.cluster:
            self.cluster.forwarding.spans = self.spans
            self.cluster.join(self.admission, journal, subscriptions, self.readers, followers)
        if self.originals:
            journal.committed.add(self.originals.committed)


def open_spans(settings: TracingSettings, name: str) -> Spans:
    """The spans of a node; OpenTelemetry is loaded here, and nowhere else."""
    from hpwsn.tracing.opentelemetry_spans import OpenTelemetrySpans

    return OpenTelemetrySpans(settings, name)
