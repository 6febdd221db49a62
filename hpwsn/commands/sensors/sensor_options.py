"""Options that several actions of `hpwsn sensors` have, as argparse types."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from hpwsn.errors import BadArguments


def add_selection_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose physical sensors."""
    parser.add_argument("--kind", metavar="KIND", help="sensors of this kind")
    parser.add_argument(
        "--area",
        type=area,
        metavar="WEST,SOUTH,EAST,NORTH",
        help="sensors in this area, in degrees; west: --area=-1,51,0,52",
    )


def add_sensor_argument(parser: argparse.ArgumentParser, about: str) -> None:
    """Add the id of a sensor, as an argument or as --sensor."""
    parser.add_argument("id", nargs="?", metavar="ID", help=about)
    parser.add_argument("--sensor", metavar="ID", help="the same, as an option")


def add_registration_option(parser: argparse.ArgumentParser) -> None:
    """Add the registration that a node with registrations.required wants of publishers."""
    parser.add_argument(
        "--registration",
        metavar="ID",
        help="publish as this registered publisher, where the node requires it",
    )


def sensor_of(arguments: argparse.Namespace) -> str:
    """The id of add_sensor_argument; BadArguments unless it is given once."""
    given = {each for each in (arguments.id, arguments.sensor) if each is not None}
    if len(given) != 1:
        raise BadArguments("give the id of one sensor, such as weather-1; `hpwsn sensors list` has all")
    sensor: str = given.pop()
    return sensor


def area(text: str) -> str:
    """An area in degrees, as the node reads it."""
    from hpwsn.sensors.physical.physical_sensor import SensorRefused
    from hpwsn.sensors.physical.selection import parse_area

    try:
        parse_area(text)
    except SensorRefused as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def instant(text: str) -> datetime:
    """A time in RFC 3339, or `now`."""
    if text == "now":
        return datetime.now(UTC)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; write 2026-01-31T12:00:00Z, or now")
    return found.astimezone(UTC)


def share(text: str) -> float:
    """A number from 0 to 1."""
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 1")
    return found


def whole_number(text: str) -> int:
    """A whole number above 0."""
    if not (text.isascii() and text.isdecimal() and len(text) < 19 and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def positive_seconds(text: str) -> float:
    """A number of seconds above 0, at most ten years."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0.001 <= found <= 315_576_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0.001 to 315576000")
    return found
