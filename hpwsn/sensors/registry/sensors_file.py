"""Physical sensors in a TOML file: the setting `sensors.file`.

Each sensor is a table `[sensors.ID]`, or an item `[[sensors]]` with its `id`; the fields are those of the
JSON form. The file may also have tables `[virtual.NAME]`, so that one file can describe both.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hpwsn.errors import HpwsnError
from hpwsn.sensors.physical.physical_sensor import PhysicalSensor, SensorRefused, parse_sensor
from hpwsn.sensors.physical.units import PintMissing
from hpwsn.sensors.registry.sensor_registry import check_units

_TABLES = ("sensors", "virtual")


class SensorsFileRefused(HpwsnError):
    """The file cannot be used; the text names the sensor and what is wrong with it."""


def load_sensors(path: Path) -> list[PhysicalSensor]:
    """The sensors of a file, in its order, with known units."""
    try:
        found = parse_sensors(path.read_text("utf-8"))
        check_units(found)
    except OSError as error:
        raise SensorsFileRefused(f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SensorsFileRefused(f"is not a text in UTF-8: {error}") from error
    except (SensorRefused, PintMissing) as error:
        raise SensorsFileRefused(f"cannot be used: {error}") from error
    return found


def parse_sensors(text: str) -> list[PhysicalSensor]:
    """The sensors of a TOML text; SensorRefused names the sensor that is not valid."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise SensorRefused(f"it is not TOML: {error}") from error
    for name in document:
        if name not in _TABLES:
            raise SensorRefused(f"the table {name!r} is unknown; write [sensors.ID] or [[sensors]]")
    found: dict[str, PhysicalSensor] = {}
    for where, description in _descriptions(document.get("sensors", {})):
        try:
            sensor = parse_sensor(description)
        except SensorRefused as error:
            raise SensorRefused(f"{where}: {error}") from error
        if sensor.id in found:
            raise SensorRefused(f"{where}: the id {sensor.id!r} is there twice; leave one of them out")
        found[sensor.id] = sensor
    return list(found.values())


def _descriptions(tables: object) -> Iterator[tuple[str, Any]]:
    """Each description in the JSON form, with words for its place."""
    if isinstance(tables, dict):
        for name, table in tables.items():
            where = f"sensor {name!r}"
            if not isinstance(table, dict):
                raise SensorRefused(f"{where}: it is {table!r}; write a table [sensors.{name}]")
            if table.get("id", name) != name:
                raise SensorRefused(
                    f"{where}: its id is {table['id']!r}; leave it out, or give the table's name"
                )
            yield where, {"id": name, **table}
    elif isinstance(tables, list):
        for number, table in enumerate(tables, 1):
            named = isinstance(table, dict) and isinstance(table.get("id"), str)
            yield (f"sensor {table['id']!r}" if named else f"sensor number {number}"), table
    else:
        raise SensorRefused(f"sensors is {tables!r}; write tables [sensors.ID] or [[sensors]]")
