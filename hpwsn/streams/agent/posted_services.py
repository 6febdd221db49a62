"""The services that a node runs for others: started by their definitions, registered, and removed.

The door of stream services and virtual sensors use it, each with its own rules about who may. Changes of the
registry are on disk when a method returns; one is written at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from urllib.parse import quote

from hpwsn.background import in_thread
from hpwsn.streams.agent.definition_check import CheckedService
from hpwsn.streams.agent.service_agent import ServiceAgent
from hpwsn.streams.registry.known_services import AlreadyRunning, Services
from hpwsn.streams.registry.service import MAX_TEXT, ServiceRefused
from hpwsn.streams.registry.service_file import ServiceStore
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.topics.topic_expressions import Topic


class PostedServices:
    """Starts and removes the services of an agent, and keeps the registry on disk."""

    def __init__(
        self,
        services: Services,
        store: ServiceStore,
        agent: ServiceAgent | None,
        *,
        check_topic: Callable[[Topic], None],
        check_input: Callable[[Topic, bool], None],
    ) -> None:
        """`check_topic` raises a fault for a topic that cannot be published on, `check_input` for one that
        a job may not read, without and with the token of jobs; `agent` is None if nothing is run."""
        self._services = services
        self._store = store
        self.agent = agent
        self._check_topic = check_topic
        self._check_input = check_input
        self._writing = asyncio.Lock()

    async def check(self, agent: ServiceAgent, text: str, with_token: bool = False) -> CheckedService:
        """The service of a definition that can run here, if its uri is free.

        DefinitionError, ServiceRefused, CheckFailed, and faults of the topics, say why not.
        """
        definition = await agent.read(text)
        for each in definition.inputs.values():
            if each.text("topic"):
                self._check_input(Topic.parse(each.text("topic")), with_token)
        service = await agent.check(text)
        if len(quote(service.uri, safe="")) > MAX_TEXT:
            raise ServiceRefused(f"the uri has more than {MAX_TEXT} characters in a URL; use a shorter one")
        self._check_topic(Topic.parse(service.topic))
        return service

    async def start(self, agent: ServiceAgent, text: str, with_token: bool = False) -> CheckedService:
        """Start the service of a definition, certain to be started when this returns.

        Raises what `check` raises; ServiceExists, AlreadyRunning, TooManyServices and RegistryFull; and Busy
        if it cannot be stored.
        """
        uri = (await agent.read(text)).uri
        # Before the check, which takes a while, and after it, when others may have been started.
        self._check_free(agent, uri)
        service = await self.check(agent, text, with_token)
        self._check_free(agent, uri)
        was_known = self._services.describe(uri) is not None
        # Its constraints count from now on, although its job has not registered it yet.
        self._services.register(
            uri,
            {
                "topic": service.topic,
                "description": service.description,
                "instance": "starting",
                "state": "stopped",
                "attributes": service.attributes,
                "constraints": service.constraints,
                "inputs": service.inputs,
            },
        )
        try:
            await agent.run(text, service, with_token)
        except BaseException as error:
            if not was_known:
                self._services.remove(uri)
            if isinstance(error, OSError):
                raise faults.Busy(f"the service cannot be stored: {error}") from error
            raise
        await self.save()
        return service

    async def remove(self, uri: str) -> bool:
        """Forget a service, and stop its job first if the node runs it; False if it is unknown.

        AgentClosed if the node stops meanwhile.
        """
        stopped = self.agent is not None and await self.agent.remove(uri)
        if not self._services.remove(uri) and not stopped:
            return False
        await self.save()
        return True

    async def save(self) -> None:
        """Write the registry to disk; Busy if this is not possible."""
        async with self._writing:
            try:
                await in_thread(self._store.save, self._services.saved())
            except OSError as error:
                reason = f"the file {self._store.path} cannot be written: {error.strerror}"
                raise faults.Busy(reason) from error

    def _check_free(self, agent: ServiceAgent, uri: str) -> None:
        agent.check_free(uri)
        found = self._services.describe(uri)
        if found is not None and found["state"] == "running" and uri not in agent:
            raise AlreadyRunning(f"{uri} is already running ({found['instance']}); stop that job first")
