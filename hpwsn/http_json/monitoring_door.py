"""/history, /alerts, /events-log and the stream /live of a node or the admin node.

hpwsn.monitoring owns the content; this module owns the parameters. A node has its own history, and the admin
node those of all nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from aiohttp import web

from hpwsn.background import in_thread
from hpwsn.http_json.list_pages import limit_of, page_of
from hpwsn.http_json.responses import answer, bad, check_names
from hpwsn.monitoring.alerts import Alerts
from hpwsn.monitoring.events_log import EventsLog
from hpwsn.monitoring.histories import Histories
from hpwsn.monitoring.live import LiveHub
from hpwsn.monitoring.live_stream import kinds_of, seconds_of, write_live
from hpwsn.monitoring.node_history import FIGURES, RANGES
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.topics.topic import shown

DEFAULT_RANGE = "5m"
COMPRESSED_ELSEWHERE = 4096
"""Bytes of an answer above which a thread compresses it; a history has up to some hundred thousand."""
_NAMES_SHOWN = 20
_LONGEST_NAME = 80
"""Longest name of a node that is repeated in an address."""


class MonitoringDoor:
    """The request handlers; `name` is the node of /history without a parameter, None if it must be given."""

    def __init__(
        self,
        name: str | None,
        clock: Callable[[], float],
        histories: Histories,
        alerts: Alerts,
        events: EventsLog,
        live: LiveHub,
    ) -> None:
        self._name = name
        self._clock = clock
        self._histories = histories
        self._alerts = alerts
        self._events = events
        self._live = live

    def join(self, app: web.Application) -> None:
        """Add the routes to the web application, and end the streams when it ends."""
        app.add_routes(
            [
                web.get("/history", self._history),
                web.get("/alerts", self._list_alerts),
                web.get("/events-log", self._list_events),
                web.get("/live", self._follow, allow_head=False),
            ]
        )
        app.on_shutdown.append(self._close)

    async def _close(self, app: web.Application) -> None:
        self._live.close()

    async def _history(self, request: web.Request) -> web.StreamResponse:
        check_names(request, "node", "range", "metrics")
        node = request.query.get("node", self._name)
        if node is None:
            raise bad("node is missing; give the name of a node, /cluster lists them")
        history = self._histories.find(node)
        if history is None:
            raise faults.SoapFault(
                f"the history of {shown(node)} is not here; {self._where(node)}", status=404
            )
        range_ = request.query.get("range", DEFAULT_RANGE)
        if range_ not in RANGES:
            raise bad(f"range is {shown(range_)}; give {', '.join(RANGES)}")
        text = await in_thread(history.answer, range_, _metrics_of(request), self._clock())
        response = web.Response(
            text=text + "\n", content_type="application/json", zlib_executor_size=COMPRESSED_ELSEWHERE
        )
        response.headers["Vary"] = "Accept-Encoding"
        response.enable_compression()
        return response

    def _where(self, node: str) -> str:
        """Which histories are here; a node leads to those of the other nodes of its cluster."""
        known = _known(self._histories)
        return known if self._name is None else f"{known}; ask another node by {_relayed(node)}"

    async def _list_alerts(self, request: web.Request) -> web.StreamResponse:
        check_names(request, "limit", "after")
        # Their order is by severity and age, and the names of a page must have an order: their place.
        alerts = {f"{place:06d}": alert for place, alert in enumerate(self._alerts.described())}
        names, following = page_of(request, alerts)
        items = [alerts[name] for name in names]
        return answer({"items": items, "next": following, "total": len(alerts)}, 200)

    async def _list_events(self, request: web.Request) -> web.StreamResponse:
        check_names(request, "limit", "after")
        items, following = self._events.page(limit_of(request), _number_of(request))
        told: dict[str, Any] = {
            "items": [event.described() for event in items],
            "next": None if following is None else str(following),
            "total": len(self._events),
        }
        return answer(told, 200)

    async def _follow(self, request: web.Request) -> web.StreamResponse:
        check_names(request, "kinds", "seconds")
        try:
            kinds, seconds = kinds_of(request), seconds_of(request)
        except ValueError as error:
            raise bad(str(error)) from error
        return await write_live(request, self._live, kinds, seconds)


def _known(histories: Histories) -> str:
    names = sorted(histories)
    listed = ", ".join(names[:_NAMES_SHOWN]) + (", …" if len(names) > _NAMES_SHOWN else "")
    return f"this process has that of: {listed or 'no node'}"


def _relayed(node: str) -> str:
    return f"/nodes/{quote(node, safe='') if len(node) <= _LONGEST_NAME else 'NAME'}/history"


def _metrics_of(request: web.Request) -> tuple[str, ...]:
    """The figures in `metrics`, separated by commas, or all."""
    text = request.query.get("metrics")
    if text is None:
        return FIGURES
    wanted = tuple(dict.fromkeys(text.split(",")))
    for name in wanted:
        if name not in FIGURES:
            raise bad(f"metrics has {shown(name)}; give some of {', '.join(FIGURES)}, with commas between")
    return wanted


def _number_of(request: web.Request) -> int | None:
    """The number of the last event of the page before."""
    text = request.query.get("after")
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal()) or len(text) > 18:
        raise bad(f"after is {shown(text)}; give the value of next from the page before")
    return int(text)
