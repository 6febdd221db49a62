"""Runs the stream services of virtual sensors by the node's service agent.

A template names its service by the whole definition. A service of the same uri that was posted by somebody
else, or has another definition, is never stopped or replaced: then the virtual sensor's one cannot start. A
job is started when its virtual sensor gets its first user, and removed with its checkpoint once that is
released; so it begins anew with the next user. After a restart of the node, a job that still runs is kept.
"""

from __future__ import annotations

from hpwsn.background import in_thread
from hpwsn.sensors.physical.physical_sensor import SensorRefused
from hpwsn.streams.agent.definition_check import CheckFailed
from hpwsn.streams.agent.job_rules import JobState
from hpwsn.streams.agent.posted_services import PostedServices
from hpwsn.streams.agent.service_agent import ServiceAgent, ServiceExists
from hpwsn.streams.definition.definition_toml import read_document
from hpwsn.streams.definition.problems import DefinitionError
from hpwsn.streams.registry.service import ServiceRefused
from hpwsn_client.wsn.soap.faults import SoapFault


class VirtualServices:
    """A ServiceHost over the agent."""

    def __init__(self, services: PostedServices, agent: ServiceAgent) -> None:
        self._services = services
        self._agent = agent
        self._topics: dict[str, str] = {}
        """The topics of the services that virtual sensors have started, by uri."""

    async def check(self, text: str, topic: str) -> None:
        """Raise SensorRefused for a service that cannot run here, or whose results are not on the topic."""
        try:
            service = await self._services.check(self._agent, text)
        except (DefinitionError, ServiceRefused, CheckFailed) as error:
            raise SensorRefused(f"service: {error}") from error
        except SoapFault as fault:
            raise SensorRefused(f"service: {fault.reason}") from fault
        if service.topic != topic:
            raise SensorRefused(f"service: its topic is {service.topic}; write topic = {topic!r}")
        if service.uri in self._agent and self._topics.get(service.uri) != topic:
            raise SensorRefused(f"service: this node already runs {service.uri}; give it another uri")

    async def run(self, text: str) -> None:
        """Start a service, if it does not run; certain to be started when this returns."""
        uri = (await self._agent.read(text)).uri
        if uri in self._agent:
            if await self._agent.definition(uri) != text:
                raise ServiceExists(f"this node already runs {uri} with another definition; DELETE it first")
            known = self._agent.summary(uri)
            if known["state"] != JobState.FAILED:
                self._topics[uri] = known["topic"]
                return
        service = await self._services.start(self._agent, text)
        self._topics[uri] = service.topic

    async def stop(self, text: str) -> None:
        """Stop a service, if it runs with this definition, also one that is not allowed any more."""
        (form,) = await in_thread(read_document, text)
        uri = form.definition.uri
        if uri in self._agent and await self._agent.definition(uri) == text:
            await self._services.remove(uri)
        self._topics.pop(uri, None)
