"""`hpwsn sensors register`, `list`, `show` and `remove`: the physical sensors of a node.

`register` takes a file, in the JSON form of the API or in the TOML form of `sensors.file`, or describes one
sensor by options. The description is checked before anything is sent.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hpwsn.commands.operations.operator_api import (
    add_command,
    add_node_options,
    address,
    dump,
    fields,
    items,
    request,
    table,
)
from hpwsn.commands.sensors.sensor_options import (
    add_selection_options,
    add_sensor_argument,
    positive_seconds,
    sensor_of,
)
from hpwsn.errors import BadArguments, HpwsnError

AT_ONCE = 1000
"""Sensors that are registered in one request."""
_COLUMNS = ("id", "kind", "quantities", "place", "tags", "last seen", "state")
_REGISTER = """\
  hpwsn sensors register sensors.toml
  hpwsn sensors register --sensor roof-1 --kind weather --quantity temperature=degC:-40:60 \\
      --place 116.4,39.9 --tag roof --interval 60
  hpwsn sensors register - <sensors.json
"""
_LIST = """\
  hpwsn sensors list
  hpwsn sensors list --kind weather --tag roof --json
  hpwsn sensors list --area 116,39,117,40
"""


def add_physical_parsers(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the actions for physical sensors."""
    register = add_command(actions, "register", "register sensors, or replace them", _REGISTER)
    _add_description_options(register)
    register.set_defaults(handler=_register)
    listing = add_command(actions, "list", "list sensors with their state", _LIST)
    add_selection_options(listing)
    listing.add_argument("--tag", metavar="TAG", help="sensors with this tag")
    listing.add_argument("--sensor", metavar="ID", help="this sensor only")
    listing.set_defaults(handler=_list)
    show = add_command(actions, "show", "show all fields of a sensor", "  hpwsn sensors show roof-1\n")
    add_sensor_argument(show, "the sensor")
    show.set_defaults(handler=_show)
    remove = add_command(
        actions, "remove", "remove a sensor; its kept readings stay", "  hpwsn sensors remove roof-1\n"
    )
    add_sensor_argument(remove, "the sensor")
    remove.set_defaults(handler=_remove)
    for action in (register, listing, show, remove):
        add_node_options(action)


def _add_description_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help="sensors in TOML or JSON, or - for JSON on stdin"
    )
    one = parser.add_argument_group("one sensor, instead of a file")
    one.add_argument("--sensor", "--id", metavar="ID", help="its id")
    one.add_argument("--kind", metavar="KIND", help="its kind, such as weather")
    one.add_argument(
        "--quantity",
        action="append",
        default=[],
        metavar="NAME=UNIT[:MIN:MAX]",
        help="what it measures; may be repeated",
    )
    one.add_argument(
        "--place", metavar="LONGITUDE,LATITUDE", help="where it is, in degrees; west: --place=-0.5,51"
    )
    one.add_argument("--tag", action="append", default=[], metavar="TAG", help="may be repeated")
    one.add_argument("--interval", type=positive_seconds, metavar="SECONDS", help="between two readings")
    one.add_argument("--owner", metavar="TEXT", help="who answers for it")
    one.add_argument("--gateway", metavar="TEXT", help="by which it reports")
    one.add_argument("--on-demand", action="store_true", help="it can be told to stop while nobody uses it")


def _register(arguments: argparse.Namespace) -> int:
    from hpwsn.sensors.physical.physical_sensor import SensorRefused, parse_sensor

    found = _described(arguments)
    for position, document in enumerate(found, start=1):
        try:
            parse_sensor(document)
        except SensorRefused as error:
            where = f"sensor {position} of {arguments.file}: " if arguments.file else ""
            raise HpwsnError(f"{where}{error}") from None
    register(arguments, found)
    ids = [document["id"] for document in found]
    if arguments.json:
        print(dump({"registered": ids}))
    else:
        print(f"registered {ids[0] if len(ids) == 1 else f'{len(ids)} sensors'}")
    return 0


def register(arguments: argparse.Namespace, documents: Sequence[Mapping[str, Any]]) -> None:
    """Register sensors at the node of the arguments; those with known ids are replaced."""
    for first in range(0, len(documents), AT_ONCE):
        request("POST", address(arguments, "sensors"), documents[first : first + AT_ONCE], ca=arguments.ca)
        if len(documents) > AT_ONCE:
            done = min(first + AT_ONCE, len(documents))
            print(f"registered {done} of {len(documents)} sensors", file=sys.stderr, flush=True)


def _described(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """The sensors of the file, or the one of the options."""
    by_options = arguments.sensor is not None
    if by_options == (arguments.file is not None):
        raise BadArguments("give a file of sensors, or one sensor by --sensor, --kind and --quantity")
    found = [_of_options(arguments)] if by_options else sensors_in(arguments.file)
    if not found:
        raise HpwsnError(f"{arguments.file} has no sensors; see `hpwsn sensors register --help`")
    return found


def sensors_in(file: str) -> list[dict[str, Any]]:
    """The descriptions in a TOML or JSON file; `-` is JSON on standard input."""
    from hpwsn.sensors.physical.physical_sensor import SensorRefused
    from hpwsn.sensors.registry.sensors_file import parse_sensors

    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadArguments(f"{file} cannot be read: {reason}; give a file of sensors") from None
    try:
        if file.endswith(".toml"):
            return [sensor.document() for sensor in parse_sensors(text)]
        found = json.loads(text)
    except SensorRefused as error:
        raise HpwsnError(f"{file}: {error}") from None
    except ValueError as error:
        raise HpwsnError(f"{file} is not JSON: {error}; mend it, or name a TOML file .toml") from None
    return found if isinstance(found, list) else [found]


def _of_options(arguments: argparse.Namespace) -> dict[str, Any]:
    if arguments.kind is None or not arguments.quantity:
        raise BadArguments(
            "a sensor has a kind and quantities; give --kind and --quantity NAME=UNIT[:MIN:MAX]"
        )
    found: dict[str, Any] = {
        "id": arguments.sensor,
        "kind": arguments.kind,
        "quantities": dict(map(_quantity, arguments.quantity)),
        "tags": arguments.tag,
    }
    if arguments.place is not None:
        found["place"] = _place(arguments.place)
    for name in ("interval", "owner", "gateway"):
        if (value := getattr(arguments, name)) is not None:
            found[name] = value
    if arguments.on_demand:
        found["on_demand"] = True
    return found


def _quantity(text: str) -> tuple[str, dict[str, Any]]:
    name, equals, rest = text.partition("=")
    unit, *ends = rest.split(":")
    try:
        bounds = [float(end) if end else None for end in ends]
    except ValueError:
        bounds = [None] * 3
    if not (name and equals) or len(bounds) not in (0, 2):
        raise BadArguments(
            f"--quantity {text!r}: write NAME=UNIT or NAME=UNIT:MIN:MAX, such as t=degC:-40:60"
        )
    found: dict[str, Any] = {"unit": unit}
    found |= {end: bound for end, bound in zip(("min", "max"), bounds, strict=False) if bound is not None}
    return name, found


def _place(text: str) -> dict[str, float]:
    try:
        longitude, latitude = map(float, text.split(","))
    except ValueError:
        raise BadArguments(f"--place {text!r}: write LONGITUDE,LATITUDE, such as 116.4,39.9") from None
    return {"longitude": longitude, "latitude": latitude}


def _list(arguments: argparse.Namespace) -> int:
    if arguments.sensor is not None:
        one = request("GET", address(arguments, "sensors", arguments.sensor), ca=arguments.ca)
        answer: dict[str, Any] = {"items": [one], "next": None, "total": 1}
    else:
        answer = items(arguments, "sensors", kind=arguments.kind, tag=arguments.tag, area=arguments.area)
    if arguments.json:
        print(dump(answer))
    else:
        print(table([_row(each) for each in answer["items"]], _COLUMNS, "no sensors"))
    return 0


def _row(sensor: Mapping[str, Any]) -> dict[str, Any]:
    """A sensor as a row of the table."""
    place, state = sensor.get("place"), sensor.get("state") or {}
    units = [f"{name} ({each.get('unit')})" for name, each in sensor.get("quantities", {}).items()]
    reporting = "silent" if state.get("silent") else "reporting"
    seen = reporting if state.get("last_seen") else "not seen"
    return {
        **sensor,
        "quantities": units,
        "place": f"{place['longitude']:g}, {place['latitude']:g}" if place else None,
        "last seen": state.get("last_seen"),
        "state": "not wanted" if sensor.get("wanted") is False else seen,
    }


def _show(arguments: argparse.Namespace) -> int:
    answer = request("GET", address(arguments, "sensors", sensor_of(arguments)), ca=arguments.ca)
    if arguments.json:
        print(dump(answer))
        return 0
    quantities, state = answer.pop("quantities", {}), answer.pop("state", None) or {}
    rows = [{"quantity": name, **each} for name, each in quantities.items()]
    seen = {"last seen": state.get("last_seen"), "seen every": _seconds(state.get("interval"))}
    declared = {"interval": _seconds(answer["interval"])} if "interval" in answer else {}
    print(fields({**answer, **declared, **seen, "silent": state.get("silent")}))
    print()
    print(table(rows, ("quantity", "unit", "min", "max"), "no quantities"))
    return 0


def _seconds(value: float | None) -> str | None:
    return None if value is None else f"{value:g} s"


def _remove(arguments: argparse.Namespace) -> int:
    sensor = sensor_of(arguments)
    request("DELETE", address(arguments, "sensors", sensor), ca=arguments.ca)
    print(dump({"removed": sensor}) if arguments.json else f"removed {sensor}")
    return 0
