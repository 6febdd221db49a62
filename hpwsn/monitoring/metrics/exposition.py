"""The answer to a scrape: all families in the format that the client asks for, and the process's own.

The format is that of prometheus_client: OpenMetrics where the Accept header names it, else the text format.
The process has the standard names (`process_cpu_seconds_total` and so on), read from /proc at each scrape.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from prometheus_client import ProcessCollector
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from hpwsn.monitoring.metrics.metric_table import info
from hpwsn_client import __version__

_THREADS = Path("/proc/self/task")
MOST_ACCEPT = 1024
"""Characters of an Accept header that are looked at."""


class Scrape(NamedTuple):
    """A body and its content type."""

    body: bytes
    content_type: str


class _Collected(Collector):
    """Families that are already made, as the encoders want them."""

    def __init__(self, found: Iterable[Metric]) -> None:
        self._found = found

    def collect(self) -> Iterable[Metric]:
        return self._found


class Exposition:
    """Joins the families of several sources; each is a callable that makes its families anew."""

    def __init__(self, *sources: Callable[[], Iterable[Metric]]) -> None:
        self._sources = sources
        self._process = ProcessCollector(registry=None)

    def scrape(self, accept: str = "") -> Scrape:
        """All families in the format of an Accept header; an unreadable header means the text format."""
        try:
            encode, content_type = choose_encoder(accept[:MOST_ACCEPT])
        except (TypeError, ValueError):
            encode, content_type = choose_encoder("")
        return Scrape(encode(_Collected(list(self._families()))), content_type)

    def _families(self) -> Iterator[Metric]:
        yield info(
            "hpwsn_build",
            "The version of HPwsn and of Python.",
            {"version": __version__, "python": platform.python_version()},
        )
        yield from self._process.collect()
        yield _threads()
        for source in self._sources:
            yield from source()


def _threads() -> Metric:
    count = sum(1 for _ in _THREADS.iterdir()) if _THREADS.exists() else 0
    return GaugeMetricFamily("process_threads", "Number of OS threads in the process.", value=count)
