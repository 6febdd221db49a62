"""The metrics of stream services, with the URI of each as the label `service`.

`streams.limit` bounds the number of services, and so of label values. A job may report other figures than
those in the table; only /streams shows them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

GAUGES = {
    "batch": ("hpwsn_stream_batch", "Number of the last batch."),
    "rows_in": ("hpwsn_stream_rows_in", "Rows that the last batch read."),
    "rows_out": ("hpwsn_stream_rows_out", "Rows that the last batch published."),
    "rows_per_second": ("hpwsn_stream_rows_per_second", "Rows read per second in the last batch."),
    "lag": ("hpwsn_stream_lag", "Events that wait in the input topics."),
    "backlog": ("hpwsn_stream_backlog", "The most events that waited since the service was up to date."),
    "batch_seconds": ("hpwsn_stream_batch_seconds", "Duration of the last batch."),
    "state_rows": ("hpwsn_stream_state_rows", "Rows that Spark keeps for windows and groups."),
    "state_bytes": ("hpwsn_stream_state_bytes", "Bytes of state that a service keeps."),
}
COUNTERS = {
    "failures": ("hpwsn_stream_failures_total", "Failed batches of this run."),
    "restarts": ("hpwsn_stream_restarts_total", "Restarts of this run."),
}
RUNNING = ("hpwsn_stream_running", "1 if the service is running, else 0.")


def service_families(services: Iterable[Mapping[str, Any]]) -> Iterator[Metric]:
    """The families of all services, given as in /streams; none without services."""
    found = list(services)
    running = GaugeMetricFamily(*RUNNING, labels=("service",))
    for service in found:
        running.add_metric((str(service["uri"]),), float(service["state"] == "running"))
    families: list[Metric] = [running]
    for kind, table in ((GaugeMetricFamily, GAUGES), (CounterMetricFamily, COUNTERS)):
        for figure, (name, text) in table.items():
            family = kind(name, text, labels=("service",))
            for service in found:
                if figure in service["figures"]:
                    family.add_metric((str(service["uri"]),), _number(service["figures"][figure]))
            families.append(family)
    return (family for family in families if family.samples)


def _number(value: float) -> float:
    """A job's figure as a float: JSON has integers beyond its range."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
