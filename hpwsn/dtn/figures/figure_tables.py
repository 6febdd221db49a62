"""Results of experiments as text and JSON, with the paper's values or trends beside ours.

A trend compares the first with the last point of a sweep. It is level if the means differ by at most 5 % of
the larger one, or for delivery by at most a percentage point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hpwsn.dtn.figures.experiments import DOWN, LEVEL, UP, Experiment, Point
from hpwsn.dtn.figures.run_statistics import MEASURES, Statistic, as_json

Statistics = Mapping[str, Statistic | None]
MARGIN, PERCENTAGE_POINT = 0.05, 1.0


@dataclass(frozen=True, slots=True)
class Measured:
    """An experiment with the statistics of each of its points."""

    experiment: Experiment
    results: tuple[Statistics, ...]

    def of(self, protocol: str) -> list[tuple[Point, Statistics]]:
        """The points of a protocol."""
        pairs = zip(self.experiment.points, self.results, strict=True)
        return [(point, found) for point, found in pairs if point.protocol == protocol]

    def protocols(self) -> list[str]:
        """The protocols, in order."""
        return list(dict.fromkeys(point.protocol for point in self.experiment.points))


def trend(means: Sequence[float], measure: str) -> str:
    """Whether means go up, down, or neither."""
    first, last = means[0], means[-1]
    margin = PERCENTAGE_POINT if measure == "delivery" else MARGIN * max(abs(first), abs(last))
    if abs(last - first) <= margin:
        return LEVEL
    return UP if last > first else DOWN


def trends_of(measured: Measured) -> dict[str, dict[str, dict[str, Any]]]:
    """For each protocol and measure of a sweep: the paper's trend, ours, and whether they agree."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for protocol, expected in measured.experiment.trends.items():
        for measure, paper in expected.items():
            means = [one.mean for _, each in measured.of(protocol) if (one := each[measure]) is not None]
            ours = trend(means, measure) if means else LEVEL
            row = {"paper": paper, "ours": ours, "agrees": ours == paper}
            found.setdefault(protocol, {})[measure] = row
    return found


def document_of(measured: Measured) -> dict[str, Any]:
    """An experiment as JSON."""
    experiment = measured.experiment
    return {
        "title": experiment.title,
        "axis": experiment.axis or None,
        "paper": {protocol: dict(values) for protocol, values in experiment.values.items()},
        "trends": trends_of(measured),
        "points": [
            {
                "protocol": point.protocol,
                "label": point.label,
                "changes": dict(point.changes),
                **as_json(found),
            }
            for point, found in zip(experiment.points, measured.results, strict=True)
        ],
    }


def markdown_of(measured: Measured) -> str:
    """An experiment as a table of Markdown, with the paper's values and trends as rows."""
    experiment = measured.experiment
    columns = [f"{name} ({MEASURES[name]})" for name in experiment.measures]
    lines = [f"## {experiment.title}", "", _row(["protocol", experiment.axis or "case", *columns])]
    lines.append("|---" * (2 + len(columns)) + "|")
    trends = trends_of(measured)
    for protocol in measured.protocols():
        for point, found in measured.of(protocol):
            lines.append(
                _row([protocol, point.label, *(text_of(found[name]) for name in experiment.measures)])
            )
        paper = experiment.values.get(protocol)
        if paper:
            known = [f"{paper[name]:g}" if name in paper else "" for name in experiment.measures]
            lines.append(_row([protocol, "paper", *known]))
        if protocol in trends:
            told = [_trend_text(trends[protocol].get(name)) for name in experiment.measures]
            lines.append(_row([protocol, "trend", *told]))
    return "\n".join([*lines, ""])


def _trend_text(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return ""
    return found["ours"] if found["agrees"] else f"{found['ours']} (paper: {found['paper']})"


def text_of(one: Statistic | None) -> str:
    """A mean with its deviation, with three digits or more."""
    if one is None:
        return "-"
    digits = 0 if one.mean >= 100 else 1 if one.mean >= 10 else 2
    return f"{one.mean:.{digits}f} ± {one.deviation:.{digits}f}"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
