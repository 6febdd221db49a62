"""The parts of a node for physical and virtual sensors: created, connected to the other parts, started.

This is the only place that joins hpwsn.sensors with the broker and the doors. A node without sensors has
nothing of it running, and loads no library for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiohttp import web

from hpwsn.background import in_thread
from hpwsn.door.rest.sensors.sensors_door import SensorsDoor
from hpwsn.errors import HpwsnError, JournalUnavailable, SettingError
from hpwsn.journal.store.records import Recovered
from hpwsn.logs import counted
from hpwsn.sensors.registry.sensor_registry import KIND, RegistryFull, SensorRegistry
from hpwsn.sensors.registry.sensors_file import SensorsFileRefused, load_sensors

if TYPE_CHECKING:
    from hpwsn.node.node_parts import Parts

log = logging.getLogger(__name__)

TIMES_AT_ONCE = 1000
"""Sensors whose last report is looked up in the log with one query after a restart."""


class SensorParts:
    """The connected parts of one node for sensors, in the order in which they are built and started."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.settings = parts.config.sensors
        self.registry = SensorRegistry(parts.journal, limit=self.settings.limit, clock=parts.clock)
        self._reloading: asyncio.Task[None] | None = None

    def restore(self, recovered: Recovered) -> None:
        """Restore the state of the journal, before anything runs; the tree has its current messages."""
        self.registry.restore(recovered.documents.get(KIND, {}))

    async def start(self, running: AsyncExitStack) -> None:
        """Start what runs in the background, once the backbone takes notifications; doors are not open.

        `running` stops it in the opposite order, before the deliveries, the backbone and the journal.
        """
        await self._note_last_reports()
        if self.settings.file:
            await self._register_file(self.settings.file)

    def open_doors(self, app: web.Application) -> None:
        """Add the addresses of sensors to the node's web application."""
        server = self._parts.config.server
        app.add_routes(SensorsDoor(self.registry, server.body_limit, server.request_timeout).routes())

    def needed_from(self) -> int | None:
        """The first offset of the log that a part still needs; None if none needs any."""
        needs: Iterable[int | None] = ()
        return min((offset for offset in needs if offset is not None), default=None)

    def problems(self) -> dict[str, str | None]:
        """Why the node is not ready, by the part that is the reason; None where there is no reason."""
        return {}

    def figures(self) -> dict[str, Any]:
        """The figures of /status, `sensors`."""
        return {"physical": len(self.registry), "virtual": 0, "readings": 0, "rejected": {}}

    def reload(self) -> None:
        """Read the files again after SIGHUP; what cannot be used is logged and changes nothing."""
        self._reloading = asyncio.get_running_loop().create_task(self._reload())

    async def _reload(self) -> None:
        try:
            if self.settings.file:
                await self._register_file(self.settings.file)
        except HpwsnError as error:
            log.error("%s", error)

    async def _register_file(self, file: str) -> None:
        """Register the sensors of a file that are new or changed; others stay as they are."""
        try:
            found = await in_thread(load_sensors, Path(file))
            changed = [sensor for sensor in found if self.registry.get(sensor.id) != sensor]
            await self.registry.put(changed)
        except SensorsFileRefused as error:
            raise SettingError("sensors.file", file, str(error)) from error
        except RegistryFull as error:
            raise SettingError("sensors.file", file, f"cannot be used: {error}") from error
        except JournalUnavailable as error:
            log.error("the sensors of %s are not registered: %s; send SIGHUP to try again", file, error)
            return
        if changed:
            log.info("registered %s from %s", counted(len(changed), "sensor"), file)

    async def _note_last_reports(self) -> None:
        """Take the time of each sensor's current message as that of its last report."""
        tree, journal, registry = self._parts.tree, self._parts.journal, self.registry
        known = ((tree.current(sensor.topic), sensor.id) for sensor in registry)
        current = {offset: sensor_id for offset, sensor_id in known if offset is not None}
        offsets = list(current)
        for at in range(0, len(offsets), TIMES_AT_ONCE):
            for offset, time in (await journal.times(offsets[at : at + TIMES_AT_ONCE])).items():
                registry.reported_before(current[offset], time)
