"""Parameters have the paper's defaults, and every limit holds at its edge."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from hpwsn.dtn.scenario.simulation_parameters import DEFAULTS, Parameters, WrongParameter

NUMBERS = [one for one in fields(Parameters) if "least" in one.metadata]
ROOMY: dict[str, Any] = {"sensors": 1, "mobiles": 1, "duration": 20, "quiet": 1.0, "interval": 100.0}


def test_the_defaults_are_those_of_the_paper() -> None:
    assert (DEFAULTS.area, DEFAULTS.grid, DEFAULTS.sensors, DEFAULTS.mobiles) == (200, 15, 100, 10)
    assert (DEFAULTS.energy, DEFAULTS.event_bits, DEFAULTS.rate, DEFAULTS.bandwidth) == (10, 250, 20, 10_000)
    assert (DEFAULTS.electronics, DEFAULTS.amplifier, DEFAULTS.multipath) == (50e-9, 10e-12, 0.0013e-12)
    assert (DEFAULTS.speed_max, DEFAULTS.pause, DEFAULTS.queue, DEFAULTS.alpha) == (5, 120, 200, 20)
    assert (DEFAULTS.beta, DEFAULTS.theta, DEFAULTS.gamma) == (2000, 5, 4)
    assert (DEFAULTS.interval, DEFAULTS.duration, DEFAULTS.quiet) == (100, 7200, 200)


@pytest.mark.parametrize("one", NUMBERS, ids=lambda one: one.name)
def test_a_number_below_or_above_its_limits_is_refused_with_its_name(one: Any) -> None:
    for wrong in (one.metadata["least"] - 1, one.metadata["most"] * 2 + 1, float("nan")):
        with pytest.raises(WrongParameter) as caught:
            Parameters(**{**ROOMY, one.name: wrong})
        assert caught.value.name == one.name


@pytest.mark.parametrize("one", [one for one in fields(Parameters) if "choices" in one.metadata])
def test_a_choice_that_there_is_not_is_refused(one: Any) -> None:
    with pytest.raises(WrongParameter, match="choose"):
        Parameters(**{one.name: "other"})
    for choice in one.metadata["choices"]:
        assert getattr(Parameters(**{one.name: choice}), one.name) == choice


def test_parameters_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(WrongParameter, match="above speed_max"):
        Parameters(speed_min=3, speed_max=2)
    with pytest.raises(WrongParameter, match="whole duration"):
        Parameters(duration=200, quiet=200)
    assert Parameters(duration=201, quiet=200).quiet == 200


def test_a_run_with_too_large_tables_is_refused_before_it_takes_memory() -> None:
    assert replace(DEFAULTS, queue=100_000)
    with pytest.raises(WrongParameter, match="table cells"):
        replace(DEFAULTS, queue=100_000, mobiles=11)


def test_the_bandwidth_limits_the_events_per_second_if_that_is_less() -> None:
    assert DEFAULTS.events_per_second == 20
    assert replace(DEFAULTS, rate=100).events_per_second == 40
    assert replace(DEFAULTS, bandwidth=1).events_per_second == 1
