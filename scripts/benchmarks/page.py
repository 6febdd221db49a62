"""The pages with tables of the latest run, between marks that name a benchmark each.

What stands between `<!-- bench NAME -->` and `<!-- end NAME -->` is written by a run and by nobody else; the
words around it are a person's. Plots go to docs/plots.
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
    """Put a table and its plot on its page, and return what was written; nothing where it has no place."""
    plot = docs / "plots" / f"{name}.svg"
    how = _measured(options) if table.drawing is None else f"Simulated {datetime.now(UTC):%Y-%m-%d}, one run."
    content = f"{as_markdown(table, f'plots/{plot.name}')}\n\n{how}"
    page = next((docs / each for each in PAGES if _write(docs / each, name, content)), None)
    if page is None:
        return []
    if table.pictures:
        return [page, *write_pictures(plot.parent, name, table, page.read_text("utf-8"))]
    plot.parent.mkdir(exist_ok=True)
    plot.write_text(as_svg(table), "utf-8")
    return [page, plot]


def places(docs: Path = DOCS) -> set[str]:
    """The benchmarks that have a place on the page."""
    return set(re.findall(r"<!-- bench ([a-z-]+) -->", (docs / "performance.md").read_text("utf-8")))


def update_summary(
    checks: Mapping[str, Sequence[Check]], failed: Sequence[str], options: Options, docs: Path = DOCS
) -> None:
    """Put every target of a run of all on the page, each with what was reached."""
    lines = ["| benchmark | what | reached | wanted | |", "|---|---|---|---|---|"]
    lines += [
        f"| {name} | {check.what} | {check.reached} | {check.wanted} | {'yes' if check.met else '**no**'} |"
        for name, found in checks.items()
        for check in found
    ]
    lines += [f"| {name} | | it did not end well | | **no** |" for name in failed]
    _write(docs / "performance.md", "summary", "\n".join([*lines, "", _measured(options)]))


def _write(page: Path, name: str, content: str) -> bool:
    text = page.read_text("utf-8") if page.exists() else ""
    place = re.compile(rf"(<!-- bench {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
    if not place.search(text):
        return False
    page.write_text(place.sub(lambda found: f"{found[1]}\n{content}\n\n{found[2]}", text), "utf-8")
    return True


def _measured(options: Options) -> str:
    when = f"{datetime.now(UTC):%Y-%m-%d}"
    rounds = f"{options.rounds} rounds of {options.seconds:g} s" + (", a quick run" if options.quick else "")
    return f"Measured {when}: {rounds}; Python {platform.python_version()}, {os.cpu_count()} cores."
