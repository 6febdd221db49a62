"""The command `hpwsn dtn` with all its actions.

`collect` and `deliver` carry events between nodes; `simulate` compares protocols, and `figures` repeats the
results of the CET paper.
"""

from __future__ import annotations

import argparse

from hpwsn.commands.dtn.carrier_transfers import add_carrier_parsers
from hpwsn.commands.dtn.figure_runs import add_figures_parser
from hpwsn.commands.dtn.simulate_runs import add_simulate_parser
from hpwsn.commands.operations.operator_api import add_command

_EXAMPLES = """\
  hpwsn dtn collect --url http://valley:8080/wsn --to summit --carrier ranger --out valley.bundle
  hpwsn dtn deliver --url http://summit:8080/wsn valley.bundle
  hpwsn dtn simulate --runs 100
  hpwsn dtn simulate --protocol all --runs 10 --speed-max 10 --json
  hpwsn dtn simulate --protocol cet --protocol dg --seed 7 --draw replay
  hpwsn dtn figures --runs 20 --out figures
"""


def add_dtn_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command `dtn` with its actions."""
    about = "carry events between nodes without links, and simulate delay-tolerant delivery"
    parser = add_command(commands, "dtn", about, _EXAMPLES, asks_node=False)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    add_carrier_parsers(actions)
    add_simulate_parser(actions)
    add_figures_parser(actions)
