"""Physical sensors, an intake and running virtual sensors in virtual time, with all results at hand.

The log stands between intake and windows in a node; here a commit follows a request at once.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hpwsn.broker.admission.admission import Source
from hpwsn.notification import Run
from hpwsn.sensors.intake.committed_readings import CommittedReadings
from hpwsn.sensors.intake.intake import Intake, IntakeLimits, Taken
from hpwsn.sensors.intake.rejected_readings import RejectedReadings
from hpwsn.sensors.readings.known_times import KnownTimes
from hpwsn.sensors.readings.reading import Reading
from hpwsn.sensors.registry.sensor_registry import SensorRegistry
from hpwsn.sensors.templates.result import Result
from hpwsn.sensors.templates.template import VirtualTemplate, parse_template
from hpwsn.sensors.virtual.last_results import LastResults
from hpwsn.sensors.virtual.running_sensors import RunningSensors
from hpwsn.sensors.virtual.service_jobs import ServiceJobs
from hpwsn.topics.tree.tree import TopicTree
from hpwsn_client.wsn.topics.topic_expressions import Topic

START = 20_717 * 86_400_000
"""Milliseconds since 1970 at which the virtual time begins: midnight, and so the begin of most windows."""


class Published:
    """In place of the publisher: what would be published, with the time in milliseconds."""

    def __init__(self, field: Field) -> None:
        self._field = field
        self.results: list[Result] = []
        self.at: list[int] = []

    def publish(self, results: Iterable[tuple[Topic, Result]]) -> None:
        for topic, result in results:
            assert str(topic) == f"virtual:{result.sensor}"
            self.results.append(result)
            self.at.append(self._field.now())

    async def close(self) -> None:
        """Nothing waits."""


class Field:
    """A node's sensors; must be made in a running loop."""

    def __init__(self, *sensors: dict[str, Any], room: int = 10_000, ahead: float = 300.0) -> None:
        loop = asyncio.get_running_loop()
        self._begin = loop.time()
        self.registry = SensorRegistry(None, limit=1000, clock=self.clock)  # type: ignore[arg-type]
        documents = {each["id"]: json.dumps(each).encode() for each in sensors}
        self.registry.restore(documents)
        assert len(self.registry) == len(sensors)
        self.published = Published(self)
        self.told: list[tuple[str, list[str]]] = []
        """The members of virtual sensors, whenever they were told."""
        self.past: list[Reading] = []
        """What the history has."""
        self.asked: list[tuple[set[str], int, int]] = []
        """What the history was asked for."""
        self.tree: TopicTree[Any] = TopicTree()
        self.jobs = ServiceJobs(None)
        self.last = LastResults(None, self.tree)  # type: ignore[arg-type]
        self.running = RunningSensors(
            self.registry,
            self.last,
            self.published,  # type: ignore[arg-type]
            self.jobs,
            clock=self.clock,
            room=room,
            ahead=ahead,
        )
        self.running.past.ask = self._past
        self.running.members_changed.add(lambda name, members: self.told.append((name, sorted(members))))
        self.registry.changed.add(self.running.sensor_changed)
        self._committed = CommittedReadings()
        self._committed.taken.add(self.running.take)
        self._next = 1
        self.intake = Intake(
            self.registry,
            self._publish,
            limits=IntakeLimits(max_age=86_400, max_ahead=ahead, at_once=10_000, auto_register=False),
            times=KnownTimes(),
            rejected=RejectedReadings(Path("unused"), kept=0, clock=self.clock),
            clock=self.clock,
        )

    def clock(self) -> float:
        return START / 1000 + asyncio.get_running_loop().time() - self._begin

    def now(self) -> int:
        return round(self.clock() * 1000)

    def start(
        self, name: str = "hall", *, created: int = START, make_up: bool = False, **fields: Any
    ) -> None:
        self.running.start(template(name, **fields), created / 1000, make_up=make_up)

    async def take(self, *readings: dict[str, Any]) -> Taken:
        return await self.intake.take(readings, "test")

    async def until(self, time: int) -> None:
        """Wait until a time in milliseconds since START."""
        await asyncio.sleep(START / 1000 + time / 1000 - self.clock())

    @property
    def values(self) -> dict[int, float | int | None]:
        """The values that were published, by the end of the window since START."""
        return {result.time - START: result.value for result in self.published.results}

    async def _publish(self, runs: Sequence[Run], source: Source) -> None:
        self._committed.committed(self._next, runs)
        self._next += sum(run.size for run in runs)

    async def _past(self, sensors: Collection[str], begin: int, end: int) -> Iterable[Reading]:
        self.asked.append((set(sensors), begin - START, end - START))
        return [each for each in self.past if each.sensor in sensors and begin <= each.time < end]


def template(name: str = "hall", **fields: Any) -> VirtualTemplate:
    return parse_template(name, {"quantity": "t", "every": 1, "lateness": 0.1, **fields})


def sensor(name: str = "s1", unit: str = "degC", **more: Any) -> dict[str, Any]:
    return {"id": name, "kind": "weather", "quantities": {"t": {"unit": unit}}, **more}


def at(time: int, name: str = "s1", **values: object) -> dict[str, Any]:
    """A raw reading at some milliseconds since START."""
    moment = datetime.fromtimestamp((START + time) // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return {"sensor": name, "time": f"{moment}.{(START + time) % 1000:03d}Z", **values}
