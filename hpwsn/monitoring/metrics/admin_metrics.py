"""The metrics of an admin node: its nodes by state, their requests, probes and deaths."""

from __future__ import annotations

from collections.abc import Callable

from hpwsn.monitoring.metrics.exposition import Exposition
from hpwsn.monitoring.metrics.metric_table import Figures, Row, counter, families, gauge

ROWS: tuple[Row, ...] = (
    gauge("hpwsn_admin_nodes", "Known nodes, by state.", "nodes.*", "state"),
    gauge("hpwsn_admin_clusters", "Clusters with a node.", "clusters"),
    gauge("hpwsn_admin_topology_version", "Version of the published topology.", "topology"),
    gauge(
        "hpwsn_admin_oldest_heartbeat_seconds",
        "Time since the last heartbeat of the live node that has been silent longest.",
        "oldest_heartbeat",
    ),
    gauge("hpwsn_admin_heartbeat_seconds", "Time between two heartbeats of a node.", "heartbeat"),
    gauge("hpwsn_admin_streams", "Nodes that follow the topology.", "streams"),
    Row(
        "counter",
        "hpwsn_admin_requests_total",
        "Answered requests, by kind and class of the status.",
        ("kind", "code"),
        (((), "requests.*.*"),),
    ),
    counter("hpwsn_admin_unsigned_total", "Requests without a valid signature.", "unsigned"),
    counter("hpwsn_admin_probes_total", "Probes of nodes, by result.", "probes.*", "result"),
    counter("hpwsn_admin_deaths_total", "Nodes that were found dead, by reason.", "deaths.*", "reason"),
)


def admin_exposition(figures: Callable[[], Figures]) -> Exposition:
    """What a scrape of an admin node answers."""
    return Exposition(lambda: families(ROWS, figures()))
