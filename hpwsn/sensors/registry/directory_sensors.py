"""The sensors of a directory: a registry follows them, and writes to it if an account for edits is set.

A sensor of the directory is registered as its entry says, and removed with it. Other sensors of the registry
stay as they are. Which ones the directory had is in the journal, so that those that are removed while the
node is down, or cannot reach the directory, are removed later. Without an account for edits, a sensor of the
directory can only be changed there.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Collection, Iterable
from typing import Any, cast

from hpwsn.background import in_thread
from hpwsn.errors import HpwsnError, JournalUnavailable
from hpwsn.journal.journal import Journal
from hpwsn.sensors.physical.physical_sensor import PhysicalSensor, SensorRefused
from hpwsn.sensors.physical.units import PintMissing
from hpwsn.sensors.registry.sensor_entries import SensorChange, SensorMirror, attributes_of, dn_of
from hpwsn.sensors.registry.sensor_registry import RegistryFull, SensorRegistry, check_units
from hpwsn.topics.directory.directory import TopicDirectoryError
from hpwsn.topics.directory.entry_directory import EntryDirectory, EntryWriter
from hpwsn.topics.tree.declarations import Report

log = logging.getLogger(__name__)

KIND = "directory-sensor"
"""The kind of the journal's documents, which have only names."""
AGAIN = 10.0
"""Seconds until the directory is read again after the journal refused its sensors."""


class ReadOnlySensor(HpwsnError):
    """A sensor of the directory is to be changed, and the node only reads the directory."""

    def __init__(self, sensor_id: str) -> None:
        super().__init__(
            f"the sensor {sensor_id!r} is in the directory, which this node only reads; change it there,"
            " or set topics.edit_bind_dn"
        )


class DirectorySensors:
    """Connects one directory with one registry."""

    def __init__(
        self, directory: EntryDirectory, registry: SensorRegistry, journal: Journal, *, writes: bool
    ) -> None:
        self._directory = directory
        self._registry = registry
        self._journal = journal
        self._writes = writes
        self._mirror = SensorMirror()
        self._known: set[str] = set()
        """The sensors that are, or were, in the directory."""
        self._refused: dict[str, str] = {}
        """Sensors with a valid entry that cannot be registered, and why."""
        self._reports: asyncio.Queue[Report] = asyncio.Queue()
        self._first = asyncio.Event()
        self._last: Report | None = None
        registry.directory = self

    def restore(self, names: Iterable[str]) -> None:
        """Take up which sensors the directory had."""
        self._known = set(names)

    async def start(self, wait: float) -> None:
        """Follow the directory; wait for its sensors, but not longer than some seconds."""
        self._loop = asyncio.get_running_loop()
        self._watch = self._directory.watch(self._mirror, self._from_thread)
        self._watch.start()
        self._run = self._loop.create_task(self._apply_all())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self._first.wait()

    async def close(self) -> None:
        """Follow the directory no longer."""
        await asyncio.to_thread(self._watch.close)
        self._run.cancel()
        await asyncio.wait([self._run])

    def reload(self) -> None:
        """Read the directory now."""
        self._watch.reload()

    def warnings(self) -> list[str]:
        """What an operator must see to."""
        last = self._last
        if last is None:
            return ["the directory of the sensors has not answered yet; the sensors do not change"]
        found = [] if last.problem is None else [f"{last.problem}; the sensors do not change"]
        skipped = [*last.skipped, *self._refused.values()]
        if skipped:
            found.append(f"{len(skipped)} entries are not sensors, such as {skipped[0]}")
        return found

    # Writing, for the registry

    async def put(self, sensors: Collection[PhysicalSensor]) -> None:
        """Write the entries of sensors, all or none, if the node may; else none may be in the directory."""
        if not self._writes:
            for sensor in sensors:
                self._check_free(sensor.id)
            return
        await in_thread(self._write, list(sensors))

    async def remove(self, sensor_id: str) -> None:
        """Delete the entry of a sensor, if it has one."""
        if not self._writes:
            self._check_free(sensor_id)
        elif (dn := self._mirror.dn_of(sensor_id)) is not None:
            await in_thread(self._delete, dn)

    def _check_free(self, sensor_id: str) -> None:
        if sensor_id in self._known:
            raise ReadOnlySensor(sensor_id)

    def _write(self, sensors: list[PhysicalSensor]) -> None:
        had = {sensor.id for sensor in sensors if self._mirror.dn_of(sensor.id) is not None}
        done: list[PhysicalSensor] = []
        with self._directory.writing() as entries:
            try:
                for sensor in sensors:
                    entries.put(self._dn_of(sensor.id), attributes_of(sensor))
                    done.append(sensor)
            except TopicDirectoryError:
                with contextlib.suppress(TopicDirectoryError):
                    for sensor in reversed(done):
                        self._undo(entries, sensor, sensor.id in had)
                raise

    def _undo(self, entries: EntryWriter, sensor: PhysicalSensor, had: bool) -> None:
        before = self._registry.get(sensor.id)
        if before is None or not had:
            entries.delete(self._dn_of(sensor.id))
        else:
            entries.put(self._dn_of(sensor.id), attributes_of(before))

    def _delete(self, dn: str) -> None:
        with self._directory.writing() as entries:
            entries.delete(dn)

    def _dn_of(self, sensor_id: str) -> str:
        return self._mirror.dn_of(sensor_id) or dn_of(sensor_id, self._directory.base)

    # Following

    def _from_thread(self, report: Report) -> None:
        # The watcher changes the mirror, so that what a report needs of it is taken here.
        names = self._mirror.names() if report.whole else None
        with contextlib.suppress(RuntimeError):  # the event loop has ended
            self._loop.call_soon_threadsafe(self._reports.put_nowait, _with_names(report, names))

    async def _apply_all(self) -> None:
        while True:
            report = await self._reports.get()
            while True:
                try:
                    await self._apply(report)
                    break
                except JournalUnavailable as error:
                    log.error("the sensors of the directory are not registered: %s; trying again", error)
                except Exception:
                    log.exception("cannot apply a change of the sensors in the directory")
                    break
                await asyncio.sleep(AGAIN)
            self._first.set()

    async def _apply(self, report: Report) -> None:
        self._note(report)
        if report.change is None:
            return
        change, names = cast(tuple[SensorChange, frozenset[str] | None], report.change)
        removed = set(change.removed) if names is None else self._known - names
        changed = await self._register(change.changed)
        for sensor_id in removed:
            await self._registry.remove(sensor_id, from_directory=True)
            self._refused.pop(sensor_id, None)
        await self._journal.delete_documents(KIND, removed)
        self._known -= removed
        if changed or removed:
            log.info("sensors of the directory: %d changed, %d removed", changed, len(removed))

    async def _register(self, sensors: Collection[PhysicalSensor]) -> int:
        """Register those that are new or changed; how many these are."""
        wrong = await in_thread(_with_wrong_units, sensors)
        for sensor in sensors:
            self._refused.pop(sensor.id, None)
            if (error := wrong.get(sensor.id)) is not None:
                self._refuse(sensor, error)
        new = [each for each in sensors if each.id not in wrong and self._registry.get(each.id) != each]
        names = {sensor.id for sensor in sensors} - self._known
        await self._journal.put_documents(KIND, dict.fromkeys(names, b""))
        self._known |= names
        try:
            await self._registry.put(new, from_directory=True)
        except RegistryFull:
            for sensor in new:
                try:
                    await self._registry.put([sensor], from_directory=True)
                except RegistryFull as error:
                    self._refuse(sensor, error)
        return len(new)

    def _refuse(self, sensor: PhysicalSensor, error: Exception) -> None:
        self._refused[sensor.id] = f"{sensor.id}: {error}"
        log.warning("the sensor %s of the directory is not registered: %s", sensor.id, error)

    def _note(self, report: Report) -> None:
        last, self._last = self._last, report
        before = None if last is None else last.problem
        if report.problem is not None and report.problem != before:
            log.warning("%s", report.problem)
        elif report.problem is None and before is not None:
            log.warning("the directory of the sensors is reachable again")
        for entry in set(report.skipped) - set(() if last is None else last.skipped):
            log.warning("not a sensor: %s", entry)


def _with_wrong_units(sensors: Iterable[PhysicalSensor]) -> dict[str, Exception]:
    """Why sensors cannot be registered, by their ids."""
    wrong: dict[str, Exception] = {}
    for sensor in sensors:
        try:
            check_units([sensor])
        except (SensorRefused, PintMissing) as error:
            wrong[sensor.id] = error
    return wrong


def _with_names(report: Report, names: frozenset[str] | None) -> Report:
    change: Any = None if report.change is None else (report.change, names)
    return Report(change, report.whole, report.problem, report.skipped, report.request)
