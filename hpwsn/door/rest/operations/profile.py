"""POST /profile: CPU and memory sampling on demand, one at a time.

A profile slows the node down and tells about its insides. So only clients on this machine get one, and those
that show the token of jobs. A request that a proxy has forwarded does not count as one of this machine.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from typing import Any

from aiohttp import web

from hpwsn.background import in_thread
from hpwsn.door.rest.authorization import Accepts, NotAuthorized, reads_internal
from hpwsn.door.rest.json_answers import answer, answers_in_json, bad, check_names
from hpwsn.monitoring.profiling.cpu_profile import CpuProfile
from hpwsn.monitoring.profiling.memory_profile import memory_profile
from hpwsn.routing.relay.relay_rules import RELAYED_BY
from hpwsn_client.wsn.soap.faults import SoapFault
from hpwsn_client.wsn.topics.topic import shown

SHORTEST, LONGEST, USUAL = 0.01, 60.0, 10.0
"""Seconds of a profile: at least, at most, and without the parameter."""
_FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Real-IP", "Via")
_MEMORY = {"true": True, "false": False}


class ProfileDoor:
    """The request handler for profiles; `enabled` is the setting `monitoring.profiling`."""

    def __init__(self, accepts_token: Accepts, enabled: bool) -> None:
        self._accepts_token = accepts_token
        self._enabled = enabled
        self._running: CpuProfile | None = None

    def join(self, app: web.Application) -> None:
        """Add the route to the node's web application, and end a profile when the application ends."""
        app.router.add_post("/profile", self._profile)
        app.on_shutdown.append(self._close)

    async def _close(self, app: web.Application) -> None:
        if self._running is not None:
            self._running.stop()

    @answers_in_json
    async def _profile(self, request: web.Request) -> web.Response:
        self._check(request)
        check_names(request, "seconds", "memory")
        seconds, memory = _seconds(request), _memory(request)
        if self._running is not None:
            raise SoapFault("a profile is being made already; try again when it has ended", status=409)
        self._running = CpuProfile(seconds)
        try:
            told = await _run(self._running)
            told["memory"] = await in_thread(memory_profile) if memory else None
        finally:
            self._running = None
        return answer(told, 200)

    def _check(self, request: web.Request) -> None:
        if not self._enabled:
            raise SoapFault(
                "profiles are off; set monitoring.profiling = true and restart the node", status=403
            )
        if not reads_internal(request, self._accepts_token) and not _is_local(request):
            raise NotAuthorized(
                "profiles are for clients on the node's machine, or with the token in DATA/job.token"
            )


async def _run(profile: CpuProfile) -> dict[str, Any]:
    """Profile in a thread of its own; a request that is cancelled ends the thread."""
    pool = ThreadPoolExecutor(1, thread_name_prefix="profiler")
    try:
        return await asyncio.get_running_loop().run_in_executor(pool, profile.run)
    finally:
        profile.stop()
        pool.shutdown(wait=False)


def _is_local(request: web.Request) -> bool:
    if any(name in request.headers for name in (*_FORWARDED, RELAYED_BY)):
        return False
    try:
        return ip_address((request.remote or "").partition("%")[0]).is_loopback
    except ValueError:
        return False


def _seconds(request: web.Request) -> float:
    text = request.query.get("seconds", f"{USUAL:g}")
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not SHORTEST <= seconds <= LONGEST:
        raise bad(f"seconds is {shown(text)}; give a number from {SHORTEST:g} to {LONGEST:g}")
    return seconds


def _memory(request: web.Request) -> bool:
    text = request.query.get("memory", "false")
    if text not in _MEMORY:
        raise bad(f"memory is {shown(text)}; give true or false")
    return _MEMORY[text]
