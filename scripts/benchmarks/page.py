"""Writes the tables and plots of a run to the pages in docs.

The text between `<!-- bench NAME -->` and `<!-- end NAME -->` is generated and must not be edited by hand;
the text around it is never changed. Plots go to docs/plots. On performance.md the targets of all benchmarks
are in one table, the summary; a benchmark that was measured like the summary does not repeat how.
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
_HOW = re.compile("^Measured .*$", re.MULTILINE)
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
    lines = ["| benchmark | check | result | target |", "|---|---|---|---|"]
    lines += [
        f"| {name} | {check.what} | {check.reached} | {check.wanted}{'' if check.met else ', **missed**'} |"
        for name, found in checks.items()
        for check in found
    ]
    lines += [f"| {name} | | **failed** | |" for name in failed]
    _write(docs / "performance.md", "summary", "\n".join([*lines, "", _measured(options)]))


def _markers(page: Path) -> set[str]:
    return set(re.findall(r"<!-- bench ([a-z-]+) -->", page.read_text("utf-8"))) if page.exists() else set()


def _write(page: Path, name: str, content: str) -> None:
    text = _place(name).sub(lambda found: f"{found[1]}\n{content}\n\n{found[3]}", page.read_text("utf-8"))
    page.write_text(_measured_once(text), "utf-8")


def _measured_once(text: str) -> str:
    """The page without the lines on how a benchmark was measured that equal that of the summary."""
    summary = _place("summary").search(text)
    if summary is None or (how := _HOW.search(summary[2])) is None:
        return text
    rest = text[summary.end() :].replace(f"\n{how[0]}\n", "")
    return text[: summary.end()] + rest


def _place(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- bench {name} -->\n)(.*?)(<!-- end {name} -->)", re.DOTALL)


def _measured(options: Options) -> str:
    when = f"{datetime.now(UTC):%Y-%m-%d}"
    rounds = f"{options.rounds} × {options.seconds:g} s" + (", a quick run" if options.quick else "")
    return f"Measured {when}: {rounds}, Python {platform.python_version()}, {os.cpu_count()} cores."
