"""The metrics of what leads out of a node: its backbone, the links to other nodes, and its cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client.core import Metric

from hpwsn.monitoring.metrics.metric_table import Row, counter, gauge, info, states

BACKBONE_STATES = ("ready", "draining", "away", "closed")
LINKS = ("udp", "tcp")


def _by_link(figure: str, *links: str) -> dict[str, str]:
    return {link: f"routing.{link}.{figure}" for link in links or LINKS}


BACKBONE: tuple[Row, ...] = (
    gauge("hpwsn_backbone_connected", "1 while connected to ActiveMQ, else 0.", "backbone.connected"),
    gauge("hpwsn_backbone_spooled", "Notifications in the spool.", "backbone.spooled"),
    gauge("hpwsn_backbone_spooled_bytes", "Size of the spool.", "backbone.spooled_bytes"),
    counter("hpwsn_backbone_reconnects_total", "Sessions after the first.", "backbone.reconnects"),
    counter("hpwsn_backbone_frames_total", "Frames from the queue, with duplicates.", "backbone.frames"),
    counter(
        "hpwsn_backbone_repeated_frames_total", "Duplicate frames from the queue.", "backbone.frames_again"
    ),
    counter("hpwsn_backbone_refused_total", "Messages moved to the refused queue.", "backbone.refused"),
    gauge(
        "hpwsn_backbone_peers_connected",
        "1 while connected for peers on ActiveMQ, else 0.",
        "backbone.peers.connected",
    ),
    counter(
        "hpwsn_backbone_peer_notifications_total",
        "Notifications to and from peers on ActiveMQ.",
        {"sent": "backbone.peers.sent", "received": "backbone.peers.received"},
        "direction",
    ),
    counter(
        "hpwsn_backbone_peer_rejected_total",
        "Notifications from peers on ActiveMQ that were not stored, by reason.",
        {reason: f"backbone.peers.{reason}" for reason in ("malformed", "refused", "repeated")},
        "reason",
    ),
)

ROUTING: tuple[Row, ...] = (
    counter(
        "hpwsn_routing_notifications_total",
        "Notifications between nodes: sent to others, and stored from others.",
        {"sent": "routing.forwarded", "received": "routing.arrived"},
        "direction",
    ),
    counter(
        "hpwsn_routing_undelivered_total",
        "Publications that did not reach another node, by reason.",
        {reason: f"routing.{reason}" for reason in ("unsent", "lost", "abandoned")},
        "reason",
    ),
    counter(
        "hpwsn_routing_rejected_total",
        "Publications from other nodes that were not stored, by reason.",
        {reason: f"routing.{reason}" for reason in ("malformed", "repeated", "duplicates")},
        "reason",
    ),
    counter("hpwsn_routing_resent_total", "Reliable publications that were sent again.", "routing.resent"),
    gauge("hpwsn_routing_interests", "Nodes and clusters with known interest.", "routing.interests"),
    gauge(
        "hpwsn_routing_patterns",
        "Topic patterns that other nodes and clusters are interested in.",
        "routing.patterns",
    ),
    gauge("hpwsn_routing_routes", "Topics with a computed route.", "routing.ways"),
    gauge(
        "hpwsn_routing_unacknowledged",
        "Reliable publications that other nodes have not acknowledged.",
        "routing.unacknowledged",
    ),
    gauge(
        "hpwsn_routing_unacknowledged_bytes",
        "Bytes of unacknowledged reliable publications.",
        "routing.unacknowledged_bytes",
    ),
    gauge("hpwsn_routing_relayed", "Publications that this node relays now.", "routing.relayed"),
    gauge("hpwsn_routing_storing", "Publications that are being stored.", "routing.storing"),
    gauge("hpwsn_routing_origins", "Nodes whose publications arrive here.", "routing.origins"),
    counter("hpwsn_link_messages_sent_total", "Messages to other nodes.", _by_link("messages_sent"), "link"),
    counter(
        "hpwsn_link_messages_received_total",
        "Messages from other nodes.",
        _by_link("messages_received", "udp"),
        "link",
    ),
    counter("hpwsn_link_dropped_total", "Messages dropped before the send.", _by_link("dropped"), "link"),
    counter("hpwsn_link_refused_total", "Malformed or forged packets.", _by_link("refused"), "link"),
    counter("hpwsn_link_replayed_total", "Packets that came twice.", _by_link("replayed", "udp"), "link"),
    counter("hpwsn_link_stalls_total", "Sends without progress in time.", _by_link("stalls", "udp"), "link"),
    gauge("hpwsn_link_senders", "Nodes that send to this node.", _by_link("senders", "udp"), "link"),
    gauge("hpwsn_link_waiting_bytes", "Bytes that wait to be sent.", _by_link("waiting_bytes"), "link"),
    gauge(
        "hpwsn_link_large_bytes",
        "Bytes of large messages that wait to be sent.",
        _by_link("large_bytes", "tcp"),
        "link",
    ),
    gauge(
        "hpwsn_link_connections_in",
        "Connections from other nodes.",
        _by_link("connections_in", "tcp"),
        "link",
    ),
    gauge(
        "hpwsn_link_members",
        "Nodes with a TCP link, by its state.",
        {"up": "routing.links.up", "down": "routing.links.down"},
        "state",
    ),
    gauge("hpwsn_link_incomplete", "Messages without all fragments.", _by_link("incomplete", "udp"), "link"),
    gauge(
        "hpwsn_link_incomplete_bytes",
        "Bytes of incomplete messages.",
        _by_link("incomplete_bytes", "udp"),
        "link",
    ),
    counter(
        "hpwsn_link_discarded_total",
        "Incomplete messages that were given up, by reason, and duplicate fragments.",
        {
            "timeout": "routing.udp.timed_out",
            "overflow": "routing.udp.crowded_out",
            "duplicate": "routing.udp.duplicate_fragments",
        },
        "reason",
    ),
    gauge("hpwsn_cluster_registered", "1 if registered at the admin node, else 0.", "cluster.registered"),
    gauge(
        "hpwsn_cluster_admin_away_seconds",
        "For how long the admin node has been unreachable; 0 if it is reachable.",
        "cluster.admin_away",
    ),
    gauge("hpwsn_cluster_topology_version", "Version of the topology.", "cluster.topology_version"),
    gauge("hpwsn_cluster_nodes_alive", "Live nodes of all clusters.", "cluster.nodes_alive"),
)

PACKETS = Row(
    "counter",
    "hpwsn_link_packets_total",
    "Packets between nodes: datagrams of UDP, frames of TCP.",
    ("link", "direction"),
    tuple(
        ((link, direction), f"routing.{link}.{packets}_{direction}")
        for link, packets in (("udp", "datagrams"), ("tcp", "frames"))
        for direction in ("sent", "received")
    ),
)

ORIGINALS: tuple[Row, ...] = (
    counter(
        "hpwsn_original_notifications_total",
        "Notifications to and from nodes of the original.",
        {"sent": "originals.sent", "received": "originals.received"},
        "direction",
    ),
    gauge("hpwsn_original_waiting_bytes", "Bytes that wait to be sent to them.", "originals.waiting_bytes"),
    counter(
        "hpwsn_original_lost_total",
        "Datagrams to and from nodes of the original that were lost, by reason.",
        {"overflow": "originals.dropped", "refused": "originals.refused", "timeout": "originals.timed_out"},
        "reason",
    ),
    gauge("hpwsn_original_incomplete", "Messages of them without all fragments.", "originals.incomplete"),
)

ROWS: tuple[Row, ...] = (*BACKBONE, *ROUTING, PACKETS, *ORIGINALS)


def cluster_states(figures: Mapping[str, Any]) -> Iterator[Metric]:
    """What is no number: the kind and state of the backbone, and the names in a cluster."""
    backbone = figures["backbone"]
    yield info("hpwsn_backbone", "The kind of backbone.", {"kind": backbone["kind"]})
    yield states(
        "hpwsn_backbone_state",
        "The state of the backbone: 1 for the present one.",
        "state",
        BACKBONE_STATES,
        backbone["state"],
    )
    if cluster := figures.get("cluster"):
        names = {"node": cluster["name"], "cluster": cluster["cluster"]}
        yield info("hpwsn_cluster", "The names of this node and of its cluster.", names)
