"""Virtual sensors in a TOML file: the setting `sensors.templates`.

Each virtual sensor is a table `[virtual.NAME]`; the fields are those of the JSON form. The file may have
tables of physical sensors beside, so that one file can describe both.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from hpwsn.errors import HpwsnError
from hpwsn.sensors.physical.physical_sensor import SensorRefused
from hpwsn.sensors.templates.template import VirtualTemplate, parse_template

_TABLES = ("virtual", "sensors")


class TemplatesFileRefused(HpwsnError):
    """The file cannot be used; the text names the virtual sensor and what is wrong with it."""


def load_templates(path: Path) -> list[VirtualTemplate]:
    """The virtual sensors of a file, in its order."""
    try:
        return parse_templates(path.read_text("utf-8"))
    except OSError as error:
        raise TemplatesFileRefused(f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise TemplatesFileRefused(f"is not a text in UTF-8: {error}") from error
    except SensorRefused as error:
        raise TemplatesFileRefused(f"cannot be used: {error}") from error


def parse_templates(text: str) -> list[VirtualTemplate]:
    """The virtual sensors of a TOML text; SensorRefused names the one that is not valid."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise SensorRefused(f"it is not TOML: {error}") from error
    for name in document:
        if name not in _TABLES:
            raise SensorRefused(f"the table {name!r} is unknown; write [virtual.NAME]")
    tables = document.get("virtual", {})
    if not isinstance(tables, dict):
        raise SensorRefused(f"virtual is {tables!r}; write tables [virtual.NAME]")
    found = []
    for name, table in tables.items():
        try:
            found.append(parse_template(name, table))
        except SensorRefused as error:
            raise SensorRefused(f"virtual sensor {name!r}: {error}") from error
    return found
