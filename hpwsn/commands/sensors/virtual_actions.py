"""`hpwsn sensors virtual`: lists, shows, defines and removes virtual sensors of a node.

`define` takes a TOML file with tables `[virtual.NAME]`, as `sensors.templates` has them, or describes one
virtual sensor by options. The node checks definitions.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Mapping
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
from hpwsn.commands.sensors.sensor_options import area, positive_seconds, whole_number
from hpwsn.errors import BadArguments, HpwsnError

COMBINATIONS = ("mean", "median", "min", "max", "sum", "count", "last")
SILENCES = ("skip", "null", "hold")
ONE = "list this virtual sensor only"
_PLAIN = (
    "quantity",
    "combine",
    "every",
    "lateness",
    "quorum",
    "silence",
    "outliers",
    "hysteresis",
    "text",
)
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_COLUMNS = ("name", "state", "kind", "tags", "area", "quantity", "combine", "every")
_EXAMPLES = """\
  hpwsn sensors virtual
  hpwsn sensors virtual define warmth --kind weather --quantity temperature --combine mean --every 10s
  hpwsn sensors virtual define --file templates.toml
  hpwsn sensors virtual show warmth
  hpwsn sensors virtual remove warmth
"""
_DEFINE = """\
  hpwsn sensors virtual define warmth --kind weather --quantity temperature --combine mean --every 10s
  hpwsn sensors virtual define heat --kind weather --quantity temperature --combine max --every 1m \\
      --band normal:-20:30 --band hot:30: --hysteresis 1 --text '{name}: {value} {unit}, {states}'
  hpwsn sensors virtual define --file templates.toml
"""
_Subparsers = argparse._SubParsersAction  # the return type of add_subparsers has no public name


def add_virtual_parser(actions: _Subparsers[argparse.ArgumentParser]) -> None:
    """Add the action `virtual` with its own actions; without one it lists."""
    about = "list, show, define or remove virtual sensors"
    parser = add_command(actions, "virtual", about, _EXAMPLES)
    parser.add_argument("--sensor", metavar="NAME", help=ONE)
    add_node_options(parser)
    parser.set_defaults(handler=_list)
    nested = parser.add_subparsers(title="actions", metavar="ACTION", required=False)
    listing = add_command(nested, "list", "list virtual sensors", "  hpwsn sensors virtual list --json\n")
    listing.add_argument("--sensor", metavar="NAME", default=argparse.SUPPRESS, help=ONE)
    listing.set_defaults(handler=_list)
    show = add_command(nested, "show", "show a virtual sensor", "  hpwsn sensors virtual show warmth\n")
    show.set_defaults(handler=_show)
    define = add_command(nested, "define", "define virtual sensors, or replace their definitions", _DEFINE)
    _add_definition_options(define)
    define.set_defaults(handler=_define)
    remove = add_command(
        nested, "remove", "remove a virtual sensor", "  hpwsn sensors virtual remove warmth\n"
    )
    remove.set_defaults(handler=_remove)
    for action in (show, remove):
        action.add_argument("name", metavar="NAME", help="the virtual sensor")
    for action in (listing, show, define, remove):
        _add_node_options_again(action)


def _add_node_options_again(parser: argparse.ArgumentParser) -> None:
    """Add the options of the node so that they keep the values given before the action."""
    before = set(parser._actions)
    add_node_options(parser)
    for option in set(parser._actions) - before:
        option.default = argparse.SUPPRESS


def _add_definition_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="its name; its topic is virtual:NAME")
    parser.add_argument("--file", metavar="FILE", help="definitions in TOML, instead of all other options")
    members = parser.add_argument_group("its physical sensors")
    members.add_argument("--kind", metavar="KIND", help="of this kind")
    members.add_argument("--tag", action="append", metavar="TAG", help="with this tag; may be repeated")
    members.add_argument("--area", type=area, metavar="WEST,SOUTH,EAST,NORTH", help="in this area")
    result = parser.add_argument_group("how their readings become one value")
    result.add_argument("--quantity", metavar="NAME", help="the quantity")
    result.add_argument("--combine", choices=COMBINATIONS, help="default: mean")
    result.add_argument("--every", type=duration, metavar="TIME", help="how often, such as 10s or 5m")
    result.add_argument(
        "--lateness", type=duration, metavar="TIME", help="wait for late readings (default: 1s)"
    )
    result.add_argument(
        "--quorum", type=whole_number, metavar="N", help="fewer sensors are silence (default: 1)"
    )
    result.add_argument("--silence", choices=SILENCES, help="what to publish then (default: skip)")
    result.add_argument(
        "--outliers", type=float, metavar="N", help="leave out what is N median deviations from the median"
    )
    result.add_argument("--service", metavar="FILE", help="a stream service in TOML that makes the results")
    text = parser.add_argument_group("bands")
    text.add_argument(
        "--band", action="append", default=[], metavar="NAME:LOW:HIGH", help="LOW or HIGH may be empty"
    )
    text.add_argument("--hysteresis", type=float, metavar="X", help="how far beyond a band its state stays")
    text.add_argument("--text", metavar="TEXT", help="with {name}, {value}, {unit} and {states}")


def duration(text: str) -> float:
    """A time as seconds: a number, or a number with ms, s, m, h or d."""
    unit = next((unit for unit in ("ms", "s", "m", "h", "d") if text.endswith(unit)), "s")
    try:
        return positive_seconds(str(float(text.removesuffix(unit)) * _UNITS[unit]))
    except (ValueError, argparse.ArgumentTypeError):
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; write such as 10s, 5m or 1h") from None


def _define(arguments: argparse.Namespace) -> int:
    if (arguments.file is None) == (arguments.name is None):
        raise BadArguments("give the name of one virtual sensor with options, or --file with definitions")
    found = {arguments.name: _of_options(arguments)} if arguments.name else _of_file(arguments.file)
    for number, (name, definition) in enumerate(found.items(), start=1):
        try:
            request("PUT", address(arguments, "virtual", name), definition, ca=arguments.ca)
        except HpwsnError as error:
            done = f" ({number - 1} of {len(found)} definitions are stored)" if len(found) > 1 else ""
            raise type(error)(f"{name}: {error}{done}") from None
    if arguments.json:
        print(dump({"defined": list(found)}))
    else:
        print("\n".join(f"defined {name}; its topic is virtual:{name}" for name in found))
    return 0


def _of_options(arguments: argparse.Namespace) -> dict[str, Any]:
    given = {
        "kind": arguments.kind,
        "tags": arguments.tag,
        "area": None if arguments.area is None else [float(end) for end in arguments.area.split(",")],
        **{name: getattr(arguments, name) for name in _PLAIN},
        "bands": [_band(each) for each in arguments.band] or None,
        "service": None if arguments.service is None else _text_of(arguments.service),
    }
    return {name: value for name, value in given.items() if value is not None}


def _band(text: str) -> dict[str, Any]:
    parts = text.split(":")
    try:
        name, low, high = parts
        ends = {end: float(value) for end, value in (("low", low), ("high", high)) if value}
    except ValueError:
        raise BadArguments(
            f"--band {text!r}: write NAME:LOW:HIGH, such as normal:-20:30 or hot:30:"
        ) from None
    return {"name": name, **ends}


def _of_file(file: str) -> dict[str, dict[str, Any]]:
    try:
        found = tomllib.loads(_text_of(file))
    except ValueError as error:
        raise HpwsnError(f"{file} is not TOML: {error}; write tables [virtual.NAME]") from None
    definitions = found.get("virtual")
    if not isinstance(definitions, dict) or not all(isinstance(each, dict) for each in definitions.values()):
        raise HpwsnError(f"{file} has no virtual sensors; write a table [virtual.NAME] for each")
    return definitions


def _text_of(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadArguments(f"{file} cannot be read: {reason}; give a TOML file") from None


def _list(arguments: argparse.Namespace) -> int:
    if arguments.sensor is not None:
        one = request("GET", address(arguments, "virtual", arguments.sensor), ca=arguments.ca)
        answer: dict[str, Any] = {"items": [one], "next": None, "total": 1}
    else:
        answer = items(arguments, "virtual")
    if arguments.json:
        print(dump(answer))
    else:
        print(table([_row(each) for each in answer["items"]], _COLUMNS, "no virtual sensors"))
    return 0


def _row(virtual: Mapping[str, Any]) -> dict[str, Any]:
    """A virtual sensor as a row of the table."""
    every = virtual.get("every")
    return {**virtual, "every": f"{every:g} s" if isinstance(every, int | float) else every}


def _show(arguments: argparse.Namespace) -> int:
    answer = request("GET", address(arguments, "virtual", arguments.name), ca=arguments.ca)
    print(dump(answer) if arguments.json else fields(answer))
    return 0


def _remove(arguments: argparse.Namespace) -> int:
    request("DELETE", address(arguments, "virtual", arguments.name), ca=arguments.ca)
    print(dump({"removed": arguments.name}) if arguments.json else f"removed {arguments.name}")
    return 0
