"""`hpwsn dtn simulate`: protocols on the same random networks, as a table, as JSON and as pictures."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpwsn.commands.dtn.parameter_options import add_parameter_options, add_run_options, parameters_of
from hpwsn.commands.dtn.result_output import make_folder, statistics_table, write_text
from hpwsn.commands.operations.operator_api import add_command
from hpwsn.errors import BadArguments

if TYPE_CHECKING:
    from hpwsn.dtn.scenario.simulation_parameters import Parameters

PROTOCOLS = ("cet", "dg", "honest-dg", "epidemic", "spray", "prophet")
ALL = "all"
MOST_PICTURES = 400
_SIMULATE_EXAMPLES = """\
  hpwsn dtn simulate --runs 100
  hpwsn dtn simulate --protocol all --runs 10 --alpha 5 --json
  hpwsn dtn simulate --seed 7 --draw replay       pictures and replay.html, of the first run
"""


def add_simulate_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the action `simulate`."""
    about = "run protocols on the same random networks, and compare what they deliver and cost"
    parser = add_command(actions, "simulate", about, _SIMULATE_EXAMPLES, asks_node=False)
    parser.add_argument(
        "--protocol",
        dest="protocols",
        action="append",
        choices=(*PROTOCOLS, ALL),
        help="what to run; may be repeated (default: cet)",
    )
    add_run_options(parser, 1)
    parser.add_argument("--json", action="store_true", help="print JSON, with every run")
    parser.add_argument(
        "--draw", type=Path, metavar="DIR", help="write pictures and an animation of the first run here"
    )
    parser.add_argument("--pictures", type=int, default=12, metavar="N", help="pictures (default: 12)")
    add_parameter_options(parser)
    parser.set_defaults(handler=_simulate)


def _simulate(arguments: argparse.Namespace) -> int:
    parameters = parameters_of(arguments)
    chosen = list(dict.fromkeys(arguments.protocols or ["cet"]))
    protocols = PROTOCOLS if ALL in chosen else tuple(chosen)
    if not 1 <= arguments.pictures <= MOST_PICTURES:
        raise BadArguments(f"--pictures {arguments.pictures} is not from 1 to {MOST_PICTURES}")
    if arguments.draw is not None:
        make_folder(arguments.draw)
    from hpwsn.commands.dtn.run_pool import perform_all, processors
    from hpwsn.dtn.figures.run_statistics import MEASURES, RunTask, as_json, statistics_of

    tasks = [
        RunTask(parameters, protocol, arguments.seed, run)
        for protocol in protocols
        for run in range(arguments.runs)
    ]
    outcomes = perform_all(tasks, arguments.processes or processors())
    runs = {
        protocol: outcomes[i * arguments.runs : (i + 1) * arguments.runs]
        for i, protocol in enumerate(protocols)
    }
    results = {protocol: statistics_of(found) for protocol, found in runs.items()}
    if arguments.json:
        document = {
            "seed": arguments.seed,
            "runs": arguments.runs,
            "parameters": asdict(parameters),
            "protocols": {
                protocol: {**as_json(found), "each": [one.fields() for one in runs[protocol]]}
                for protocol, found in results.items()
            },
        }
        print(json.dumps(document, indent=2))
    else:
        print(
            f"mean ± standard deviation of {arguments.runs} x {parameters.duration} s, seed {arguments.seed}"
        )
        print(statistics_table(results, MEASURES))
    if arguments.draw is not None:
        _draw(arguments, parameters, protocols[0])
    return 0


def _draw(arguments: argparse.Namespace, parameters: Parameters, protocol: str) -> None:
    from hpwsn.dtn.drawing.replay_frames import record
    from hpwsn.dtn.drawing.replay_page import replay_page
    from hpwsn.dtn.drawing.replay_pictures import picture
    from hpwsn.dtn.figures.run_statistics import HONEST
    from hpwsn.dtn.scenario.simulation_parameters import HONEST_DG
    from hpwsn.dtn.simulation.simulation_state import DG

    if protocol == HONEST:
        changes: dict[str, Any] = dict(HONEST_DG)
        parameters, protocol = replace(parameters, **changes), DG
    replay = record(parameters, protocol, arguments.seed)
    step = max(1, len(replay.frames) // arguments.pictures)
    shown = replay.frames[step - 1 :: step][: arguments.pictures]
    for frame in shown:
        file = arguments.draw / f"second-{frame.time:06d}.svg"
        write_text(file, picture(replay, frame))
    write_text(arguments.draw / "replay.html", replay_page(replay))
    print(f"wrote {len(shown)} pictures and {arguments.draw / 'replay.html'}", file=sys.stderr)
