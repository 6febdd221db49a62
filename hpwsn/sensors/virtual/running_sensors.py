"""What runs of the virtual sensors: provisioned when somebody needs it, released when nobody does.

When one is provisioned, its open windows get what the past has for them; after a restart also windows that
ended while the node was down. Until then no window of it is closed. One with a service has no windows here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Sequence, Set
from typing import Any

from hpwsn.background import in_slices, in_thread
from hpwsn.listeners import Listeners
from hpwsn.sensors.physical.physical_sensor import PhysicalSensor
from hpwsn.sensors.physical.units import UnitRefused, conversion
from hpwsn.sensors.readings.reading import Reading
from hpwsn.sensors.registry.sensor_registry import SensorRegistry
from hpwsn.sensors.templates.reading_windows import ReadingWindows
from hpwsn.sensors.templates.template import VirtualTemplate
from hpwsn.sensors.virtual.closing_times import ClosingTimes
from hpwsn.sensors.virtual.last_results import LastResults
from hpwsn.sensors.virtual.past_readings import PastReadings
from hpwsn.sensors.virtual.result_publisher import ResultPublisher
from hpwsn.sensors.virtual.running_sensor import RunningSensor
from hpwsn.sensors.virtual.selection_index import SelectionIndex
from hpwsn.sensors.virtual.service_jobs import ServiceJobs
from hpwsn.sensors.virtual.virtual_members import Members, commonest_unit

log = logging.getLogger(__name__)

TOLD_AFTER = 0.1
"""Seconds in which changes of members are told together."""


class RunningSensors:
    """Starts and stops virtual sensors, keeps their members, and publishes their results."""

    def __init__(
        self,
        registry: SensorRegistry,
        results: LastResults,
        publisher: ResultPublisher,
        jobs: ServiceJobs,
        *,
        clock: Callable[[], float],
        room: int,
        ahead: float,
    ) -> None:
        """`room` readings are held for one virtual sensor, with times up to `ahead` seconds from now."""
        self._registry = registry
        self._results = results
        self._publisher = publisher
        self._jobs = jobs
        self._room = room
        self._ahead = round(ahead * 1000)
        self._times: ClosingTimes[RunningSensor] = ClosingTimes(clock, self._close_windows)
        self._members = Members()
        self._selections = SelectionIndex()
        self._running: dict[str, RunningSensor] = {}
        self._untold: dict[str, None] = {}
        self._telling: asyncio.TimerHandle | None = None
        self._finding = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self.take = self._members.take
        """Called with the committed readings, in the order of the log."""
        self.past = PastReadings()
        self.members_changed: Listeners[str, Collection[str]] = Listeners("members of virtual sensors")
        """Called with the name and the members of a running virtual sensor; with none once it is released."""

    @property
    def names(self) -> Set[str]:
        """The names of those that run."""
        return self._running.keys()

    def members(self, name: str) -> Collection[str]:
        """The ids of the members of a running virtual sensor; the caller must not change the collection."""
        return self._members.of(name)

    def windows(self, name: str) -> ReadingWindows:
        """The windows of a virtual sensor that runs."""
        return self._running[name].windows

    def start(self, template: VirtualTemplate, created: float, *, make_up: bool = False) -> None:
        """Run a virtual sensor that was created at some time; one of this name that runs is replaced.

        With `make_up`, windows that ended since its last result, or since it was created, are made up.
        """
        known = self._running.get(template.name)
        if known is not None:
            if known.ready:
                self._close_windows([known], self._times.now())
            self._close(known)
        running = RunningSensor(template, self._times.now(), self._room)
        self._running[template.name] = running
        if template.service:
            self._jobs.want(template.name, template.service)
        else:
            self._jobs.forget(template.name)
            self._selections.add(template.name, template.selection)
            self._spawn(self._provision(running, created, make_up))

    def stop(self, name: str) -> None:
        """Release a virtual sensor, if it runs."""
        running = self._running.pop(name, None)
        if running is not None:
            self._close(running)
            self._jobs.forget(name)
            self._tell_members(name)

    async def close(self) -> None:
        """Stop everything, after results that wait were published; jobs of services go on."""
        self._times.stop()
        if self._telling is not None:
            self._telling.cancel()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._jobs.close()
        await self._publisher.close()

    def sensor_changed(self, id_: str, sensor: PhysicalSensor | None) -> None:
        """Called when a physical sensor was registered, replaced or removed."""
        former = self._members.having(id_)
        now: set[str] = set()
        if sensor is not None:
            for name in self._selections.selecting(sensor):
                running = self._running[name]
                if running.template.quantity in sensor.quantities and self._join(running, sensor):
                    now.add(name)
        for name in former - now:
            self._members.leave(name, id_)
        for name in former ^ now:
            self._tell_members(name)

    def _close(self, running: RunningSensor) -> None:
        running.closed = True
        self._selections.discard(running.name)
        self._members.drop(running.name)

    # Provisioning

    async def _provision(self, running: RunningSensor, created: float, make_up: bool) -> None:
        """Find the members and what the past has for the open windows; then close them as they are due."""
        name = running.name
        try:
            async with self._finding:
                found = await self._candidates(running)
                await _load_units(found, running.template.quantity)
                self._find_members(running, found)
                # Hundreds may start at once: the next one has another turn of the loop.
                await asyncio.sleep(0)
            if not running.closed:
                await self._resume(running, created, make_up)
            await self._look_back(running)
        except Exception:
            log.exception("virtual sensor %s begins without readings of the past", name)
        if not running.closed:
            running.ready = True
            self._times.add(running)

    async def _candidates(self, running: RunningSensor) -> list[PhysicalSensor]:
        """The sensors that are meant; meanwhile some may come and go, of which `sensor_changed` hears."""
        found: list[PhysicalSensor] = []

        def look() -> Iterator[None]:
            for sensor in self._registry.among(running.template.selection):
                if running.template.means(sensor):
                    found.append(sensor)
                yield

        if not running.closed:
            await in_slices(look())
        return found

    def _find_members(self, running: RunningSensor, found: Iterable[PhysicalSensor]) -> None:
        if running.closed:
            return
        template = running.template
        ids = dict.fromkeys([*(sensor.id for sensor in found), *self._members.of(template.name)])
        now = [sensor for sensor in map(self._registry.get, ids) if sensor and template.means(sensor)]
        running.unit = commonest_unit(now, template.quantity)
        for sensor in now:
            self._join(running, sensor)
        self._tell_members(template.name)

    def _join(self, running: RunningSensor, sensor: PhysicalSensor) -> bool:
        """Make a sensor a member; False, and a warning, if its unit does not convert."""
        quantity = running.template.quantity
        unit = sensor.quantities[quantity].unit
        if running.unit is None:
            running.unit = unit
        if self._members.join(running.name, sensor, running.windows, quantity, running.unit):
            return True
        words = "sensor %s is no member of virtual sensor %s: its unit %r of %s does not convert into %r"
        log.warning(words, sensor.id, running.name, unit, quantity, running.unit)
        return False

    async def _resume(self, running: RunningSensor, created: float, make_up: bool) -> None:
        last = await self._results.of(running.template, created)
        since = min(round(created * 1000), running.windows.begin)
        if last is not None:
            running.before = last.before
            since = last.time
        running.windows.resume(since, self._times.now(), make_up=make_up)

    async def _look_back(self, running: RunningSensor) -> None:
        name, members = running.name, self._members.of(running.name)
        if running.closed or not members:
            return
        found = await self.past.of(
            name, frozenset(members), running.windows.begin, lambda: self._times.now() + self._ahead + 1
        )
        if not running.closed:
            await in_slices(self._take_past(name, found))

    def _take_past(self, name: str, found: Iterable[Reading]) -> Iterator[None]:
        for reading in found:
            self._members.take_past(name, reading)
            yield

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Results

    def _close_windows(self, due: Sequence[RunningSensor], now: int) -> None:
        results = [
            (running.template.topic, result) for running in due for result in running.close_windows(now)
        ]
        for _, result in results:
            self._results.note(result)
        self._publisher.publish(results)

    # Members

    def _tell_members(self, name: str) -> None:
        self._untold[name] = None
        if self._telling is None:
            self._telling = asyncio.get_running_loop().call_later(TOLD_AFTER, self._tell)

    def _tell(self) -> None:
        self._telling = None
        untold, self._untold = self._untold, {}
        for name in untold:
            self.members_changed(name, self._members.of(name))


async def _load_units(sensors: Iterable[PhysicalSensor], quantity: str) -> None:
    """Let a thread load pint, which takes long, if units are to be converted."""
    units = {sensor.quantities[quantity].unit for sensor in sensors}
    if len(units) > 1:
        await in_thread(_convert_all, units)


def _convert_all(units: Collection[str]) -> None:
    """Convert each unit into each other once, so that the answers are known."""
    for source in units:
        for target in units:
            with contextlib.suppress(UnitRefused):
                conversion(source, target)
