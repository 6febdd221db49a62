"""`hpwsn bench`: runs the benchmarks of the source checkout that HPwsn is installed from.

The benchmarks need load generators and other servers that only a checkout has. Without a checkout, the
command fails with the place of the benchmarks.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from hpwsn.errors import HpwsnError

Subparsers = argparse._SubParsersAction

_EXAMPLES = """\
examples:
  hpwsn bench                        list the benchmarks
  hpwsn bench notify push
  hpwsn bench end-to-end --quick
  hpwsn bench all                    all of them, and the tables of docs/performance.md
"""
_OPTIONS = {
    "--seconds": "time for each measurement",
    "--rounds": "number of measurements",
    "--mps": "topics and fragments print MPS every so many messages; 0 is never (default: 500)",
}
_SCRIPTS = Path(__file__).parents[2] / "scripts"


def add_bench_parser(commands: "Subparsers[argparse.ArgumentParser]") -> None:
    """Add the command to the parser of `hpwsn`."""
    parser = commands.add_parser(
        "bench",
        help="measure this broker on this machine",
        description="Runs benchmarks of this broker and of the systems that it is compared with.",
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
            "the benchmarks are in the source checkout, not in the installed package; clone the repository"
            " and run scripts/bench there"
        )
    command = [sys.executable, "-m", "benchmarks", *_script_arguments(arguments)]
    # The working directory lets this process and its child processes import the benchmarks.
    return subprocess.run(command, cwd=_SCRIPTS).returncode


def _script_arguments(arguments: argparse.Namespace) -> list[str]:
    """The arguments for scripts/bench."""
    given = [*arguments.names, "--output", str(arguments.output.absolute())]
    given += ["--quick"] if arguments.quick else []
    for option in _OPTIONS:
        value = getattr(arguments, option.removeprefix("--"))
        given += [] if value is None else [option, value]
    return given
