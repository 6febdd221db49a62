"""Membership: the node registers with the admin node, sends heartbeats, and follows the topology.

There are two heartbeats: the requests of the node, and the lines of a stream on which the admin node also
pushes each new topology. If one fails, the node registers again with the same session until it succeeds.
Meanwhile the last topology is valid; after a restart, that is the one in the data directory. The node
deregisters when it stops.
"""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
import time
from collections.abc import Callable, Coroutine
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

from hpwsn.errors import HpwsnError
from hpwsn.routing.membership.admin_client import AdminClient, AdminRefused, AdminUnreachable, node_path
from hpwsn.routing.membership.credentials import peer_context, shared_secret
from hpwsn.routing.membership.last_topology import LastTopology, identity_of
from hpwsn.routing.membership.node_report import NodeReport
from hpwsn.routing.topology.topology import MalformedTopology, Member, Topology, apply_changes
from hpwsn.settings import Config

log = logging.getLogger(__name__)

DEREGISTER_TIMEOUT = 2.0
"""Seconds that a stopping node waits to deregister; otherwise the missing heartbeats end its membership."""

SAVE_DELAY = 0.1
"""Seconds until a new topology is saved."""

_NAME_TAKEN = 409


class Membership:
    """Keeps this node registered."""

    def __init__(
        self,
        config: Config,
        me: Member,
        on_topology: Callable[[Topology], None],
        report: Callable[[], NodeReport] = NodeReport,
    ) -> None:
        directory = Path(config.data.dir)
        self.me = me
        self.topology: Topology | None = None
        self._on_topology = on_topology
        self._make_report = report
        self._settings = config.cluster
        # Loading the system's authorities takes longer than the rest of a registration.
        tls = peer_context(config) if config.cluster.admin.lower().startswith("https:") else None
        self._client = AdminClient(config.cluster.admin, shared_secret(config.cluster), tls)
        self._last = LastTopology(directory, self._client.url)
        self._session = secrets.token_hex(8)
        self._identity = identity_of(directory)
        self._heartbeat = config.cluster.heartbeat
        self._timeout = config.cluster.heartbeat * config.cluster.missed
        self._registered = False
        self._ever_registered = False
        self._closing = False
        self._saved = True
        self._refusal: AdminRefused | None = None
        self._unreachable_since: float | None = None
        self._tried = asyncio.Event()
        self._suspected_at: dict[str, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Register; use the last topology if the admin node is unreachable. A taken name is an error."""
        self._start_task(self._run())
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.start_wait):
                await self._tried.wait()
        if self._refusal is not None and self._refusal.status == _NAME_TAKEN:
            await self._stop()
            raise HpwsnError(f"the admin node {self._client.url} refuses this node: {self._refusal}")
        if self.topology is None:
            self._load_last_topology()

    async def close(self) -> None:
        """Leave the cluster."""
        self._closing = True
        if not self._registered:
            await self._end_tasks()
        # After its own restart the admin node knows this node before it has registered again.
        # The stream stays open until the node is deregistered, because a closed stream looks like a crash.
        if self._ever_registered:
            with suppress(AdminUnreachable, AdminRefused):
                path = node_path(self.me.name, session=self._session)
                await self._client.call("DELETE", path, timeout_seconds=DEREGISTER_TIMEOUT)
        await self._stop()

    def problem(self) -> str | None:
        """Return why the node is not a full member; None while it has a topology and is not refused."""
        if self._refusal is not None:
            return f"the admin node {self._client.url} refuses this node: {self._refusal}"
        if self.topology is None:
            return f"the admin node {self._client.url} cannot be reached, and no topology is known"
        return None

    def figures(self) -> dict[str, Any]:
        """Return the counters for /status and /metrics."""
        topology = self.topology or Topology()
        return {
            "name": self.me.name,
            "cluster": self.me.cluster,
            "admin": self._client.url,
            "registered": int(self._registered),
            "admin_away": 0.0
            if self._unreachable_since is None
            else round(time.monotonic() - self._unreachable_since, 3),
            "topology_version": topology.version,
            "nodes_alive": sum(member.alive for member in topology),
        }

    async def ask(self, path: str, *, timeout_seconds: float) -> dict[str, Any]:
        """Return the admin node's answer to a GET; AdminUnreachable or AdminRefused without one."""
        return await self._client.call("GET", path, timeout_seconds=timeout_seconds)

    def suspect(self, name: str) -> None:
        """Ask the admin node to check a peer that seems dead, at most once per heartbeat."""
        now = time.monotonic()
        if self._registered and now - self._suspected_at.get(name, 0.0) >= self._heartbeat:
            self._suspected_at[name] = now
            self._start_task(self._report(name))

    async def _report(self, name: str) -> None:
        with suppress(AdminUnreachable, AdminRefused):
            await self._client.call("POST", node_path(name, "suspect"), timeout_seconds=self._timeout)

    def _start_task(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _stop(self) -> None:
        await self._end_tasks()
        await self._client.close()

    async def _end_tasks(self) -> None:
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _load_last_topology(self) -> None:
        """Use the saved topology."""
        topology = self._last.load()
        if topology is None:
            log.warning("no topology is known; this node works alone until the admin node answers")
            return
        log.warning("using the saved topology of version %d", topology.version)
        self._take(topology)

    async def _run(self) -> None:
        while not self._closing:
            try:
                await self._register()
                self._tried.set()
                await _until_first_ends(self._send_heartbeats(), self._follow())
            except AdminUnreachable as error:
                self._log_unreachable(error)
            except AdminRefused as error:
                self._log_refused(error)
            except Exception:
                log.exception("an internal error ended the membership; registering again")
            self._registered = False
            self._tried.set()
            if self._closing:
                return
            # Jitter, so that not all nodes register at once when the admin node is back.
            await asyncio.sleep(self._heartbeat * random.uniform(0.25, 0.75))

    async def _register(self) -> None:
        announced = {
            "name": self.me.name,
            "cluster": self.me.cluster,
            "url": self.me.url,
            "host": self.me.host,
            "port": self.me.port,
            "version": self.me.version,
            "identity": self._identity,
            "session": self._session,
        }
        answer = await self._client.call("POST", "/api/nodes", announced, timeout_seconds=self._timeout)
        try:
            self._heartbeat = float(answer["heartbeat"])
            self._timeout = self._heartbeat * int(answer["missed"])
            topology = Topology.parse(answer["topology"])
        except (KeyError, TypeError, ValueError) as error:
            raise AdminUnreachable(
                f"the answer of {self._client.url} is not that of an admin node: {error!r}"
            ) from error
        self._registered = self._ever_registered = True
        self._refusal = self._unreachable_since = None
        log.info("registered as node %s of cluster %s at %s", self.me.name, self.me.cluster, self._client.url)
        self._accept(topology)

    async def _send_heartbeats(self) -> None:
        """Send heartbeats, each with a report, until the admin node refuses one."""
        path = node_path(self.me.name, "heartbeat", session=self._session)
        while True:
            await asyncio.sleep(self._heartbeat)
            report = self._make_report().encode()
            await self._client.call("PUT", path, report, timeout_seconds=self._timeout)

    async def _follow(self) -> None:
        """Use each pushed topology, until the stream ends or is silent."""
        version = self.topology.version if self.topology else 0
        path = node_path(self.me.name, "stream", session=self._session, after=str(version))
        async with aclosing(self._client.lines(path, timeout_seconds=self._timeout)) as lines:
            async for line in lines:
                if "beat" not in line:
                    self._accept(self._parse_pushed(line))

    def _parse_pushed(self, line: dict[str, Any]) -> Topology:
        try:
            if "after" in line:
                return apply_changes(self.topology or Topology(), line)
            return Topology.parse(line.get("topology"))
        except MalformedTopology as error:
            raise AdminUnreachable(f"{self._client.url} pushed a malformed topology: {error}") from error

    def _accept(self, topology: Topology) -> None:
        if topology == self.topology:
            return
        self._take(topology)
        if self._saved:
            self._saved = False
            self._start_task(self._save())

    async def _save(self) -> None:
        """Save the topology; of several in a short time, only the last."""
        await asyncio.sleep(SAVE_DELAY)
        self._saved = True
        assert self.topology is not None
        try:
            await asyncio.to_thread(self._last.save, self.topology)
        except OSError as error:
            log.warning("cannot save the topology in %s: %s", self._last.path, error)

    def _take(self, topology: Topology) -> None:
        self.topology = topology
        self._on_topology(topology)

    def _log_unreachable(self, error: AdminUnreachable) -> None:
        if self._unreachable_since is None and not self._closing:
            self._unreachable_since = time.monotonic()
            log.warning("%s; the last topology stays valid, and registration is retried", error)

    def _log_refused(self, error: AdminRefused) -> None:
        """Log a new refusal; after a 404 the node just registers again."""
        if error.status == 404:
            log.warning("the admin node has removed this node: %s", error)
            return
        if str(error) != str(self._refusal):
            log.error("the admin node %s refuses this node: %s", self._client.url, error)
        self._refusal = error


async def _until_first_ends(*coroutines: Coroutine[Any, Any, None]) -> None:
    """Run all until the first ends; return or raise as that one did."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        ended.pop().result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
