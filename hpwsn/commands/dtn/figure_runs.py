"""`hpwsn dtn figures`: the tables and figures of the CET paper, measured, beside what the paper has."""

from __future__ import annotations

import argparse
import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpwsn.commands.dtn.parameter_options import add_run_options
from hpwsn.commands.dtn.result_output import make_folder, write_text
from hpwsn.commands.operations.operator_api import add_command
from hpwsn.errors import BadArguments
from hpwsn_client.commands.completion import print_warning

if TYPE_CHECKING:
    from hpwsn.dtn.figures.experiments import Experiment
    from hpwsn.dtn.figures.figure_tables import Measured

NAMES = (
    "table-2",
    "table-3",
    "figure-7",
    "figure-8",
    "figure-9",
    "figure-10",
    "readings-cet",
    "readings-dg",
    "peers",
)
_EXAMPLES = """\
  hpwsn dtn figures --out figures                      everything, 100 runs for each point
  hpwsn dtn figures --only table-2 --only table-3 --json
  hpwsn dtn figures --only figure-7 --runs 10 --out figures
"""


def add_figures_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the action `figures`."""
    about = "repeat the tables and figures of the CET paper, with the effect of each reading of its text"
    parser = add_command(actions, "figures", about, _EXAMPLES, asks_node=False)
    parser.add_argument(
        "--only", action="append", choices=NAMES, metavar="NAME", help=f"may be repeated: {', '.join(NAMES)}"
    )
    add_run_options(parser, 100)
    parser.add_argument(
        "--duration", type=int, metavar="S", help="length of a run, s (default: the paper's 7200)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="write results.md, results.json and plots here"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.set_defaults(handler=_figures)


def _figures(arguments: argparse.Namespace) -> int:
    if arguments.out is not None:
        make_folder(arguments.out)
    measured = _measure(arguments)
    from hpwsn.dtn.figures.figure_tables import document_of, markdown_of

    document: dict[str, Any] = {
        "seed": arguments.seed,
        "runs": arguments.runs,
        "experiments": {one.experiment.name: document_of(one) for one in measured},
    }
    tables = f"{arguments.runs} runs for each row, seed {arguments.seed}: mean ± standard deviation.\n\n"
    tables += "\n".join(map(markdown_of, measured))
    print(json.dumps(document, indent=2) if arguments.json else tables)
    if arguments.out is not None:
        write_text(arguments.out / "results.json", json.dumps(document, indent=2) + "\n")
        write_text(arguments.out / "results.md", tables)
        _plot(arguments.out, measured)
    return 0


def _measure(arguments: argparse.Namespace) -> list[Measured]:
    """Run what the experiments need, each run once."""
    from dataclasses import replace

    from hpwsn.commands.dtn.run_pool import perform_all, processors
    from hpwsn.dtn.figures.experiments import EXPERIMENTS, points_of
    from hpwsn.dtn.figures.figure_tables import Measured
    from hpwsn.dtn.figures.run_statistics import RunTask, statistics_of
    from hpwsn.dtn.scenario.simulation_parameters import DEFAULTS, WrongParameter

    try:
        base = DEFAULTS if arguments.duration is None else replace(DEFAULTS, duration=arguments.duration)
    except WrongParameter as error:
        raise BadArguments(f"--duration {arguments.duration} is not possible: {error}") from None
    chosen: tuple[Experiment, ...] = tuple(
        one for one in EXPERIMENTS if arguments.only is None or one.name in arguments.only
    )
    points, runs = points_of(chosen, base), arguments.runs
    tasks = [
        RunTask(parameters, protocol, arguments.seed, run)
        for protocol, parameters in points
        for run in range(runs)
    ]
    outcomes = perform_all(tasks, arguments.processes or processors())
    found = {point: statistics_of(outcomes[i * runs : (i + 1) * runs]) for i, point in enumerate(points)}
    return [
        Measured(one, tuple(found[point.protocol, point.parameters(base)] for point in one.points))
        for one in chosen
    ]


def _plot(folder: Path, measured: list[Measured]) -> None:
    sweeps = [one for one in measured if one.experiment.axis]
    if sweeps and find_spec("matplotlib") is None:
        print_warning("no plots without matplotlib; install it with: pip install 'hpwsn[sensors]'")
        sweeps = []
    if sweeps:
        from hpwsn.dtn.drawing.figure_plots import plot

        for one in sweeps:
            write_text(folder / f"{one.experiment.name}.svg", plot(one))
    print(f"wrote results.md, results.json and {len(sweeps)} plots to {folder}", file=sys.stderr)
