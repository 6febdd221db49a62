"""Writes a benchmark's table: as text for a person, as JSON for a script, as SVG bars for a page."""

import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from dataclasses import fields as fields_of
from datetime import UTC, datetime
from html import escape
from pathlib import Path

from benchmarks.frame import Check, Options, Row, Table, figure

_BAR, _GAP, _LABELS, _WIDTH = 18, 8, 300, 760


def as_text(table: Table) -> str:
    """The table with aligned columns, a blank line between groups."""
    width = max(len(row.name) for row, _ in table.ratios())
    notes_head = "; ".join(filter(None, ("range", table.note_title)))
    lines = [table.title, f"  {'':{width}}  {table.unit:>14}  {'ratio':>7}  {notes_head}"]
    starts = {id(group[0]) for group in table.groups[1:]}
    for row, ratio in table.ratios():
        if id(row) in starts:
            lines.append("")
        note = "; ".join(filter(None, (row.spread, row.note)))
        lines.append(f"  {row.name:{width}}  {row.value:14,.2f}  {ratio:7.2f}  {note}".rstrip())
    lines += ["", *_checks_as_text(table)] if table.checks else []
    return "\n".join([*lines, *(f"  ({note})" for note in table.notes)])


def _checks_as_text(table: Table) -> list[str]:
    width = max(len(check.what) for check in table.checks)
    return [
        f"  {check.what:{width}}  {check.reached:>22}  target: {check.wanted}"
        + ("" if check.met else ", NOT MET")
        for check in table.checks
    ]


def as_markdown(table: Table, plot: str, *, targets: bool = True) -> str:
    """The table, its plot and its notes for a page; `targets` adds the missed ones. The JSON has all."""
    lines = [table.body or as_rows(table)]
    if table.checks and targets:
        lines += ["", *_targets(table.checks)]
    if not table.pictures:
        lines += ["", f"![{table.title}, {table.unit}]({plot})"]
    if table.notes:
        lines += ["", *(f"- {note}" for note in table.notes)]
    return "\n".join(lines)


def _targets(checks: Sequence[Check]) -> list[str]:
    missed = [f"{check.what}: {check.reached}, target {check.wanted}" for check in checks if not check.met]
    met = f"Targets met: {len(checks) - len(missed)} of {len(checks)}."
    return [f"{met} Missed: {'; '.join(missed)}." if missed else met]


def as_rows(table: Table) -> str:
    """A line for each row, with the first part of its note; a column without any text is left out."""
    head_of_notes, notes = _notes(table)
    lines = [
        ["", table.unit, "ratio", head_of_notes],
        *(
            [row.name, cell(row), f"{ratio:.2f}", note]
            for (row, ratio), note in zip(table.ratios(), notes, strict=True)
        ),
    ]
    used = [index for index in range(len(lines[0])) if any(line[index] for line in lines[1:])]
    head, *rest = ([line[index] for index in used] for line in lines)
    return "\n".join([_line(head), "|---" * len(used) + "|", *map(_line, rest)])


def _notes(table: Table) -> tuple[str, list[str]]:
    """The head and the cells of a column of notes; a unit that all of them have is in the head."""
    head = table.note_title.partition(", ")[0]
    notes = [row.note.partition(", ")[0] for row, _ in table.ratios()]
    if head and all(note.endswith(" µs") for note in notes if note):
        return f"{head}, µs", [note.removesuffix(" µs") for note in notes]
    return head, notes


def _line(cells: Sequence[str]) -> str:
    return f"|{'|'.join(f' {cell} ' if cell else ' ' for cell in cells)}|"


def cell(row: Row) -> str:
    """A value with its minimum and maximum, for a table that has no column for them."""
    return figure(row.value) + (f" ({row.spread})" if row.spread else "")


def as_tables(cells: Iterable[tuple[str, str, str, str]]) -> str:
    """Markdown tables of cells, each given as the table's title, the line, the column and the text."""
    tables: dict[str, dict[str, dict[str, str]]] = {}
    for title, line, column, text in cells:
        tables.setdefault(title, {}).setdefault(line, {})[column] = text
    return "\n\n".join(_as_table(title, lines) for title, lines in tables.items())


def _as_table(title: str, lines: Mapping[str, Mapping[str, str]]) -> str:
    columns = list(dict.fromkeys(column for line in lines.values() for column in line))
    return "\n".join(
        [
            f"| {' | '.join([title, *columns])} |",
            "|---" * (len(columns) + 1) + "|",
            *(
                f"| {' | '.join([name, *(line.get(column, '') for column in columns)])} |"
                for name, line in lines.items()
            ),
        ]
    )


def machine() -> dict[str, object]:
    """What this was measured on."""
    return {"python": platform.python_version(), "system": platform.platform(), "cores": os.cpu_count()}


def with_pictures(body: str, name: str, pictures: Iterable[str]) -> str:
    """The body of a page with some of a table's pictures below it."""
    return "\n\n".join([body, *(f"![{name}, {each}](plots/{name}-{each}.svg)" for each in pictures)])


def as_json(table: Table, options: Options) -> str:
    """The table with what it was measured on."""
    rows = [
        {"name": row.name, "value": row.value, "ratio": ratio, "note": row.note, "samples": list(row.samples)}
        for row, ratio in table.ratios()
    ]
    checks = [
        {**asdict(check), "value": check.value, "met": check.met, "wanted": check.wanted}
        for check in table.checks
    ]
    when = datetime.now(UTC).isoformat(timespec="seconds")
    head = {"title": table.title, "unit": table.unit, "time": when, **asdict(options)}
    rest = {"machine": machine(), "rows": rows, "checks": checks, "notes": list(table.notes)}
    return json.dumps({**head, **rest}, indent=2, ensure_ascii=False) + "\n"


def as_svg(table: Table) -> str:
    """The table's own drawing, or horizontal bars, each as long as its value."""
    if table.drawing is not None:
        return table.drawing
    rows = [row for row, _ in table.ratios()]
    longest = max(row.value for row in rows) or 1.0
    height = 40 + len(rows) * (_BAR + _GAP)
    bars = []
    for index, row in enumerate(rows):
        top = 34 + index * (_BAR + _GAP)
        length = (_WIDTH - _LABELS - 90) * row.value / longest
        bars.append(f'<text x="{_LABELS - 8}" y="{top + 13}" text-anchor="end">{escape(row.name)}</text>')
        bars.append(f'<rect x="{_LABELS}" y="{top}" width="{length:.1f}" height="{_BAR}" fill="#4878a8"/>')
        bars.append(f'<text x="{_LABELS + length + 6:.1f}" y="{top + 13}">{row.value:,.2f}</text>')
    title = f'<text x="8" y="20" font-weight="bold">{escape(table.title)}, {escape(table.unit)}</text>'
    style = 'font-family="sans-serif" font-size="13"'
    size = f'width="{_WIDTH}" height="{height}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>{title}{"".join(bars)}</svg>\n'


def write(folder: Path, name: str, table: Table, options: Options) -> list[Path]:
    """Writes the JSON and the plot, and returns where."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{name}.json", folder / f"{name}.svg"]
    files[0].write_text(as_json(table, options), "utf-8")
    files[1].write_text(as_svg(table), "utf-8")
    return files + write_pictures(folder, name, table)


def write_pictures(folder: Path, name: str, table: Table, shown_by: str | None = None) -> list[Path]:
    """Writes the table's own pictures, all or those that a page shows, and returns where."""
    folder.mkdir(parents=True, exist_ok=True)
    drawings = {f"{name}-{picture}.svg": drawing for picture, drawing in table.pictures.items()}
    wanted = [each for each in drawings if shown_by is None or f"/{each})" in shown_by]
    for each in wanted:
        (folder / each).write_text(drawings[each], "utf-8")
    return [folder / each for each in wanted]


def read_checks(folder: Path, names: Sequence[str]) -> dict[str, list[Check]]:
    """The checks of benchmarks that were written to the folder."""
    fields = [field.name for field in fields_of(Check)]
    found = {name: json.loads((folder / f"{name}.json").read_text("utf-8"))["checks"] for name in names}
    return {
        name: [Check(**{key: each[key] for key in fields}) for each in checks]
        for name, checks in found.items()
    }
