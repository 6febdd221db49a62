"""`scripts/bench [NAME…]`: runs benchmarks and reports them.

Several run in a process each, one after another: one that fails or takes too long is told of at the end, and
takes nothing from the others.
"""

import argparse
import ast
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from benchmarks.frame import Options, Table
from benchmarks.page import places, update_page, update_summary
from benchmarks.report import as_text, read_checks, write
from benchmarks.tools.mps import EVERY
from hpwsn_client.commands.completion import CommandParser, print_error

QUICK = Options(0.25, 2, quick=True)
LONGEST = 240
"""Seconds that one of several may take."""

OF_ITS_OWN = ("browser", "pipeline", "sensors", "streams")
"""Benchmarks with options of their own, which take too long for `all`."""
_HERE = Path(__file__).parent
_NOT_BENCHMARKS = frozenset({"__init__", "__main__", "compare", "frame", "house", "page", "report", "soak"})
_EXAMPLES = """\
examples:
  scripts/bench --list
  scripts/bench notify push
  scripts/bench end-to-end --quick
  scripts/bench topics fragments --mps 500   prints MPS every 500 messages, as the thesis does
  scripts/bench browser --help       the page in a real browser; has options of its own, and is not in `all`
  scripts/bench pipeline --help      Spark beside Kafka; has options of its own, and is not in `all`
  scripts/bench sensors --help       10,000 sensors; has options of its own, and is not in `all`
  scripts/bench streams --help       stream services; has options of its own, and is not in `all`
  scripts/bench all                  those of docs/performance.md; writes its tables and plots
"""


def available() -> dict[str, str]:
    """The benchmarks by name, with what each measures."""
    files = sorted(file for file in _HERE.glob("*.py") if file.stem not in _NOT_BENCHMARKS)
    return {file.stem.replace("_", "-"): _about(file) for file in files}


def _about(file: Path) -> str:
    return (ast.get_docstring(ast.parse(file.read_text("utf-8"))) or "").partition("\n")[0]


def run(name: str, options: Options) -> Table:
    """Runs one benchmark by its name."""
    table: Table = import_module(f"benchmarks.{name.replace('-', '_')}").run(options)
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the benchmarks that were named, or all."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given and given[0] in OF_ITS_OWN:
        status: int = import_module(f"benchmarks.{given[0]}").main(given[1:])
        return status
    asked = _parser().parse_args(given)
    known = available()
    if asked.list or not asked.names:
        print("\n".join(f"{name:14} {about}" for name, about in known.items()))
        return 0
    measured = [name for name in known if name in places() and name not in OF_ITS_OWN]
    names = measured if "all" in asked.names else asked.names
    if unknown := [name for name in names if name not in known]:
        print_error(f"no benchmark {unknown[0]!r}; there are: all, {', '.join(known)}")
        return 2
    asked.page = asked.page or ("all" in asked.names and not asked.quick)
    if asked.mps is None:
        asked.mps = EVERY if len(names) == 1 else 0
    if len(names) == 1:
        _run_one(names[0], _options(asked), asked.output, asked.page)
        return 0
    failed = _run_each(names, asked)
    if "all" in asked.names and asked.page:
        update_summary(
            read_checks(asked.output, [n for n in names if n not in failed]), failed, _options(asked)
        )
    print("".join(f"{name} failed; the lines above say why\n" for name in failed), end="", file=sys.stderr)
    return 1 if failed else 0


def _run_one(name: str, options: Options, output: Path, page: bool) -> None:
    table = run(name, options)
    print(as_text(table), end="\n\n", flush=True)
    files = write(output, name, table, options)
    if page:
        files += update_page(name, table, options)
    print("  wrote " + ", ".join(map(str, files)), file=sys.stderr)


def _run_each(names: Sequence[str], asked: argparse.Namespace) -> list[str]:
    """Run each in a process of its own; the names of those that failed."""
    known, began, failed = available(), time.perf_counter(), []
    for number, name in enumerate(names, 1):
        heading = f"[{number}/{len(names)}, {time.perf_counter() - began:.0f} s] {name}"
        print(f"{heading}: {known[name]}", file=sys.stderr, flush=True)
        if not _succeeds([sys.executable, "-m", "benchmarks", name, *_given(asked)], asked.longest):
            failed.append(name)
    return failed


def _succeeds(command: Sequence[str], seconds: float) -> bool:
    process = subprocess.Popen(command, start_new_session=True)
    try:
        return process.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        print(f"  ended after {seconds:g} s (--longest)", file=sys.stderr)
        return False
    finally:
        # With the servers that it has started, which are of its session.
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _given(asked: argparse.Namespace) -> list[str]:
    given = ["--output", str(asked.output)]
    given += ["--quick"] if asked.quick else []
    given += ["--page"] if asked.page else []
    given += ["--mps", str(asked.mps)]
    for option in ("seconds", "rounds"):
        value = getattr(asked, option)
        given += [] if value is None else [f"--{option}", str(value)]
    return given


def _options(asked: argparse.Namespace) -> Options:
    usual = QUICK if asked.quick else Options()
    seconds, rounds = asked.seconds or usual.seconds, asked.rounds or usual.rounds
    return Options(seconds, rounds, asked.quick, asked.mps or 0)


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        prog="scripts/bench",
        description="Runs benchmarks; prints a table with ratios and targets, writes JSON and a plot.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="a benchmark, or all of docs/performance.md; none prints the list",
    )
    parser.add_argument("--list", action="store_true", help="print what there is")
    parser.add_argument("--quick", action="store_true", help="short and small: about two minutes for all")
    parser.add_argument(
        "--seconds", type=_positive, help="time for each measurement (default: 0.8; quick: 0.25)"
    )
    parser.add_argument("--rounds", type=int, help="how often each is measured (default: 5; quick: 2)")
    parser.add_argument(
        "--mps",
        type=_count,
        metavar="N",
        help="topics and fragments print MPS, messages received / elapsed time, to standard error every N"
        f" messages; 0 is never (default: {EVERY}, and 0 for several benchmarks)",
    )
    parser.add_argument(
        "--longest",
        type=_positive,
        default=LONGEST,
        metavar="SECONDS",
        help="time for one of several, after which it counts as failed (default: %(default)s)",
    )
    parser.add_argument("--output", type=Path, default=Path("build/bench"), help="folder for JSON and plots")
    parser.add_argument(
        "--page", action="store_true", help="write its page in docs too, as a full run of all does"
    )
    return parser


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is not a number of messages; give {EVERY}, or 0")
    return int(text)


def _positive(text: str) -> float:
    value = float(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text} is no time to measure in; give seconds, such as 0.5")
    return value


if __name__ == "__main__":
    sys.exit(main())
