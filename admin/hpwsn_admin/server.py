"""The admin node's process: builds its parts, and starts and stops them in order."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from pathlib import Path

import uvloop
from aiohttp import web

from hpwsn.http_json.client_session import SessionDoor
from hpwsn.http_json.cross_origin import Origins
from hpwsn.http_json.monitoring_door import MonitoringDoor
from hpwsn.http_json.request_errors import errors_in_json
from hpwsn.listening import open_listener, raise_file_limit
from hpwsn.logs import set_up_logging
from hpwsn.page.page_door import PageDoor
from hpwsn.routing.membership.credentials import shared_secret
from hpwsn.routing.membership.signing import Verifier
from hpwsn.routing.relay.relay import Relay
from hpwsn.routing.relay.relay_rules import ADMIN
from hpwsn.settings import Config
from hpwsn.settings_reload import Reread, SettingsReload
from hpwsn_admin.api import AdminApi
from hpwsn_admin.cluster_api import ClusterApi
from hpwsn_admin.cluster_monitor import ClusterMonitor
from hpwsn_admin.directory_topics import Topics, topics_source
from hpwsn_admin.member_api import MemberApi
from hpwsn_admin.members import Members
from hpwsn_admin.metrics import AdminMetrics
from hpwsn_admin.signed_requests import SignedRequests
from hpwsn_admin.state_file import StateFile

log = logging.getLogger(__name__)

BODY_LIMIT = 64 * 1024
"""Maximum bytes of a request that is not relayed; an announcement or a report is shorter."""


NAME = "admin"
"""The admin node's name in /session."""


class AdminNode:
    """An admin node with its HTTP server."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._port = config.admin.port
        secret = shared_secret(config.cluster)
        verifier = Verifier(secret, window=config.cluster.clock_window, began=time.time())
        state_file = StateFile(Path(config.admin.dir))
        state_file.open()
        self._members = Members(config, state_file)
        signed = SignedRequests(verifier)
        self._api = AdminApi(self._members, Topics(config.topics), self.base_url)
        self._member_api = MemberApi(self._members, signed)
        self._monitor = ClusterMonitor(config, self._members)
        self._cluster_api = ClusterApi(self._members, signed, self._monitor.events_log.note)
        self._monitor.live.source("status", self._api.status)
        self._topics_source = topics_source(config.topics.url)
        self._relay = Relay(ADMIN, config, lambda: self._members.topology)

    def base_url(self) -> str:
        """The base URL of the HTTP API."""
        host = self._config.admin.host
        return f"http://[{host}]:{self._port}" if ":" in host else f"http://{host}:{self._port}"

    async def start(self) -> None:
        """Start listening; the server accepts requests when this returns."""
        listener = open_listener(self._config.admin.host, self._config.admin.port)
        self._port = listener.getsockname()[1]
        self._members.start()
        await self._monitor.open()
        app = web.Application(client_max_size=BODY_LIMIT, middlewares=[errors_in_json])
        server = self._config.server
        Origins(server.cors_origins, server.websocket_origins, (self._config.admin.host,)).join(app)
        for api in (self._api, self._member_api, self._cluster_api):
            app.add_routes(api.routes())
        app.add_routes(PageDoor().routes())
        self._relay.join(app)
        AdminMetrics(self._members).join(app)
        app.add_routes(SessionDoor(NAME, "admin", lambda: self._topics_source).routes())
        monitor = self._monitor
        MonitoringDoor(
            None, time.time, monitor.histories, monitor.alerts, monitor.events_log, monitor.live
        ).join(app)
        # A stream must end as soon as its connection breaks: this is how a killed node is detected.
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5, handler_cancellation=True)
        await self._runner.setup()
        await web.SockSite(self._runner, listener).start()

    async def close(self) -> None:
        """End the streams to the nodes and save the state."""
        self._member_api.closing = True
        await self._runner.cleanup()
        await self._monitor.close()
        await self._members.close()


def serve_admin(config: Config, reread: Reread) -> int:
    """Run an admin node until SIGTERM or SIGINT; return the exit status.

    `reread` loads the settings again, after SIGHUP.
    """
    set_up_logging(config.log)
    return uvloop.run(_serve(config, SettingsReload(config, reread)))


async def _serve(config: Config, settings: SettingsReload) -> int:
    stop = asyncio.Event()
    raise_file_limit()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, settings.reload)
    node = AdminNode(config)
    await node.start()
    log.info(
        "the admin node is ready; its page is %s/ui/, its state is in %s", node.base_url(), config.admin.dir
    )
    print(f"ready {node.base_url()}/", flush=True)  # noqa: T201
    await stop.wait()
    await node.close()
    log.info("stopped")
    return 0
