"""The metrics of a node's broker: what was published, matched, stored and delivered, and by whom."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import Metric

from hpwsn.histogram import Timings
from hpwsn.monitoring.metrics.metric_table import Row, counter, gauge, histogram

BROKER: tuple[Row, ...] = (
    gauge(
        "hpwsn_problems",
        "Problems: those because of which the node is not ready, and warnings.",
        {"not_ready": "problems.not_ready", "warning": "problems.warning"},
        "severity",
    ),
    gauge("hpwsn_topics", "Topics in the tree.", "topics"),
    gauge("hpwsn_subscriptions", "Subscriptions.", "subscriptions"),
    gauge("hpwsn_pull_points", "Pull points.", "pull_points"),
    counter(
        "hpwsn_pull_point_removed_total",
        "Notifications removed from pull points unread, by reason.",
        {"overflow": "dropped_from_pull_points", "expired": "expired_in_pull_points"},
        "reason",
    ),
    gauge("hpwsn_registrations", "Registered publishers.", "registrations.live"),
    gauge("hpwsn_demand_topics", "Topics of on-demand publishers.", "registrations.topics_on_demand"),
    gauge(
        "hpwsn_demand_subscribed_topics",
        "On-demand topics that this node is subscribed to at the publisher.",
        "registrations.topics_subscribed",
    ),
    counter("hpwsn_demand_failures_total", "Failed calls to on-demand publishers.", "registrations.failures"),
    # Connections of clients
    gauge(
        "hpwsn_http_connections",
        "Open connections of clients: in the fast lane, and in the full lane.",
        {"fast": "http.connections.fast", "full": "http.connections.full"},
        "lane",
    ),
    counter(
        "hpwsn_http_connections_refused_total",
        "Connections refused because of server.connections.",
        "http.connections.refused",
    ),
    # Delivery
    counter("hpwsn_notifications_delivered_total", "Notifications delivered.", "delivery.delivered"),
    counter("hpwsn_sends_total", "Sends to consumers and pull points, with retries.", "delivery.sends"),
    counter(
        "hpwsn_send_failures_total",
        "Failed sends, by reason.",
        "delivery.failures.*",
        "reason",
    ),
    counter(
        "hpwsn_notifications_undelivered_total",
        "Notifications that left a queue undelivered, by reason.",
        {"dead_letter": "delivery.buried", "overflow": "delivery.dropped", "expired": "delivery.expired"},
        "reason",
    ),
    gauge(
        "hpwsn_subscriptions_waiting_for_retry",
        "Subscriptions that wait before the next attempt.",
        "delivery.waiting_for_retry",
    ),
    gauge(
        "hpwsn_subscriptions_failing",
        "Subscriptions with notifications to send whose consumer has failed since its last delivery.",
        "sample.failing",
    ),
    gauge("hpwsn_notifications_waiting", "Notifications in the queues of subscriptions.", "sample.waiting"),
    gauge("hpwsn_dead_letters", "Dead letters in the journal.", "sample.dead_letters"),
    gauge(
        "hpwsn_push_connections",
        "Connections to consumers, by state.",
        {"busy": "connections.busy", "idle": "connections.idle"},
        "state",
    ),
    gauge(
        "hpwsn_push_pending",
        "Requests to consumers: sent without an answer, and waiting for a connection.",
        {"in_flight": "connections.in_flight", "waiting": "connections.waiting"},
        "state",
    ),
    counter(
        "hpwsn_push_outcomes_total", "Requests to consumers, by outcome.", "connections.outcomes.*", "outcome"
    ),
    # Journal
    gauge("hpwsn_journal_last_offset", "Offset of the newest notification.", "journal.last_offset"),
    counter("hpwsn_journal_commits_total", "Transactions of the journal.", "journal.commits"),
    counter("hpwsn_journal_changes_total", "Changes committed to the journal.", "journal.changes"),
    counter("hpwsn_journal_entries_total", "Notifications written to the journal.", "journal.entries"),
    counter("hpwsn_journal_failures_total", "Changes that could not be written.", "journal.failures"),
    counter(
        "hpwsn_journal_lost_total",
        "Notifications lost after their 202, which only journal.durability none allows.",
        "journal.lost",
    ),
    gauge(
        "hpwsn_journal_missing_contents",
        "Large notifications in the journal whose content is missing.",
        "journal.missing",
    ),
    gauge("hpwsn_journal_size_bytes", "Size of the journal on disk.", "journal.database_bytes"),
    gauge("hpwsn_journal_waiting_changes", "Changes that wait to be written.", "journal.waiting"),
    gauge("hpwsn_journal_waiting_bytes", "Bytes that wait to be written.", "journal.waiting_bytes"),
    gauge("hpwsn_journal_available", "1 if notifications can be stored, else 0.", "journal.available"),
    # Matching
    gauge("hpwsn_content_subscriptions", "Subscriptions with a content filter.", "matching.subscriptions"),
    gauge("hpwsn_matching_lag", "Notifications stored and not yet matched.", "matching.lag"),
    # Receipts and plug-ins
    counter(
        "hpwsn_receipts_total",
        "Receipts for publishers, by outcome.",
        {"sent": "receipts.sent", "failed": "receipts.failed", "skipped": "receipts.skipped"},
        "outcome",
    ),
    gauge("hpwsn_receipts_in_flight", "Receipts sent without an answer.", "receipts.in_flight"),
    gauge("hpwsn_outcome_plugins", "Outcome plug-ins.", "outcomes.plugins"),
    counter(
        "hpwsn_outcome_reports_total",
        "Outcomes for plug-ins: reported, skipped because the queue was full, failed in a plug-in.",
        {"reported": "outcomes.reported", "skipped": "outcomes.skipped", "failed": "outcomes.failures"},
        "outcome",
    ),
    gauge("hpwsn_outcome_reports_queued", "Outcomes that wait for plug-ins.", "outcomes.queued"),
    # Topics and stream services
    gauge(
        "hpwsn_directory_connected",
        "1 if the topic directory was read without a problem, else 0.",
        "directory.connected",
    ),
    counter("hpwsn_directory_changes_total", "Changes from the topic directory.", "directory.changes"),
    gauge("hpwsn_directory_skipped", "Entries of the topic directory that are invalid.", "directory.skipped"),
    gauge("hpwsn_agent_services", "Stream services that this node runs.", "agent.services"),
    gauge("hpwsn_agent_failed_services", "Services that the node has given up.", "agent.failed"),
)

PUBLISHED = Row(
    "counter",
    "hpwsn_notifications_published_total",
    "Notifications from publishers, by door and outcome; `accepted` ones are stored.",
    ("door", "outcome"),
    (((), "doors.*.*"),),
)
REQUESTS = Row(
    "counter",
    "hpwsn_http_requests_total",
    "Answered HTTP requests, by door and class of the status.",
    ("door", "code"),
    (((), "http.requests.*.*"),),
)
ROWS: tuple[Row, ...] = (PUBLISHED, REQUESTS, *BROKER)


def timing_families(timings: Timings) -> Iterator[Metric]:
    """The histograms of a node."""
    yield histogram(
        "hpwsn_accept_seconds", "From a request with notifications to its answer 202.", timings.accept
    )
    yield histogram("hpwsn_commit_seconds", "Transactions of the journal.", timings.commit)
    yield histogram(
        "hpwsn_match_seconds", "Finding the subscribers for the notifications of one append.", timings.match
    )
    yield histogram(
        "hpwsn_queue_wait_seconds",
        "From acceptance to the first send, of the oldest notification in each send.",
        timings.queue_wait,
    )
    yield histogram(
        "hpwsn_delivery_seconds", "From a send to the consumer's acknowledgement.", timings.delivery
    )
