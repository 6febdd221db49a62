"""All metrics of a node: the tables over its figures, its histograms, and its stream services."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from prometheus_client.core import Metric

from hpwsn.histogram import Timings
from hpwsn.monitoring.metrics import broker_metrics, cluster_metrics
from hpwsn.monitoring.metrics.broker_metrics import timing_families
from hpwsn.monitoring.metrics.cluster_metrics import cluster_states
from hpwsn.monitoring.metrics.exposition import Exposition
from hpwsn.monitoring.metrics.metric_table import Figures, Row, counter, families, gauge, info
from hpwsn.monitoring.metrics.service_metrics import service_families

SENSORS: tuple[Row, ...] = (
    gauge("hpwsn_sensors", "Registered physical sensors.", "sensors.physical"),
    gauge("hpwsn_virtual_sensors", "Defined virtual sensors.", "sensors.virtual"),
    gauge("hpwsn_virtual_sensors_running", "Virtual sensors with a user.", "sensors.running"),
    counter("hpwsn_readings_total", "Accepted readings of physical sensors.", "sensors.readings"),
    Row(
        "counter",
        "hpwsn_readings_rejected_total",
        "Rejected readings, by reason.",
        ("reason",),
        (((), "sensors.rejected.*"),),
    ),
)
CARRIERS: tuple[Row, ...] = (
    counter(
        "hpwsn_carried_events_total",
        "Events of carriers, by what became of them.",
        {
            "collected": "dtn.collected",
            "published": "dtn.published",
            "repeated": "dtn.repeated",
            "passed": "dtn.passed",
            "overflowed": "dtn.overflowed",
        },
        "outcome",
    ),
    counter("hpwsn_bundles_refused_total", "Bundles that were damaged, forged or malformed.", "dtn.refused"),
    gauge("hpwsn_carried_held", "Events that wait for earlier ones of their origin.", "dtn.held"),
    gauge("hpwsn_carried_gaps", "Gaps that were given up and not filled since.", "dtn.gaps"),
)
ROWS = (*broker_metrics.ROWS, *cluster_metrics.ROWS, *SENSORS, *CARRIERS)
FAILURES = ("refused", "timeout", "client_error", "server_error", "garbage", "lost")
"""Reasons of failed sends that are shown as 0 before the first."""


def node_exposition(
    figures: Callable[[], Figures], services: Callable[[], Iterable[Mapping[str, Any]]], timings: Timings
) -> Exposition:
    """What a scrape of a node answers; `figures` are those of /status, `services` those of /streams."""
    return Exposition(
        lambda: _figure_families(figures()),
        lambda: timing_families(timings),
        lambda: service_families(services()),
    )


def _figure_families(figures: Figures) -> Iterator[Metric]:
    shown = _completed(figures)
    yield from families(ROWS, shown)
    yield from cluster_states(shown)
    matching = {name: str(shown["matching"][name]) for name in ("engine", "mode", "state")}
    yield info("hpwsn_matching", "The engine for content filters, where it runs, and its state.", matching)


def _completed(figures: Figures) -> dict[str, Any]:
    """The figures with those that only /metrics shows: sums taken apart, and states as numbers."""
    connections, journal, delivery = (figures[name] for name in ("connections", "journal", "delivery"))
    shown = {
        **figures,
        "connections": {**connections, "busy": connections["open"] - connections["idle"]},
        "journal": {**journal, "available": int(journal["unavailable"] is None)},
        "delivery": {**delivery, "failures": {**dict.fromkeys(FAILURES, 0), **delivery["failures"]}},
    }
    if routing := figures.get("routing"):
        members = list(routing["tcp"]["members"].values())
        shown["routing"] = {**routing, "links": {state: members.count(state) for state in ("up", "down")}}
    return shown
