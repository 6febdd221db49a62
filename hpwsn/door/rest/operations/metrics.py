"""A node's metrics for Prometheus, at /metrics.

hpwsn.monitoring makes them of the figures of /status. It is imported at the first scrape, since it takes 2 MB
that a node without Prometheus does not need. The number of dead letters is a query to the journal:
where the journal is too busy to answer, a scrape has the last known number.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from aiohttp import web

from hpwsn.broker.broker import Broker
from hpwsn.errors import JournalUnavailable
from hpwsn.histogram import Timings

if TYPE_CHECKING:
    from hpwsn.monitoring.exposition import Exposition

COUNT_WITHIN = 1.0
"""Seconds that a scrape waits for the number of dead letters."""

Figures = Callable[[], Mapping[str, Any]]


class MetricsDoor:
    """The request handler of /metrics; `problems` are the numbers of problems by severity."""

    def __init__(
        self,
        broker: Broker,
        timings: Timings,
        figures: Figures,
        services: Callable[[], Iterable[Mapping[str, Any]]],
        problems: Figures,
    ) -> None:
        self._broker = broker
        self._timings = timings
        self._services = services
        self._figures = figures
        self._problems = problems
        self._dead_letters: int | None = None
        self._exposition: Exposition | None = None

    def routes(self) -> list[web.RouteDef]:
        """Return the routes for the node's web application."""
        return [web.get("/metrics", self._answer)]

    async def _answer(self, request: web.Request) -> web.Response:
        with suppress(JournalUnavailable, TimeoutError):
            async with asyncio.timeout(COUNT_WITHIN):
                self._dead_letters = await self._broker.journal.dead_letter_count()
        if self._exposition is None:
            self._exposition = await asyncio.to_thread(self._load)
        body, content_type = self._exposition.scrape(request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})

    def _load(self) -> Exposition:
        from hpwsn.monitoring.node_metrics import node_exposition

        return node_exposition(self._all_figures, self._services, self._timings)

    def _all_figures(self) -> dict[str, Any]:
        return {
            **self._figures(),
            "problems": self._problems(),
            "doors": self._broker.admission.counts,
            "waiting": sum([one.cursor.backlog for one in self._broker.subscriptions]),
            "dead_letters": self._dead_letters,
        }
