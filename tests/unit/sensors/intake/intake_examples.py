"""An intake with its registry in memory, and what it has published."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hpwsn.broker.admission.admission import Source
from hpwsn.listeners import Listeners
from hpwsn.notification import Run
from hpwsn.sensors.intake.intake import Intake, IntakeLimits
from hpwsn.sensors.intake.rejected_readings import RejectedReadings
from hpwsn.sensors.physical.physical_sensor import PhysicalSensor, parse_sensor
from hpwsn.sensors.readings.known_times import KnownTimes
from hpwsn.sensors.readings.reading import Reading
from hpwsn.sensors.readings.reading_run import readings_of

NOW = 1_795_000_000.0
"""2026-11-18T11:06:40Z, in seconds."""
AT_ONCE = 1000


def sensor(name: str, unit: str = "degC", **more: Any) -> PhysicalSensor:
    return parse_sensor(
        {"id": name, "kind": "weather", "quantities": {"t": {"unit": unit, "max": 60}}, **more}
    )


class Sensors:
    """The part of a registry that an intake needs."""

    def __init__(self) -> None:
        self.changed: Listeners[str, PhysicalSensor | None] = Listeners("changed sensors")
        self.registered: dict[str, PhysicalSensor] = {}
        self.puts: list[list[str]] = []
        self.last: dict[str, float] = {}
        self.refusal: Exception | None = None

    def get(self, id: str) -> PhysicalSensor | None:  # noqa: A002
        return self.registered.get(id)

    async def put(self, sensors: Sequence[PhysicalSensor]) -> None:
        await asyncio.sleep(0)
        if self.refusal is not None:
            raise self.refusal
        self.puts.append([each.id for each in sensors])
        for each in sensors:
            self.registered[each.id] = each
            self.changed(each.id, each)

    def heard(self, id: str, now: float) -> None:  # noqa: A002
        self.last[id] = now

    def remove(self, id_: str) -> None:
        del self.registered[id_]
        self.changed(id_, None)


class TestedIntake(Intake):
    """An intake whose publisher obeys the test: `store` may raise, `room` may keep it waiting."""

    __test__ = False

    def __init__(self, folder: Path, *, auto_register: bool = False, kept: int = 100) -> None:
        self.sensors = Sensors()
        self.runs: list[Run] = []
        self.sources: list[Source] = []
        self.store: Callable[[], None] = lambda: None
        self.room = asyncio.Event()
        self.room.set()
        self.waiting = 0
        self.now = NOW
        clock = lambda: self.now  # noqa: E731
        super().__init__(
            self.sensors,
            self._publish_runs,
            limits=IntakeLimits(86_400, 300, AT_ONCE, auto_register),
            times=KnownTimes(),
            rejected=RejectedReadings(folder / "rejected.jsonl", kept=kept, clock=clock),
            clock=clock,
        )

    async def _publish_runs(self, runs: Sequence[Run], source: Source) -> None:
        self.waiting += 1
        await self.room.wait()
        self.waiting -= 1
        self.store()
        self.runs += runs
        self.sources.append(source)

    @property
    def published(self) -> list[Reading]:
        """The readings in order."""
        found = [reading for run in self.runs for reading in readings_of(run)]
        assert None not in found
        return [reading for reading in found if reading is not None]

    async def kept(self) -> list[tuple[str | None, str]]:
        """Sensor and reason of the rejected readings, the oldest first."""
        items, _ = await self.rejected.page(1000)
        return [(item["sensor"], item["reason"]) for item in reversed(items)]
