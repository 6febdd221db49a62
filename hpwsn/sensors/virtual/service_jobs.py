"""Jobs of virtual sensors whose results a stream service makes: started and stopped with their users.

For each virtual sensor there is what is wanted and what runs, and a task that brings the two together while
they differ. A job outlives the node: after a restart one without a user is stopped. What cannot be started
or stopped is tried again, and logged once for each reason. A job that an operator stops stays stopped until
its virtual sensor has a first user again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Protocol

from hpwsn.sensors.physical.physical_sensor import SensorRefused
from hpwsn.sensors.templates.template import VirtualTemplate

log = logging.getLogger(__name__)

RETRY_AFTER = 10.0
"""Seconds until a job that could not be started or stopped is tried again."""


class ServiceHost(Protocol):
    """What runs stream services; a service is its definition in TOML."""

    async def check(self, text: str, topic: str) -> None:
        """Raise SensorRefused for a service that cannot run here, or whose results are not on the topic."""

    async def run(self, text: str) -> None:
        """Start a service, if it does not run; certain to be started when it returns."""

    async def stop(self, text: str) -> None:
        """Stop a service, if it runs."""


class ServiceJobs:
    """The jobs of virtual sensors by name; `host` is None on a node that runs no services."""

    def __init__(self, host: ServiceHost | None) -> None:
        self._host = host
        self._wanted: dict[str, str] = {}
        self._runs: dict[str, str] = {}
        """The services that run, or that may run after a restart."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._started = False

    async def check(self, template: VirtualTemplate) -> None:
        """Raise SensorRefused for a template whose service cannot run."""
        if self._host is None:
            raise SensorRefused("this node runs no services; set streams.agent = true, or leave service out")
        await self._host.check(template.service, str(template.topic))

    def start(self) -> None:
        """Start and stop jobs from now on: the host takes requests."""
        self._started = True
        for name in self._wanted.keys() | self._runs.keys():
            self._work(name)

    def begin(self, idle: Iterable[VirtualTemplate]) -> None:
        """Stop the jobs of virtual sensors that nobody uses after a restart, once `start` was called."""
        for template in idle:
            if template.service:
                self._runs[template.name] = template.service
                self._work(template.name)

    def want(self, name: str, service: str) -> None:
        """Run a service for a virtual sensor, in place of another one."""
        self._wanted[name] = service
        self._work(name)

    def forget(self, name: str) -> None:
        """Run no service for a virtual sensor any more."""
        self._wanted.pop(name, None)
        self._work(name)

    async def close(self) -> None:
        """Start and stop nothing more; jobs go on."""
        self._started = False
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _work(self, name: str) -> None:
        is_due = self._started and name not in self._tasks and self._differs(name)
        if self._host is not None and is_due:
            self._tasks[name] = asyncio.get_running_loop().create_task(self._bring_together(self._host, name))

    def _differs(self, name: str) -> bool:
        return self._wanted.get(name) != self._runs.get(name)

    async def _bring_together(self, host: ServiceHost, name: str) -> None:
        told = ""
        try:
            while self._differs(name):
                try:
                    await self._step(host, name)
                except Exception as error:
                    if str(error) != told:
                        told = str(error)
                        log.warning("the service of virtual sensor %s: %s; trying again", name, told)
                    await asyncio.sleep(RETRY_AFTER)
        finally:
            del self._tasks[name]

    async def _step(self, host: ServiceHost, name: str) -> None:
        runs = self._runs.get(name)
        if runs is not None:
            await host.stop(runs)
            del self._runs[name]
            return
        wanted = self._wanted[name]
        await host.run(wanted)
        self._runs[name] = wanted
