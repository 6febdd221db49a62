"""The files of `sensors.file` and `sensors.templates`: read at the start of a node, and again on SIGHUP.

What is new or changed in a file is registered or defined, and everything else stays as it is. A file that
cannot be used fails the start with a SettingError. Later it is logged, and changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from hpwsn.background import in_thread
from hpwsn.errors import HpwsnError, JournalUnavailable, SettingError
from hpwsn.logs import counted
from hpwsn.sensors.registry.directory_sensors import ReadOnlySensor
from hpwsn.sensors.registry.sensor_registry import RegistryFull, SensorRegistry
from hpwsn.sensors.registry.sensors_file import SensorsFileRefused, load_sensors
from hpwsn.sensors.virtual.definitions import TooManyDefinitions
from hpwsn.sensors.virtual.templates_file import TemplatesFileRefused, load_templates
from hpwsn.sensors.virtual.virtual_sensors import VirtualSensors
from hpwsn.settings import SensorsSettings
from hpwsn.topics.directory.directory import TopicDirectoryError

log = logging.getLogger(__name__)


class SensorFiles:
    """The files of one node."""

    def __init__(self, settings: SensorsSettings, registry: SensorRegistry, virtual: VirtualSensors) -> None:
        self._settings = settings
        self._registry = registry
        self._virtual = virtual
        self._reloading: asyncio.Task[None] | None = None

    async def load(self) -> None:
        """Read the files; SettingError names one that cannot be used."""
        if self._settings.file:
            await self._register(self._settings.file)
        if self._settings.templates:
            await self._define(self._settings.templates)

    def reload(self) -> None:
        """Read the files again."""
        self._reloading = asyncio.get_running_loop().create_task(self._reload())

    async def _reload(self) -> None:
        try:
            await self.load()
        except HpwsnError as error:
            log.error("%s", error)

    async def _register(self, file: str) -> None:
        try:
            found = await in_thread(load_sensors, Path(file))
            changed = [sensor for sensor in found if self._registry.get(sensor.id) != sensor]
            await self._registry.put(changed)
        except SensorsFileRefused as error:
            raise SettingError("sensors.file", file, str(error)) from error
        except (RegistryFull, ReadOnlySensor) as error:
            raise SettingError("sensors.file", file, f"cannot be used: {error}") from error
        except (JournalUnavailable, TopicDirectoryError) as error:
            log.error("the sensors of %s are not registered: %s; send SIGHUP to try again", file, error)
            return
        if changed:
            log.info("registered %s from %s", counted(len(changed), "sensor"), file)

    async def _define(self, file: str) -> None:
        try:
            found = await in_thread(load_templates, Path(file))
            changed = [template for template in found if self._virtual.get(template.name) != template]
            await self._virtual.put(changed)
        except TemplatesFileRefused as error:
            raise SettingError("sensors.templates", file, str(error)) from error
        except (TooManyDefinitions, ValueError) as error:
            raise SettingError("sensors.templates", file, f"cannot be used: {error}") from error
        except JournalUnavailable as error:
            log.error("the virtual sensors of %s are not defined: %s; send SIGHUP to try again", file, error)
            return
        if changed:
            log.info("defined %s from %s", counted(len(changed), "virtual sensor"), file)
