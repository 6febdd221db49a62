"""The node's port: the listening socket, with or without TLS, and the protocol of its connections.

Connections start in the fast lane, or in aiohttp if the fast lane is off.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from functools import cache
from typing import cast

from aiohttp import web

from hpwsn.broker.admission.admission import Admission
from hpwsn.door.listener.gate import Gate
from hpwsn.door.listener.http_lane import Lanes
from hpwsn.door.listener.http_statistics import HttpStatistics
from hpwsn.door.listener.loop_guard import LoopGuard
from hpwsn.door.listener.notify_lane import NotifyLane
from hpwsn.door.listener.request_head import Heads
from hpwsn.door.listener.tls import load_certificate, server_context
from hpwsn.door.soap.soap_door import SoapDoor
from hpwsn.errors import HpwsnError
from hpwsn.histogram import Timings
from hpwsn.listening import open_listener
from hpwsn.push_mark import PushMark
from hpwsn.settings import Config
from hpwsn.settings.setting import ANY_HOST
from hpwsn.streams.deployment.cluster_settings import is_local
from hpwsn_client.wsn.soap.xml import Limits

log = logging.getLogger(__package__)


class Port:
    """Binds the port before the node is ready, to reserve it, and accepts connections after `open`."""

    def __init__(self, config: Config, limits: Limits, timings: Timings) -> None:
        self._config = config
        self._limits = limits
        self._tls = server_context(config.server)
        self._number = config.server.port
        self.base_url = cache(self._find_base_url)
        """The start of every address that the node hands out: one text, since every subscription has it."""
        self.statistics = HttpStatistics(timings)
        self._listener: socket.socket | None = None
        self._runner: web.AppRunner | None = None
        self._lanes: Lanes | None = None
        self._gate: Gate | None = None
        self._server: asyncio.Server | None = None

    def _find_base_url(self) -> str:
        return self._config.server.base_url(self._number, socket.gethostname())

    def origin(self) -> str:
        """The URL at which the node listens; the host may mean all addresses of this machine."""
        server = self._config.server
        return server.origin(server.host or "0.0.0.0", self._number)

    @property
    def listening_url(self) -> str:
        """The broker's address on this machine."""
        return f"{self.origin()}/wsn"

    def url_for_jobs(self, master: str) -> str:
        """The broker's address for Spark jobs: on this machine, or for a cluster the public one."""
        server = self._config.server
        if not is_local(master):
            return f"{self.base_url()}/wsn"
        host = "127.0.0.1" if server.host == "0.0.0.0" else "::1" if server.host in ANY_HOST else server.host
        return f"{server.origin(host, self._number)}/wsn"

    def listen(self) -> None:
        """Bind the port, without accepting connections."""
        server = self._config.server
        self._listener = open_listener(server.host, server.port)
        self._number = self._listener.getsockname()[1]
        self.base_url.cache_clear()

    async def open(self, app: web.Application, soap: SoapDoor, admission: Admission, mark: PushMark) -> None:
        """Accept connections at the port that `listen` has bound."""
        assert self._listener is not None
        server = self._config.server
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=server.drain_timeout)
        statistics, head_within = self.statistics, server.request_timeout
        gate = self._gate = Gate(limit=server.connections, head_within=head_within, statistics=statistics)
        gate.join(app)
        app.middlewares.append(LoopGuard(mark).middleware)
        await self._runner.setup()
        gate.server = cast(web.Server, self._runner.server)
        self._lanes = Lanes(
            soap,
            NotifyLane(admission, self._limits).offer,
            heads=Heads(server.body_limit, mark.would_loop),
            arrive_within=server.request_timeout,
            hand_over=gate.hand_over,
            statistics=statistics,
        )
        statistics.fast, statistics.full = self._lanes.__len__, gate.__len__
        if server.fast_lane:
            gate.lanes = self._lanes
        self._server = await asyncio.get_running_loop().create_server(
            gate,
            sock=self._listener,
            ssl=self._tls,
            ssl_handshake_timeout=server.request_timeout if self._tls else None,
        )

    def connections(self) -> int:
        """The number of open connections of clients."""
        return 0 if self._gate is None or self._lanes is None else len(self._gate) + len(self._lanes)

    def reload(self) -> None:
        """Read the certificate again."""
        if self._tls is None:
            return
        try:
            load_certificate(self._tls, self._config.server)
        except HpwsnError as error:
            log.error("%s; the old certificate stays in use", error)
            return
        log.info("the certificate was reloaded; new connections use it")

    def stop(self) -> None:
        """Stop accepting connections, or give the port back where none was accepted yet."""
        if self._server is not None:
            self._server.close()
        elif self._listener is not None:
            self._listener.close()

    async def drained(self) -> None:
        """Answer pending requests within `server.drain_timeout`, then close every connection."""
        if self._lanes is not None and self._runner is not None:
            within = self._config.server.drain_timeout
            await asyncio.gather(self._lanes.close(within), self._runner.cleanup())
