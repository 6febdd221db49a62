"""Lines and bars of a benchmark's JSON whose rows are named `figure · what x · series`, a picture each.

`python -m benchmarks.tools.paper_curves build/bench/matching-papers.json docs/plots`
"""

import argparse
import json
import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

Points = list[tuple[str, float]]

COLOURS = (
    "#4878a8", "#c8553d", "#588157", "#e9a23b", "#7b5ea7", "#222222", "#999999",
    "#2a9d8f", "#d45087", "#8c6d31", "#6baed6", "#b5cf6b",
)  # fmt: skip
_EVALUATIONS = re.compile(r"([\d,]+) evaluations")
WIDTH, HEIGHT, LEFT, TOP, BOTTOM, LEGEND = 620, 300, 80, 40, 45, 150


def main() -> None:
    """Writes a picture for each figure of a JSON file."""
    parser = argparse.ArgumentParser(description="Draws the figures of a benchmark's JSON as SVG.")
    parser.add_argument("json", type=Path)
    parser.add_argument("folder", type=Path)
    asked = parser.parse_args()
    data = json.loads(asked.json.read_text("utf-8"))
    asked.folder.mkdir(parents=True, exist_ok=True)
    for name, drawing in pictures_of(data["rows"]).items():
        file = asked.folder / f"{data['title']}-{name}.svg"
        file.write_text(drawing, "utf-8")
        print(file)


def pictures_of(rows: Sequence[Mapping[str, object]]) -> dict[str, str]:
    """A drawing for each figure."""
    return {
        re.sub(r"[^a-z0-9]+", "-", figure.lower().replace("µ", "u")).strip("-"): as_lines(figure, series)
        for figure, series in figures_of(rows).items()
    }


def figures_of(rows: Sequence[Mapping[str, object]]) -> dict[str, dict[str, Points]]:
    """The series of each figure."""
    figures: dict[str, dict[str, Points]] = {}
    for row in rows:
        figure, x, name = str(row["name"]).split(" · ")
        figures.setdefault(figure, {}).setdefault(name, []).append((x, float(str(row["value"]))))
        if evaluations := _EVALUATIONS.match(str(row["note"])):
            second = figures.setdefault(f"{figure.partition(',')[0]}, evaluations", {})
            second.setdefault(name, []).append((x, float(evaluations[1].replace(",", ""))))
    return figures


def as_lines(title: str, series: Mapping[str, Points]) -> str:
    """A line for each series, the values on a logarithmic scale; a dot where there is one point only."""
    labels = list(dict.fromkeys(x for points in series.values() for x, _ in points))
    values = [value for points in series.values() for _, value in points if value > 0] or [1.0]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)) + 1e-9)
    parts = [f'<text x="8" y="20" font-weight="bold">{escape(title)}</text>', *_grid(low, high, labels)]
    for number, (name, points) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        spots = [(_x(labels.index(x), len(labels)), _y(value, low, high)) for x, value in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in spots]
        top = TOP + 14 + 20 * number
        parts.append(f'<circle cx="{WIDTH - LEGEND + 12}" cy="{top - 4}" r="4" fill="{colour}"/>')
        parts.append(f'<text x="{WIDTH - LEGEND + 22}" y="{top}">{escape(name)}</text>')
    style = 'font-family="sans-serif" font-size="13"'
    size = f'width="{WIDTH}" height="{HEIGHT}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>{"".join(parts)}</svg>\n'


def _grid(low: int, high: int, labels: Sequence[str]) -> list[str]:
    right, parts = WIDTH - LEGEND, []
    for power in range(low, high + 1):
        y = _y(10.0**power, low, high)
        parts.append(f'<line x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#dddddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:,g}</text>')
    what = {label.rpartition(" ")[0] for label in labels}
    shared = what.pop() if len(what) == 1 else ""
    for index, label in enumerate(labels):
        text = label.rpartition(" ")[2] if shared else label
        x = _x(index, len(labels))
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - 26}" text-anchor="middle">{escape(text)}</text>')
    middle = (LEFT + right) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{escape(shared)}</text>')
    return parts


def _x(index: int, count: int) -> float:
    return LEFT + (WIDTH - LEGEND - LEFT) * (index + 0.5) / count


def _y(value: float, low: int, high: int) -> float:
    share = (math.log10(value) - low) / (high - low) if value > 0 else 0.0
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * share


if __name__ == "__main__":
    main()
