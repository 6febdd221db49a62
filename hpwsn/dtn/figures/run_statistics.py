"""Means and standard deviations over runs, and the names under which protocols are compared.

`honest-dg` is direct gathering by sensors within the range of CET that remember what they sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from hpwsn.dtn.scenario.simulation_parameters import HONEST_DG, Parameters
from hpwsn.dtn.simulation.simulation import Outcome, simulate
from hpwsn.dtn.simulation.simulation_state import CET, DG, EPIDEMIC, PROPHET, SPRAY

HONEST: Final = "honest-dg"
COMPARED: Final = (CET, DG, HONEST, EPIDEMIC, SPRAY, PROPHET)
MEASURES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "delivery": "%",
        "copies": "per event",
        "delay": "s",
        "life": "days",
        "transmissions": "per event",
        "holders": "nodes per event",
    }
)
"""What is compared, with its unit."""


@dataclass(frozen=True, slots=True)
class RunTask:
    """One run of one of COMPARED; the seed and the number of the run choose the scenario."""

    parameters: Parameters
    protocol: str
    seed: int
    run: int


@dataclass(frozen=True, slots=True)
class Statistic:
    """The mean over runs, with the standard deviation (0 of a single run)."""

    mean: float
    deviation: float


def perform(task: RunTask) -> Outcome:
    """Simulate one run."""
    if task.protocol == HONEST:
        changes: dict[str, Any] = dict(HONEST_DG)
        return simulate(replace(task.parameters, **changes), DG, task.seed, task.run)
    return simulate(task.parameters, task.protocol, task.seed, task.run)


def statistics_of(outcomes: Sequence[Outcome]) -> dict[str, Statistic | None]:
    """The statistic of each measure; None if no run has a value."""
    found: dict[str, Statistic | None] = {}
    for name in MEASURES:
        values = [value for one in outcomes if (value := getattr(one, name)) is not None]
        deviation = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        found[name] = Statistic(float(np.mean(values)), deviation) if values else None
    return found


def as_json(statistics: Mapping[str, Statistic | None]) -> dict[str, dict[str, float] | None]:
    """Statistics in the form of JSON, rounded to six digits."""
    return {
        name: None if one is None else {key: float(f"{value:.6g}") for key, value in asdict(one).items()}
        for name, one in statistics.items()
    }
