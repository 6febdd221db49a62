"""The command `hpwsn sensors` with all its actions, and the options that several of them have."""

from __future__ import annotations

import argparse

from hpwsn.commands.operations.operator_api import add_command
from hpwsn.commands.sensors.feed import add_feed_parser
from hpwsn.commands.sensors.kept_readings import add_reading_parsers
from hpwsn.commands.sensors.physical_actions import add_physical_parsers
from hpwsn.commands.sensors.simulate import add_simulate_parser
from hpwsn.commands.sensors.virtual_actions import add_virtual_parser

_EXAMPLES = """\
  hpwsn sensors simulate weather --sensors 20 --seconds 60 --url http://127.0.0.1:8080/wsn
  hpwsn sensors list --kind weather
  hpwsn sensors virtual define warmth --kind weather --quantity temperature --combine mean --every 10s
  hpwsn sensors history --sensor weather-1
  hpwsn sensors plot --sensor weather-1 --out weather-1.png
"""


def add_sensors_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command `sensors` with its actions."""
    about = "physical and virtual sensors of a node, and their readings"
    parser = add_command(commands, "sensors", about, _EXAMPLES)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    add_physical_parsers(actions)
    add_virtual_parser(actions)
    add_reading_parsers(actions)
    add_simulate_parser(actions)
    add_feed_parser(actions)
