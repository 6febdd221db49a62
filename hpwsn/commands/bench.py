"""`hpwsn bench`: the benchmarks of the checkout that this is installed from.

They need what only a checkout has, the load generators and the servers to be measured against, so an
installation without one says where they are instead.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from hpwsn.errors import HpwsnError

Subparsers = argparse._SubParsersAction

_EXAMPLES = """\
examples:
  hpwsn bench                        what there is
  hpwsn bench notify push
  hpwsn bench end-to-end --quick
  hpwsn bench all                    all of them, and the tables of docs/performance.md
"""
_OPTIONS = {
    "--seconds": "time for each measurement",
    "--rounds": "how often each is measured",
}
_SCRIPTS = Path(__file__).parents[2] / "scripts"


def add_bench_parser(commands: "Subparsers[argparse.ArgumentParser]") -> None:
    """Add the command to the parser of `hpwsn`."""
    parser = commands.add_parser(
        "bench",
        help="measure this broker on this machine",
        description="Runs benchmarks beside what they are measured against.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="a benchmark, or all; none prints the list")
    parser.add_argument("--quick", action="store_true", help="short and small")
    for option, about in _OPTIONS.items():
        parser.add_argument(option, help=about)
    parser.add_argument("--output", type=Path, default=Path("build/bench"), help="folder for JSON and plots")
    parser.set_defaults(handler=_bench)


def _bench(arguments: argparse.Namespace) -> int:
    if not (_SCRIPTS / "benchmarks").is_dir():
        raise HpwsnError(
            "benchmarks are in the source checkout, not in an installation: clone the repository and run"
            " scripts/bench there"
        )
    command = [sys.executable, "-m", "benchmarks", *_script_arguments(arguments)]
    # Where it runs decides where it, and what it starts, finds the benchmarks.
    return subprocess.run(command, cwd=_SCRIPTS).returncode


def _script_arguments(arguments: argparse.Namespace) -> list[str]:
    """The arguments as scripts/bench knows them."""
    given = [*arguments.names, "--output", str(arguments.output.absolute())]
    given += ["--quick"] if arguments.quick else []
    for option in _OPTIONS:
        value = getattr(arguments, option.removeprefix("--"))
        given += [] if value is None else [option, value]
    return given
