"""The structure of a checkout, and the modules that a message passes through on six paths.

`PYTHONPATH=scripts python -m benchmarks.house [--tree DIR] [--json FILE] [--compare FILE]`. It is not one of
`scripts/bench`: it counts, and has no time, rounds or rivals. The paths are traced in a child process that
imports the packages of the checkout, so the same code measures two commits. `tools/structure.py` and
`tools/call_trace.py` define what is counted.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.tools.structure import structure_of

_SCRIPTS = Path(__file__).resolve().parents[1]
_PARTS = ("", "client", "admin")
_FIGURES = ("calls", "module changes", "modules")

Result = Mapping[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure a checkout, and print it beside another one where that is asked for."""
    asked = _parser().parse_args(arguments)
    before: Result | None = json.loads(asked.compare.read_text("utf-8")) if asked.compare else None
    tree = asked.tree.resolve()
    if not (tree / "hpwsn" / "node").is_dir():
        print(f"error: {asked.tree} is not a checkout of HPwsn: it has no hpwsn/node", file=sys.stderr)
        return 2
    result = {"structure": asdict(structure_of(tree)), "paths": trace(tree)}
    if asked.json:
        asked.json.write_text(json.dumps(result, indent=2) + "\n", "utf-8")
    print("\n".join(report(result, before)))
    return 0


def trace(tree: Path) -> dict[str, dict[str, Any]]:
    """The traced paths of a checkout by name."""
    path = os.pathsep.join([*(str(tree / part) for part in _PARTS), str(_SCRIPTS)])
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HPWSN_")}
    command = [sys.executable, "-m", "benchmarks.tools.traced_paths", str(tree)]
    # The folder that the child starts in comes before PYTHONPATH, so it must not hold packages.
    with tempfile.TemporaryDirectory(prefix="hpwsn-bench-") as folder:
        output = subprocess.check_output(command, env={**kept, "PYTHONPATH": path}, cwd=folder)
    found: dict[str, dict[str, Any]] = json.loads(output)
    return found


def report(result: Result, before: Result | None = None) -> Iterator[str]:
    """The lines for a person; with an earlier result each number is `before → now (ratio)`."""
    old = before or {"structure": {"numbers": {}}, "paths": {}}
    structure = result["structure"]
    numbers = [
        (name, beside(now, old["structure"]["numbers"].get(name)))
        for name, now in structure["numbers"].items()
    ]
    yield from columns([("structure", ""), *numbers])
    yield ""
    yield "largest folders: " + ", ".join(f"{name} {size}" for name, size in structure["largest"].items())
    yield from (f"cycle of folders: {', '.join(cycle)}" for cycle in structure["cycles"])
    yield from (f"basename {name}: {', '.join(paths)}" for name, paths in structure["same_names"].items())
    yield ""
    paths = [
        (name, *(beside(now[figure], old["paths"].get(name, {}).get(figure)) for figure in _FIGURES))
        for name, now in result["paths"].items()
    ]
    yield from columns([("path", *_FIGURES), *paths])


def beside(now: int, before: int | None) -> str:
    """A number, with an earlier one and the ratio of the two where there is an earlier one."""
    if before is None:
        return f"{now:,}"
    return f"{before:,} → {now:,} ({f'{now / before:.2f}' if before else '–'})"


def columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The rows of a table, the first column aligned to the left and all others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        cells = (f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True))
        yield "  ".join([f"{first:{widths[0]}}", *cells]).rstrip()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.house", description=__doc__.partition("\n")[0]
    )
    parser.add_argument(
        "--tree", type=Path, default=_SCRIPTS.parent, metavar="DIR", help="the checkout (default: this one)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there, too")
    parser.add_argument(
        "--compare", type=Path, metavar="FILE", help="print the result of another checkout beside this one"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
