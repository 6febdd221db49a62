"""The physical sensors that a node knows, by id; the journal keeps them as documents.

A registration is stored when `put` returns, and replaces an earlier one of the same id. A thread checks its
units. Changes are made one after another and to their end, also if the caller is cancelled. So the listeners
of `changed` hear of them in the order in which they are stored.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

from hpwsn.background import in_slices, in_thread
from hpwsn.errors import HpwsnError
from hpwsn.journal.journal import Journal
from hpwsn.listeners import Listeners
from hpwsn.sensors.physical.physical_sensor import PhysicalSensor, SensorRefused, parse_sensor
from hpwsn.sensors.physical.selection import Selection
from hpwsn.sensors.physical.units import UnitRefused, check_unit
from hpwsn.sensors.registry.sensor_reports import SensorReports

log = logging.getLogger(__name__)

KIND = "sensor"
"""The kind of the journal's documents."""

KINDS, TAGS = "kind", "tag"
"""What a group of sensors has in common."""

T = TypeVar("T")


class RegistryFull(HpwsnError):
    """The node has as many physical sensors as it may."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"the node has as many sensors as sensors.limit allows ({limit}); remove some, or raise the limit"
        )


class SensorsOfDirectory(Protocol):
    """A directory that has sensors too, and is changed before the journal."""

    async def put(self, sensors: Collection[PhysicalSensor]) -> None:
        """Write the entries of sensors, all or none; HpwsnError says why they cannot be."""

    async def remove(self, sensor_id: str) -> None:
        """Delete the entry of a sensor, if it has one."""


class SensorRegistry:
    """The registered sensors, in the order of their registration."""

    def __init__(self, journal: Journal, *, limit: int, clock: Callable[[], float]) -> None:
        self._journal = journal
        self._limit = limit
        self._clock = clock
        self._sensors: dict[str, PhysicalSensor] = {}
        self._groups: dict[tuple[str, str], dict[str, PhysicalSensor]] = {}
        """Those of each kind and with each tag."""
        self._reports: dict[str, SensorReports] = {}
        self._sorted: dict[str | None, list[str]] = {}
        """The ids in order, of a kind or of all, until a sensor comes or goes."""
        self._changing = asyncio.Lock()
        self._changes: set[asyncio.Task[Any]] = set()
        self.changed: Listeners[str, PhysicalSensor | None] = Listeners("changed sensors")
        """Called with the id and the sensor, or None if it was removed, once the change is stored."""
        self.directory: SensorsOfDirectory | None = None
        self.wanted: Callable[[str], bool | None] = lambda _: None
        """Whether somebody wants the readings of a sensor on demand; None for others."""

    def get(self, sensor_id: str) -> PhysicalSensor | None:
        """The sensor with this id, or None."""
        return self._sensors.get(sensor_id)

    def __iter__(self) -> Iterator[PhysicalSensor]:
        return iter(self._sensors.values())

    def __len__(self) -> int:
        return len(self._sensors)

    def ids(self, kind: str | None = None) -> Sequence[str]:
        """The ids of a kind, or of all sensors, sorted; the caller must not change the sequence."""
        found = self._sorted.get(kind)
        if found is None:
            group = None if kind is None else (KINDS, kind)
            found = sorted(self._sensors if group is None else self._groups.get(group, ()))
            if group is None or group in self._groups:
                self._sorted[kind] = found
        return found

    def select(self, selection: Selection) -> list[PhysicalSensor]:
        """The sensors that are meant, in the order of their registration."""
        return selection.of(self.among(selection))

    def among(self, selection: Selection) -> Sequence[PhysicalSensor]:
        """The fewest sensors that are known to have all that are meant; some of them may not be meant."""
        groups = [(TAGS, tag) for tag in selection.tags]
        if selection.kind is not None:
            groups.append((KINDS, selection.kind))
        found = min((self._groups.get(group, {}) for group in groups), key=len, default=self._sensors)
        return list(found.values())

    async def put(self, sensors: Sequence[PhysicalSensor], *, from_directory: bool = False) -> None:
        """Register sensors, all or none; of two with the same id, the later one.

        The directory, if there is one, is changed first, unless it is where they are from.

        SensorRefused names a sensor with an unknown unit, PintMissing says that units cannot be checked,
        RegistryFull that there would be too many sensors, and JournalUnavailable that none was stored.
        """
        directory = None if from_directory else self.directory
        await self._to_the_end(self._put({sensor.id: sensor for sensor in sensors}, directory))

    async def remove(self, sensor_id: str, *, from_directory: bool = False) -> bool:
        """Remove a sensor; False if it is unknown. What it has sent stays."""
        return await self._to_the_end(self._remove(sensor_id, None if from_directory else self.directory))

    def restore(self, documents: Mapping[str, bytes]) -> None:
        """Take up the sensors of the journal's documents after a restart."""
        for sensor_id, document in documents.items():
            try:
                self._keep(parse_sensor(json.loads(document)))
            except ValueError as error:  # SensorRefused is one
                log.error("the stored sensor %s is not valid and is left out: %s", sensor_id, error)

    def heard(self, sensor_id: str, now: float) -> None:
        """Note that a reading of a registered sensor was accepted; several at the same time count once."""
        reports = self._reports.get(sensor_id)
        if reports is not None:
            reports.heard(now)

    def reported_before(self, sensor_id: str, time: float) -> None:
        """Note when a sensor last reported before this start."""
        reports = self._reports.get(sensor_id)
        if reports is not None:
            reports.reported_before(time)

    def describe(self, sensor: PhysicalSensor) -> dict[str, Any]:
        """The JSON form of a sensor with its state: a sensor that is told to stop is not silent."""
        reports = self._reports.get(sensor.id) or SensorReports(self._clock())
        wanted = self.wanted(sensor.id)
        state = {
            "last_seen": _moment(reports.last),
            "interval": None if reports.interval is None else round(reports.interval, 3),
            "silent": wanted is not False and reports.is_silent(sensor, self._clock()),
        }
        return {**sensor.document(), "state": state, "wanted": wanted}

    async def _put(self, sensors: Mapping[str, PhysicalSensor], directory: SensorsOfDirectory | None) -> None:
        async with self._changing:
            if not sensors:
                return
            await in_thread(check_units, sensors.values())
            if len(self._sensors.keys() | sensors.keys()) > self._limit:
                raise RegistryFull(self._limit)
            if directory is not None:
                await directory.put(sensors.values())
            documents: dict[str, bytes] = {}
            await in_slices(_encode(sensors.values(), documents))
            await self._journal.put_documents(KIND, documents)
            await in_slices(self._keep_all(sensors.values()))

    def _keep_all(self, sensors: Iterable[PhysicalSensor]) -> Iterator[None]:
        for sensor in sensors:
            self._keep(sensor)
            self.changed(sensor.id, sensor)
            yield

    def _keep(self, sensor: PhysicalSensor) -> None:
        self._drop(sensor.id, sensor)
        if sensor.id not in self._sensors:
            self._sorted.pop(None, None)
        if sensor.id not in self._reports:
            self._reports[sensor.id] = SensorReports(self._clock())
        self._sensors[sensor.id] = sensor
        for group in _groups_of(sensor):
            self._groups.setdefault(group, {})[sensor.id] = sensor
        self._sorted.pop(sensor.kind, None)

    def _drop(self, sensor_id: str, now: PhysicalSensor | None = None) -> None:
        """Take a sensor from its groups, except those that it will have now."""
        former = self._sensors.get(sensor_id)
        for group in _groups_of(former) - _groups_of(now):
            left = self._groups[group]
            del left[sensor_id]
            if not left:
                del self._groups[group]
        if former is not None:
            self._sorted.pop(former.kind, None)

    async def _remove(self, sensor_id: str, directory: SensorsOfDirectory | None) -> bool:
        async with self._changing:
            if sensor_id not in self._sensors:
                return False
            if directory is not None:
                await directory.remove(sensor_id)
            await self._journal.delete_documents(KIND, [sensor_id])
            self._drop(sensor_id)
            self._sorted.pop(None, None)
            del self._sensors[sensor_id], self._reports[sensor_id]
            self.changed(sensor_id, None)
            return True

    async def _to_the_end(self, change: Coroutine[Any, Any, T]) -> T:
        task = asyncio.get_running_loop().create_task(change)
        self._changes.add(task)
        task.add_done_callback(self._changes.discard)
        return await asyncio.shield(task)


def check_units(sensors: Iterable[PhysicalSensor]) -> None:
    """Raise SensorRefused for the first unknown unit; PintMissing without pint."""
    for sensor in sensors:
        for name, quantity in sensor.quantities.items():
            try:
                check_unit(quantity.unit)
            except UnitRefused as error:
                raise SensorRefused(f"sensor {sensor.id!r}, quantity {name!r}: {error}") from None


def _groups_of(sensor: PhysicalSensor | None) -> set[tuple[str, str]]:
    return set() if sensor is None else {(KINDS, sensor.kind), *((TAGS, tag) for tag in sensor.tags)}


def _encode(sensors: Iterable[PhysicalSensor], documents: dict[str, bytes]) -> Iterator[None]:
    for sensor in sensors:
        documents[sensor.id] = json.dumps(sensor.document(), ensure_ascii=False).encode()
        yield


def _moment(time: float | None) -> str | None:
    return None if time is None else datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds")
