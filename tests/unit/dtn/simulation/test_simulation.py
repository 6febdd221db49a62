"""A run of any protocol is the same for the same seed, and its measures lie within what is possible."""

from __future__ import annotations

import pytest

from hpwsn.dtn.scenario.scenario import draw_scenario
from hpwsn.dtn.scenario.simulation_parameters import Parameters
from hpwsn.dtn.simulation.simulation import Simulation
from hpwsn.dtn.simulation.simulation_state import PROTOCOLS

SMALL = Parameters(sensors=20, mobiles=4, duration=400, quiet=100)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_small_run_delivers_some_of_what_is_wanted(protocol: str) -> None:
    simulation = Simulation(draw_scenario(SMALL, 1), protocol, 1, interpreted=True)
    simulation.run_until(SMALL.duration)
    outcome = simulation.outcome()
    assert 0 < outcome.received <= outcome.wanted
    assert outcome.delay is not None
    assert 0 <= outcome.delay <= SMALL.duration
