"""The virtual sensors of a node: defined by name, running only while somebody uses their topic.

A virtual sensor is provisioned with its first user: a deliverable subscription, a webhook, an open stream or
a waiting poll that names `virtual:NAME` or a topic above it. An expression with wildcards names what it
selects; a subscription without a topic filter, or a paused one, is no user. Later users share it. It is
released `linger` seconds after the last one.

Changes of definitions are made one after another, and to their end if the caller is cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any, TypeVar

from hpwsn.broker.registrations.interest_follower import InterestFollower
from hpwsn.sensors.templates.template import VirtualTemplate
from hpwsn.sensors.virtual.definitions import Definitions
from hpwsn.sensors.virtual.last_results import LastResults
from hpwsn.sensors.virtual.running_sensors import RunningSensors
from hpwsn.sensors.virtual.service_jobs import ServiceJobs
from hpwsn_client.wsn.soap.names import DIALECT_CONCRETE
from hpwsn_client.wsn.topics.topic_expressions import TopicExpression

T = TypeVar("T")


class VirtualSensors:
    """Definitions and their users; what runs is in `running`."""

    def __init__(
        self,
        definitions: Definitions,
        running: RunningSensors,
        results: LastResults,
        jobs: ServiceJobs,
        *,
        linger: float,
        simple_subtree: bool,
    ) -> None:
        self._definitions = definitions
        self.running = running
        self._results = results
        self._jobs = jobs
        self._linger = linger
        self._leaving: dict[str, asyncio.TimerHandle] = {}
        self._changing = asyncio.Lock()
        self._changes: set[asyncio.Task[Any]] = set()
        self._begun = False
        self.users: InterestFollower[str] = InterestFollower(
            self._update, simple_subtree, without_topics=False
        )
        """Who uses the topics of virtual sensors; the builder connects it."""

    def get(self, name: str) -> VirtualTemplate | None:
        """The definition with this name, or None."""
        return self._definitions.get(name)

    def __iter__(self) -> Iterator[VirtualTemplate]:
        return iter(self._definitions)

    def __len__(self) -> int:
        return len(self._definitions)

    async def put(self, templates: Sequence[VirtualTemplate]) -> None:
        """Define virtual sensors, all or none, stored when it returns; what runs goes on as defined now.

        TooManyDefinitions, JournalUnavailable, and SensorRefused for a service that cannot run, say why not.
        """
        for template in templates:
            if template.service and self.get(template.name) != template:
                # This takes a while, in which others can define theirs.
                await self._jobs.check(template)
        await self._to_the_end(self._put(templates))

    async def remove(self, name: str) -> bool:
        """Remove a definition, and release what runs; False if the name is unknown."""
        return await self._to_the_end(self._remove(name))

    def begin(self) -> None:
        """Provision what has users after a restart; all subscriptions must be known."""
        for template in self:
            self._follow(template)
        self._begun = True
        self.users.begin()
        self._jobs.begin(each for each in self if each.name not in self.running.names)

    async def close(self) -> None:
        """Stop everything; users and definitions stay."""
        for timer in self._leaving.values():
            timer.cancel()
        await self.users.close()
        if self._changes:
            await asyncio.wait(self._changes)
        await self.running.close()

    def describe(self, template: VirtualTemplate) -> dict[str, Any]:
        """The JSON form of a definition, with its state.

        What only windows have is None for an idle one, and for one with a service: `late` readings came
        after their window was closed, and `refused` ones found no room in it.
        """
        name = template.name
        runs = name in self.running.names
        windows = self.running.windows(name) if runs and not template.service else None
        return {
            "name": name,
            **template.document(),
            "topic": str(template.topic),
            "state": "running" if runs else "idle",
            "members": None if windows is None else len(self.running.members(name)),
            "late": None if windows is None else windows.late,
            "refused": None if windows is None else windows.refused,
        }

    def figures(self) -> dict[str, int]:
        """How many are defined, and how many run."""
        return {"virtual": len(self), "running": len(self.running.names)}

    async def _put(self, templates: Sequence[VirtualTemplate]) -> None:
        async with self._changing:
            changed = [each for each in templates if self.get(each.name) != each]
            if not changed:
                return
            known = {each.name for each in changed if self.get(each.name) is not None}
            await self._definitions.put(changed)
            for template in changed:
                if template.name in self.running.names:
                    self._start(template)
                elif template.name not in known and self._begun:
                    self._follow(template)

    async def _remove(self, name: str) -> bool:
        async with self._changing:
            if self.get(name) is None:
                return False
            await self._definitions.remove(name)
            self.users.discard(name)
            self._release(name)
            self._results.forget(name)
            return True

    def _follow(self, template: VirtualTemplate) -> None:
        self.users.add(template.name, TopicExpression.of(template.topic, DIALECT_CONCRETE))
        if self.users.wanted(template.name):
            self._update(template.name)

    def _update(self, name: str) -> None:
        """Start what has a user, and stop what has had none for `linger` seconds."""
        template = self.get(name)
        if template is None:
            return
        if self.users.wanted(name):
            if (leaving := self._leaving.pop(name, None)) is not None:
                leaving.cancel()
            if name not in self.running.names:
                self._start(template)
        elif name in self.running.names and name not in self._leaving:
            loop = asyncio.get_running_loop()
            self._leaving[name] = loop.call_later(self._linger, self._release, name)

    def _start(self, template: VirtualTemplate) -> None:
        # What is wanted when the node starts was wanted while it was down.
        created = self._definitions.created(template.name)
        self.running.start(template, created, make_up=not self._begun)

    def _release(self, name: str) -> None:
        if (leaving := self._leaving.pop(name, None)) is not None:
            leaving.cancel()
        self.running.stop(name)

    async def _to_the_end(self, change: Coroutine[Any, Any, T]) -> T:
        task = asyncio.get_running_loop().create_task(change)
        self._changes.add(task)
        task.add_done_callback(self._changes.discard)
        return await asyncio.shield(task)
