"""`scripts/bench [NAME…]`: runs benchmarks and reports them."""

import argparse
import ast
import sys
from importlib import import_module
from pathlib import Path

from benchmarks.frame import Options, Table
from benchmarks.report import as_text, write

_HERE = Path(__file__).parent
_NOT_BENCHMARKS = frozenset({"__init__", "__main__", "frame", "report"})
_EXAMPLES = """\
examples:
  scripts/bench --list
  scripts/bench wire
  scripts/bench --seconds 0.2        all of them, roughly
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


def main() -> int:
    """Runs the benchmarks that were named, or all."""
    arguments = _parser().parse_args()
    known = available()
    if arguments.list:
        print("\n".join(f"{name:14} {about}" for name, about in known.items()))
        return 0
    if unknown := [name for name in arguments.names if name not in known]:
        print(f"no benchmark {unknown[0]!r}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    options = Options(seconds=arguments.seconds)
    for name in arguments.names or known:
        print(f"{name}: {known[name]}", file=sys.stderr, flush=True)
        table = run(name, options)
        print(as_text(table), end="\n\n", flush=True)
        print(
            "  wrote " + ", ".join(map(str, write(arguments.output, name, table, options))), file=sys.stderr
        )
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description="Runs benchmarks; prints a table, writes JSON and a plot.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="a benchmark; all when none is named")
    parser.add_argument("--list", action="store_true", help="print what there is")
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each candidate (default: 1)")
    parser.add_argument("--output", type=Path, default=Path("build/bench"), help="folder for JSON and plots")
    return parser


if __name__ == "__main__":
    sys.exit(main())
