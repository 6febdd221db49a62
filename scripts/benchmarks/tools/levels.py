"""Samples of a process over time, and whether what they show is level: a slope with a tolerance.

Only growth counts: memory that falls is no leak. The first part of a run is warm-up, in which caches and
connection pools fill.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from benchmarks.frame import figure

WARM_UP = 0.25
"""The part of the samples that is not judged."""
FEWEST = 4
"""Samples after the warm-up without which nothing can be said."""
_WIDTH, _PANEL, _LEFT, _RIGHT = 760, 120, 90, 20


@dataclass(frozen=True, slots=True)
class ProcessSample:
    """A process at one moment; CPU and MPS are those since the sample before."""

    minutes: float
    mps: float
    cpu: float
    memory: float
    threads: int
    descriptors: int

    @property
    def cost(self) -> float:
        """CPU time of one message, in µs."""
        return 1e4 * self.cpu / self.mps if self.mps else 0.0


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The growth over a run that counts as level: an amount, or a part of the median if that is more."""

    name: str
    unit: str
    amount: float
    part: float = 0.0


WATCHED = {
    # At full load the share of a core follows what other processes leave; the time of a message does not.
    "cost": Tolerance("CPU per message", "µs", 10, 0.25),
    "memory": Tolerance("memory", "MB", 16, 0.1),
    "threads": Tolerance("threads", "", 2),
    "descriptors": Tolerance("descriptors", "", 8),
}


@dataclass(frozen=True, slots=True)
class Level:
    """One quantity over the judged samples: its median, and its growth along the fitted line."""

    name: str
    unit: str
    median: float
    growth: float
    allowed: float

    @property
    def is_level(self) -> bool:
        """Whether it grew by no more than it may."""
        return self.growth <= self.allowed

    def line(self) -> str:
        """A sentence for a person."""
        verdict = "level" if self.is_level else "NOT LEVEL"
        unit = f" {self.unit}" if self.unit else ""
        return (
            f"{self.name}: {verdict}; median {figure(self.median)}{unit},"
            f" growth {self.growth:+.1f} (at most {self.allowed:.1f})"
        )


def levels(samples: Sequence[ProcessSample]) -> list[Level]:
    """Every watched quantity after the warm-up; empty if there are too few samples to judge."""
    judged = samples[max(1, int(len(samples) * WARM_UP)) :]
    if len(judged) < FEWEST:
        return []
    return [_level(tolerance, field, judged) for field, tolerance in WATCHED.items()]


def _level(tolerance: Tolerance, field: str, samples: Sequence[ProcessSample]) -> Level:
    times = [sample.minutes for sample in samples]
    values = [float(getattr(sample, field)) for sample in samples]
    slope = statistics.linear_regression(times, values).slope
    median = statistics.median(values)
    allowed = max(tolerance.amount, tolerance.part * median)
    return Level(tolerance.name, tolerance.unit, median, slope * (times[-1] - times[0]), allowed)


def as_panels(samples: Sequence[ProcessSample]) -> str:
    """A drawing with a panel for MPS and for every watched quantity, over the minutes."""
    titles = {"mps": "MPS", "cpu": "CPU, % of a core"}
    titles |= {key: f"{each.name}{', ' * bool(each.unit)}{each.unit}" for key, each in WATCHED.items()}
    panels = [_panel(title, field, samples, at * _PANEL) for at, (field, title) in enumerate(titles.items())]
    size = f'width="{_WIDTH}" height="{len(titles) * _PANEL + 30}" font-family="sans-serif" font-size="12"'
    last = f"{samples[-1].minutes:.1f} minutes" if samples else ""
    foot = f'<text x="{_WIDTH - _RIGHT}" y="{len(titles) * _PANEL + 16}" text-anchor="end">{last}</text>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(panels)}{foot}</svg>\n'


def _panel(title: str, field: str, samples: Sequence[ProcessSample], top: int) -> str:
    values = [float(getattr(sample, field)) for sample in samples]
    highest = max(values, default=0.0) or 1.0
    longest = max((sample.minutes for sample in samples), default=0.0) or 1.0
    points = " ".join(
        f"{_LEFT + (_WIDTH - _LEFT - _RIGHT) * sample.minutes / longest:.1f},"
        f"{top + _PANEL - 10 - (_PANEL - 40) * value / highest:.1f}"
        for sample, value in zip(samples, values, strict=True)
    )
    return (
        f'<text x="8" y="{top + 18}" font-weight="bold">{escape(title)}</text>'
        f'<text x="{_LEFT - 8}" y="{top + 34}" text-anchor="end">{figure(highest)}</text>'
        f'<text x="{_LEFT - 8}" y="{top + _PANEL - 8}" text-anchor="end">0</text>'
        f'<path d="M{_LEFT} {top + _PANEL - 10}H{_WIDTH - _RIGHT}" stroke="#ddd"/>'
        f'<polyline points="{points}" fill="none" stroke="#4878a8" stroke-width="2"/>'
    )
