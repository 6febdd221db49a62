"""The service agent: starts, watches, restarts and stops the jobs of posted definitions.

Each service has a task that owns its process: it adopts the process of an earlier run of the node, or starts
one, waits for its end, and starts it again by the rules of `job_rules`. `remove` asks the task to stop the
process; `close` only ends the tasks, and the processes go on. Everything that a restart of the node needs is
on disk before a request is answered. Nothing here blocks the event loop: files are written in threads.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hpwsn.errors import HpwsnError
from hpwsn.settings import StreamsSettings
from hpwsn.streams.agent.definition_check import CheckedService, DefinitionCheck
from hpwsn.streams.agent.job_folder import JobFolder, saved_folders
from hpwsn.streams.agent.job_process import POLL, JobProcess
from hpwsn.streams.agent.job_rules import JobState, Observation, RestartPolicy, job_state
from hpwsn.streams.agent.posted_definition import Allowed, read_posted
from hpwsn.streams.definition.definition import Definition
from hpwsn.streams.definition.problems import DefinitionError, Place, Problem
from hpwsn.streams.deployment.cluster_settings import is_local
from hpwsn.streams.registry.service import iso_time

log = logging.getLogger(__name__)

TRIM_EVERY = 300
"""Looks at a running process between two looks at the size of its log."""
PROGRESS = "60"
"""Seconds between progress lines in a job's log."""
HIDDEN_LOG = (
    "the job can read internal topics, which its log may quote; show the token of jobs to see it"
    " (Authorization: Bearer, or HPWSN_TOKEN)"
)


class ServiceExists(HpwsnError):
    """The node already runs a service with this uri."""


class TooManyServices(HpwsnError):
    """The node runs as many services as it may."""


class AgentClosed(HpwsnError):
    """The node stops, and does not stop its services any more."""


@dataclass(slots=True, eq=False)
class _Job:
    """A service that the node runs, and its process; None between two processes."""

    uri: str
    service: dict[str, Any]
    folder: JobFolder
    process: JobProcess | None = None
    launched: float = 0.0
    crashes: list[float] = field(default_factory=list)
    restarts: int = 0
    failed: bool = False
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


class ServiceAgent:
    """The services that this node runs, by uri.

    `heard` tells when a service's job last sent a heartbeat as running, None if never. `token_file` is the
    file with the token of jobs, which need not exist.
    """

    def __init__(
        self,
        root: Path,
        settings: StreamsSettings,
        *,
        heard: Callable[[str], float | None],
        token_file: Path,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._root = root.resolve()
        self._settings = settings
        self._heard = heard
        self._token_file = token_file.resolve()
        self._clock = clock
        self._allowed = Allowed(settings.agent_functions, settings.agent_folder)
        self._checkpoints = Path(settings.checkpoints).resolve() if settings.checkpoints else None
        self._policy = RestartPolicy(settings.restarts, settings.restart_within)
        self._check = DefinitionCheck()
        self._jobs: dict[str, _Job] = {}
        self._coming: dict[str, asyncio.Event] = {}
        self._url = ""

    async def start(self, url: str) -> None:
        """Adopt or start the jobs of all services; `url` is the node's address for jobs."""
        self._url = self._settings.url or url
        for folder, service in await asyncio.to_thread(
            lambda: list(saved_folders(self._root, self._checkpoints))
        ):
            self._supervise(_Job(service["uri"], service, folder))

    async def close(self) -> None:
        """Stop watching; the jobs go on."""
        tasks = [job.task for job in self._jobs.values() if job.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def read(self, text: str) -> Definition:
        """A posted definition in its form; DefinitionError if it is not TOML, or has what is not allowed."""
        try:
            return await asyncio.to_thread(read_posted, text, self._allowed)
        except RecursionError:
            raise DefinitionError([Problem(Place(), "is nested too deeply")]) from None

    async def check(self, text: str) -> CheckedService:
        """The service of a definition that `read` accepts; DefinitionError lists everything that is wrong."""
        return await self._check.check(text)

    async def run(self, text: str, service: CheckedService, with_token: bool = False) -> None:
        """Run a checked definition; on disk, and certain to be started, when this returns.

        The job gets the token of jobs only if the client has shown it: else a posted definition could copy
        internal topics to public ones. A service that has failed is replaced; on an error it stays as it was.
        """
        uri = service.uri
        self.check_free(uri)
        known = self._jobs.get(uri)
        ready = self._coming[uri] = asyncio.Event()
        try:
            await _release(known)
            folder = JobFolder.of(self._root, uri, self._checkpoints)
            saved = {**asdict(service), "created": self._clock(), "with_token": with_token}
            # The log of a job with the token stays hidden from clients without it.
            new_log = known is not None and _has_token(known) and not with_token
            await asyncio.to_thread(folder.create, text, saved, new_log)
            self._supervise(_Job(uri, saved, folder))
        except BaseException:
            if known is not None:
                self._supervise(known)
            raise
        finally:
            del self._coming[uri]
            ready.set()

    def check_free(self, uri: str) -> None:
        """Raise ServiceExists or TooManyServices if no service with this uri can be started."""
        known = self._jobs.get(uri)
        if known is not None and known.stopping.is_set():
            raise ServiceExists(f"this node is stopping {uri}; post it again when its DELETE is answered")
        if uri in self._coming or (known is not None and not known.failed):
            raise ServiceExists(f"this node already runs {uri}; DELETE it first")
        others = len(self._jobs.keys() | self._coming.keys()) - (known is not None)
        if others >= self._settings.agent_limit:
            raise TooManyServices(
                f"this node runs its limit of {self._settings.agent_limit} services; stop some, or raise"
                " streams.agent_limit"
            )

    async def remove(self, uri: str) -> bool:
        """Stop a service and remove its files; False if the node does not run it. May be called twice.

        A service that is just being started is stopped then. AgentClosed if the node stops meanwhile.
        """
        while (coming := self._coming.get(uri)) is not None:
            await coming.wait()
        job = self._jobs.get(uri)
        if job is None:
            return False
        job.stopping.set()
        task = job.task
        if task is None or task.done():
            # Its files could not be removed before.
            task = self._supervise(job)
        await asyncio.wait([task])
        if task.cancelled():
            raise AgentClosed(f"the node stops; {uri} is still to be removed")
        task.result()
        return True

    def __contains__(self, uri: object) -> bool:
        return uri in self._jobs

    def __iter__(self) -> Iterator[str]:
        return iter(self._jobs)

    def summary(self, uri: str) -> dict[str, Any]:
        """What the agent knows about a service that it runs, in a list."""
        job, now = self._jobs[uri], self._clock()
        process = job.process
        alive = process is not None and process.alive()
        seen = Observation(
            alive,
            job.launched,
            self._heard(uri),
            len(self._policy.recent(job.crashes, now)),
            job.failed,
            job.stopping.is_set(),
        )
        return {
            **{name: job.service[name] for name in ("uri", "topic", "description")},
            **{name: job.service[name] for name in ("attributes", "constraints", "inputs")},
            "state": str(job_state(seen, now, self._settings.silent_after)),
            "pid": process.pid if process is not None and alive else None,
            "restarts": job.restarts,
            "created": iso_time(job.service["created"]),
        }

    async def details(self, uri: str, with_token: bool) -> dict[str, Any]:
        """The plan of a service that the agent runs, the last lines of its log, and why its job has ended.

        The log of a job with the token can quote internal events: only a client with the token gets it.
        """
        job = self._jobs[uri]
        found = {"plan": job.service["plan"], "reason": None, "log": [], "log_note": None}
        if _has_token(job) and not with_token:
            return {**found, "log_note": HIDDEN_LOG}
        summary = self.summary(uri)
        if summary["state"] in (JobState.RESTARTING, JobState.FAILED):
            found["reason"] = await asyncio.to_thread(job.folder.reason, summary["pid"] is not None)
        return {**found, "log": await asyncio.to_thread(job.folder.last_lines)}

    async def definition(self, uri: str) -> str:
        """The text with which a service that the agent runs was posted; empty if it is just being removed."""
        try:
            return await asyncio.to_thread(self._jobs[uri].folder.definition.read_text, "utf-8")
        except (KeyError, FileNotFoundError):
            return ""

    def figures(self) -> dict[str, int]:
        """The number of services, and of those that have failed."""
        return {"services": len(self._jobs), "failed": sum(job.failed for job in self._jobs.values())}

    def _supervise(self, job: _Job) -> asyncio.Task[None]:
        self._jobs[job.uri] = job
        job.task = asyncio.get_running_loop().create_task(self._run(job), name=f"service {job.uri}")
        return job.task

    async def _run(self, job: _Job) -> None:
        """Keep a job running, unless it has failed, until it is to stop, and remove its files then."""
        try:
            if not job.failed:
                await self._keep_running(job)
        except Exception:
            log.exception("the agent of %s failed; it is not run any more", job.uri)
            job.failed = True
        if job.failed:
            await job.stopping.wait()
        if job.process is not None:
            await job.process.stop(self._settings.stop_timeout)
        await asyncio.to_thread(job.folder.remove)
        del self._jobs[job.uri]

    async def _keep_running(self, job: _Job) -> None:
        await self._adopt(job)
        while not job.stopping.is_set():
            if job.process is None:
                await self._launch(job)
            if await self._ended(job):
                await self._crashed(job)
            if job.failed:
                return

    async def _adopt(self, job: _Job) -> None:
        """Take over the process of an earlier run of the node; end it if it runs another command."""
        identity, command = await asyncio.to_thread(job.folder.process)
        process = await asyncio.to_thread(JobProcess.adopt, identity, job.folder.path)
        if process is None:
            if identity is not None:
                await JobProcess(identity, job.folder.path).clear()
            return
        if command != self._command(job):
            log.info("%s is started again with new settings", job.uri)
            await process.stop(self._settings.stop_timeout)
            return
        log.info("%s still runs as process %d", job.uri, process.pid)
        job.process, job.launched = process, self._clock()
        await asyncio.to_thread(job.folder.save_process, process.identity, command)

    async def _launch(self, job: _Job) -> None:
        command = self._command(job)
        job.launched = self._clock()
        try:
            job.process = await asyncio.to_thread(_start, job.folder, command)
        except OSError as error:
            log.error("%s cannot be started: %s", job.uri, error)
            return
        log.info("%s runs as process %d", job.uri, job.process.pid)

    def _command(self, job: _Job) -> list[str]:
        settings, folder = self._settings, job.folder
        local = is_local(settings.master)
        return [
            # The token comes from the file, or not at all: never from the node's own environment.
            *("/usr/bin/env", "-u", "HPWSN_TOKEN"),
            *(sys.executable, "-m", "hpwsn", "streams", "run", str(folder.definition)),
            *("--url", self._url, "--master", settings.master, "--checkpoint", str(folder.checkpoint)),
            *("--every", PROGRESS),
            *(("--token-file", str(self._token_file)) if _has_token(job) else ()),
            *(("--archive", str(Path(settings.archive).resolve())) if settings.archive else ()),
            # What Spark leaves behind when it is killed is then in the folder of the service.
            *(("--conf", f"spark.local.dir={folder.scratch}") if local else ()),
        ]

    async def _ended(self, job: _Job) -> bool:
        """Wait for the end of the process; False if the job is to stop before."""
        looks = 0
        while job.process is not None and job.process.alive():
            if await _is_set(job.stopping, POLL):
                return False
            looks += 1
            if looks % TRIM_EVERY == 0:
                await asyncio.to_thread(job.folder.trim_log)
        return True

    async def _crashed(self, job: _Job) -> None:
        """Clear up after a crash, and wait before the next start, or give up."""
        if job.process is not None:
            await job.process.clear()
            job.process = None
        now = self._clock()
        job.crashes = [*self._policy.recent(job.crashes, now), now]
        pause = self._policy.pause(job.crashes, now)
        if pause is None:
            job.failed = True
            log.error("%s has failed: its job ended too often, and is not started again", job.uri)
            return
        log.warning("the job of %s has ended; it is started again in %g s", job.uri, pause)
        job.restarts += 1
        await _is_set(job.stopping, pause)


def _has_token(job: _Job) -> bool:
    return bool(job.service.get("with_token"))


async def _release(job: _Job | None) -> None:
    """Let go of a service that has failed; its folder stays for the next process."""
    if job is not None and job.task is not None:
        job.task.cancel()
        await asyncio.wait([job.task])


def _start(folder: JobFolder, command: list[str]) -> JobProcess:
    folder.prepare()
    folder.trim_log()
    folder.mark_start()
    process = JobProcess.start(command, folder.path, folder.log)
    try:
        folder.save_process(process.identity, command)
    except OSError as error:
        # After a restart of the node, the process is found by its folder.
        log.warning("cannot note process %d of %s: %s", process.pid, folder.path, error)
    return process


async def _is_set(event: asyncio.Event, seconds: float) -> bool:
    """Whether an event is set within some seconds."""
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False
