"""Curves over the number of subscriptions, both axes logarithmic, from the JSON of `scripts/bench matching`.

`python -m benchmarks.tools.curves build/bench/matching.json docs/plots/matching-default.svg`
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable
from html import escape
from pathlib import Path

Series = dict[str, list[tuple[float, float]]]

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 420, 70, 250, 40, 50
COLOURS = ("#9c9c9c", "#4878a8", "#d1495b", "#e9a13b", "#66a182", "#6a4c93", "#2e4057")
_NAME = re.compile(r"([\d,]+) (ranges, 0 %|equalities|places and words|topic filters): (.+)")


def series_of(rows: list[dict[str, object]]) -> dict[str, Series]:
    """For each kind of subscription the curve of every candidate that was measured at several sizes."""
    found: dict[str, Series] = {}
    for row in rows:
        if read := _NAME.fullmatch(str(row["name"])):
            size = float(read[1].replace(",", ""))
            value = float(str(row["value"]))
            found.setdefault(read[2], {}).setdefault(read[3], []).append((size, value))
    return found


def as_curves(title: str, series: Series, unit: str = "µs an event", across: str = "subscriptions") -> str:
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


def main(source: str, target: str) -> None:
    """Write a drawing for each kind; its name goes before the target's suffix."""
    for kind, series in series_of(json.loads(Path(source).read_text("utf-8"))["rows"]).items():
        name = kind.partition(",")[0].replace(" ", "-")
        path = Path(target)
        path.with_stem(f"{path.stem}-{name}").write_text(as_curves(kind, series), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
