"""What the CET paper measures, as runs to make: tables 2 and 3, figures 7 to 10, readings of its text.

The figures of the paper are pictures without numbers, so what they show is given as a trend, in the words of
its text. Runs that several experiments share are made once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

from hpwsn.dtn.figures.run_statistics import COMPARED
from hpwsn.dtn.scenario.simulation_parameters import DEFAULTS, Parameters
from hpwsn.dtn.simulation.simulation_state import CET, DG

UP, DOWN, LEVEL = "up", "down", "level"


@dataclass(frozen=True, slots=True)
class Point:
    """One row of an experiment: a protocol with parameters that differ from the defaults."""

    label: str
    protocol: str
    changes: tuple[tuple[str, Any], ...] = ()

    def parameters(self, base: Parameters) -> Parameters:
        """The parameters of the runs."""
        changes: dict[str, Any] = dict(self.changes)
        return replace(base, **changes)


@dataclass(frozen=True, slots=True)
class Experiment:
    """Rows to measure; `values` and `trends` are the paper's, by protocol and measure."""

    name: str
    title: str
    measures: tuple[str, ...]
    points: tuple[Point, ...]
    axis: str = ""
    """The parameter of a sweep, whose values are the labels of the points; empty for a table."""
    values: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    trends: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def _sweep(protocols: tuple[str, ...], parameter: str, values: tuple[float, ...]) -> tuple[Point, ...]:
    return tuple(
        Point(f"{value:g}", protocol, ((parameter, value),)) for protocol in protocols for value in values
    )


def _readings(protocol: str, *rows: tuple[str, dict[str, Any]]) -> tuple[Point, ...]:
    return tuple(Point(label, protocol, tuple(changes.items())) for label, changes in rows)


PAPER: Final[Mapping[str, Mapping[str, float]]] = MappingProxyType(
    {
        CET: {"delivery": 91.0, "copies": 5.5, "delay": 193.8, "life": 2.57},
        DG: {"delivery": 47.0, "copies": 75.9, "delay": 615.5, "life": 6.04},
    }
)
_THREE = ("delivery", "copies", "delay")
_FOUR = (*_THREE, "life")

EXPERIMENTS: Final = (
    Experiment("table-2", "Table 2: defaults", _THREE, (Point("CET", CET), Point("DG", DG)), values=PAPER),
    Experiment(
        "table-3",
        "Table 3: life of the network",
        ("life", "delivery"),
        (Point("CET", CET), Point("DG", DG)),
        values=PAPER,
    ),
    Experiment(
        "figure-7",
        "Figure 7: alpha",
        ("delivery",),
        _sweep((CET,), "alpha", (2, 5, 10, 15, 20, 30, 40)),
        "alpha",
        trends={CET: {"delivery": UP}},
    ),
    Experiment(
        "figure-8",
        "Figure 8: highest speed of subscribers, m/s",
        _THREE,
        _sweep((CET, DG), "speed_max", (1, 3, 5, 7, 9, 11)),
        "speed_max",
        trends={
            CET: {"delivery": UP, "copies": UP, "delay": DOWN},
            DG: {"delivery": UP, "copies": LEVEL, "delay": DOWN},
        },
    ),
    Experiment(
        "figure-9",
        "Figure 9: number of sensors",
        _THREE,
        _sweep((CET, DG), "sensors", (40, 60, 80, 100, 120, 140)),
        "sensors",
        trends={
            CET: {"delivery": UP, "copies": UP, "delay": DOWN},
            DG: {"delivery": UP, "copies": DOWN, "delay": UP},
        },
    ),
    Experiment(
        "figure-10",
        "Figure 10: cells along a side (fewer cells: more range)",
        _THREE,
        _sweep((CET, DG), "grid", (30, 25, 20, 15, 10)),
        "grid",
        trends={
            CET: {"delivery": UP, "copies": UP, "delay": DOWN},
            DG: {"delivery": UP, "copies": UP, "delay": DOWN},
        },
    ),
    Experiment(
        "readings-cet",
        "CET by reading of the text",
        (*_FOUR, "transmissions"),
        _readings(
            CET,
            ("base", {}),
            ("once per connection", {"resend": "connection"}),
            ("once to each subscriber", {"resend": "once"}),
            ("all events travel, once per path", {"travel": "all"}),
            ("all travel, once to each subscriber", {"travel": "all", "resend": "once"}),
            ("speed from 0", {"speed_min": 0.0}),
            ("no giving back", {"giving_back": "off"}),
            ("not given back at home", {"give_home": "off"}),
            ("loners' events not given back", {"give_loners": "off"}),
            ("levels rebuilt", {"levels": "rebuild"}),
            ("40 events per second", {"rate": 40}),
        ),
        values={CET: PAPER[CET]},
    ),
    Experiment(
        "readings-dg",
        "DG by reading of the text",
        _FOUR,
        _readings(
            DG,
            ("base", {}),
            (
                "3 x 3 cells, 20 per second and subscriber",
                {"dg_contact": "neighbours", "dg_budget": "mobile"},
            ),
            ("3 x 3 cells, newest at each cell entered", {"dg_contact": "neighbours", "dg_repeat": "entry"}),
            ("3 x 3 cells, each once (honest)", {"dg_contact": "neighbours", "dg_repeat": "once"}),
            ("dropped by beta", {"dg_expiry": "on"}),
            ("speed from 0", {"speed_min": 0.0}),
        ),
        values={DG: PAPER[DG]},
    ),
    Experiment(
        "peers", "Other protocols", (*_FOUR, "holders"), tuple(Point(name, name) for name in COMPARED)
    ),
)


def points_of(
    experiments: tuple[Experiment, ...], base: Parameters = DEFAULTS
) -> list[tuple[str, Parameters]]:
    """The protocols with parameters to run, each once."""
    found = {
        (point.protocol, point.parameters(base)): None
        for experiment in experiments
        for point in experiment.points
    }
    return list(found)
