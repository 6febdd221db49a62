"""Writes the tables and plots of a run to the pages in docs.

The text between `<!-- bench NAME -->` and `<!-- end NAME -->` is generated and must not be edited by hand;
the text around it is never changed. Plots go to docs/plots. On performance.md the targets of all benchmarks
are in one table, the summary.
"""

import os
import platform
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.frame import Check, Options, Table
from benchmarks.report import as_markdown, as_svg, write_pictures

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("performance.md", "scale.md", "matching.md")


def update_page(name: str, table: Table, options: Options, docs: Path = DOCS) -> list[Path]:
    """Put a table and its plot on its page, and return the files; none if no page has its markers."""
    plot = docs / "plots" / f"{name}.svg"
    page = next((docs / each for each in PAGES if name in _markers(docs / each)), None)
    if page is None:
        return []
    how = _measured(options) if table.drawing is None else f"Simulated {datetime.now(UTC):%Y-%m-%d}, one run."
    targets = "summary" not in _markers(page)
    _write(page, name, f"{as_markdown(table, f'plots/{plot.name}', targets=targets)}\n\n{how}")
    if table.pictures:
        return [page, *write_pictures(plot.parent, name, table, page.read_text("utf-8"))]
    plot.parent.mkdir(exist_ok=True)
    plot.write_text(as_svg(table), "utf-8")
    return [page, plot]


def places(docs: Path = DOCS) -> set[str]:
    """The names that have markers on performance.md."""
    return _markers(docs / "performance.md")


def update_summary(
    checks: Mapping[str, Sequence[Check]], failed: Sequence[str], options: Options, docs: Path = DOCS
) -> None:
    """Put the result of every check of a run of all on the page."""
    lines = ["| benchmark | check | result | target | met |", "|---|---|---|---|---|"]
    lines += [
        f"| {name} | {check.what} | {check.reached} | {check.wanted} | {'yes' if check.met else '**no**'} |"
        for name, found in checks.items()
        for check in found
    ]
    lines += [f"| {name} | | failed | | **no** |" for name in failed]
    _write(docs / "performance.md", "summary", "\n".join([*lines, "", _measured(options)]))


def _markers(page: Path) -> set[str]:
    return set(re.findall(r"<!-- bench ([a-z-]+) -->", page.read_text("utf-8"))) if page.exists() else set()


def _write(page: Path, name: str, content: str) -> None:
    place = re.compile(rf"(<!-- bench {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
    text = place.sub(lambda found: f"{found[1]}\n{content}\n\n{found[2]}", page.read_text("utf-8"))
    page.write_text(text, "utf-8")


def _measured(options: Options) -> str:
    when = f"{datetime.now(UTC):%Y-%m-%d}"
    rounds = f"{options.rounds} × {options.seconds:g} s" + (", a quick run" if options.quick else "")
    return f"Measured {when}: {rounds}, Python {platform.python_version()}, {os.cpu_count()} cores."
