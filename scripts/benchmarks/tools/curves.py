"""Curves over the number of subscriptions, on logarithmic axes, and the tables of docs/matching.md."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from html import escape

from benchmarks.frame import Row, figure
from benchmarks.report import as_tables

Series = dict[str, list[tuple[float, float]]]

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 420, 70, 250, 40, 50
COLOURS = ("#9c9c9c", "#4878a8", "#d1495b", "#e9a13b", "#66a182", "#6a4c93", "#2e4057")
LEFT_OUT = ("0.1 %",)
"""Match ratios that the page does not show."""
_NAME = re.compile(r"([\d,]+) (\w[^,:]*)(?:, ([^:]+))?: (.+)")


def pictures_of(rows: Iterable[Row]) -> dict[str, str]:
    """For each kind of subscription a drawing, with the curve of every candidate."""
    found: dict[str, Series] = {}
    for row in rows:
        if read := _NAME.fullmatch(row.name):
            kind = ", ".join(filter(None, read.group(2, 3)))
            size = float(read[1].replace(",", ""))
            found.setdefault(kind, {}).setdefault(read[4], []).append((size, row.value))
    return {_name(kind): as_curves(kind, series) for kind, series in found.items()}


def _name(kind: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", kind.lower()).strip("-")


def tables_of(rows: Iterable[Row]) -> str:
    """One table: a line for every kind and candidate, a column for every number of subscriptions."""
    return as_tables(_cells(rows))


def _cells(rows: Iterable[Row]) -> Iterator[tuple[str, str, str, str]]:
    for row in rows:
        if (read := _NAME.fullmatch(row.name)) and read[3] not in LEFT_OUT:
            line = f"{', '.join(filter(None, read.group(2, 3)))}: {read[4]}"
            noted = row.note.partition(";")[0].removesuffix(" matches").removesuffix(".0")
            yield "µs per event", line, read[1], figure(row.value) + (f" ({noted})" if noted else "")


def as_curves(title: str, series: Series, unit: str = "µs per event", across: str = "subscriptions") -> str:
    """One drawing with a line for each candidate."""
    points = [point for line in series.values() for point in line]
    x = _axis([size for size, _ in points], LEFT, WIDTH - RIGHT)
    y = _axis([value for _, value in points], HEIGHT - BOTTOM, TOP)
    parts = [f'<text x="8" y="20" font-weight="bold">{escape(title)}, {escape(unit)}</text>']
    parts += [
        f'<text x="{x(10**power):.0f}" y="{HEIGHT - 28}" text-anchor="middle">{10**power:,}</text>'
        for power in range(_least(points, 0), _most(points, 0) + 1)
    ]
    for power in range(_least(points, 1), _most(points, 1) + 1):
        place = f"{y(10.0**power):.0f}"
        parts.append(f'<path d="M{LEFT} {place}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{place}" text-anchor="end">{10.0**power:,g}</text>')
    for number, (name, line) in enumerate(series.items()):
        parts += _line(name, [(x(size), y(value)) for size, value in line], COLOURS[number % len(COLOURS)])
    parts.append(f'<text x="{LEFT}" y="{HEIGHT - 8}">{escape(across)}</text>')
    size = f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(parts)}</svg>\n'


def _line(name: str, places: list[tuple[float, float]], colour: str) -> list[str]:
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    x, y = places[-1]
    dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
    label = f'<text x="{x + 8:.1f}" y="{y + 4:.1f}" fill="{colour}">{escape(name)}</text>'
    return [f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>', *dots, label]


def _axis(values: list[float], start: float, end: float) -> Callable[[float], float]:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return lambda value: start + (end - start) * (math.log10(value) - low) / max(1, high - low)


def _least(points: list[tuple[float, float]], which: int) -> int:
    return math.floor(math.log10(min(point[which] for point in points)))


def _most(points: list[tuple[float, float]], which: int) -> int:
    return math.ceil(math.log10(max(point[which] for point in points)))
