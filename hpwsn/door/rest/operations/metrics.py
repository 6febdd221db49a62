"""A node's metrics for Prometheus, at /metrics.

hpwsn.monitoring makes them of the figures of /status, of the last sample and of histograms. Its part for
Prometheus is imported at the first scrape, since it takes 2 MB that a node without Prometheus does not need.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from aiohttp import web

from hpwsn.broker.admission.admission import Admission
from hpwsn.histogram import Timings

if TYPE_CHECKING:
    from hpwsn.monitoring.metrics.exposition import Exposition

Figures = Callable[[], Mapping[str, Any]]


class Sample(Protocol):
    """The figures that are taken once a second."""

    values: dict[str, float | None]

    @property
    def failing(self) -> int:
        """Subscriptions whose consumer has failed, and for which notifications wait."""


class MetricsDoor:
    """The request handler of /metrics; `problems` are the numbers of problems by severity."""

    def __init__(
        self,
        admission: Admission,
        timings: Timings,
        figures: Figures,
        services: Callable[[], Iterable[Mapping[str, Any]]],
        problems: Figures,
        sample: Sample,
    ) -> None:
        self._admission = admission
        self._timings = timings
        self._services = services
        self._figures = figures
        self._problems = problems
        self._sample = sample
        self._exposition: Exposition | None = None

    def routes(self) -> list[web.RouteDef]:
        """Return the routes for the node's web application."""
        return [web.get("/metrics", self._answer)]

    async def _answer(self, request: web.Request) -> web.Response:
        if self._exposition is None:
            self._exposition = await asyncio.to_thread(self._load)
        body, content_type = self._exposition.scrape(request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})

    def _load(self) -> Exposition:
        from hpwsn.monitoring.metrics.node_metrics import node_exposition

        return node_exposition(self._all_figures, self._services, self._timings)

    def _all_figures(self) -> dict[str, Any]:
        return {
            **self._figures(),
            "problems": self._problems(),
            "doors": self._admission.counts,
            "sample": {**self._sample.values, "failing": self._sample.failing},
        }
