"""Small networks for tests of the simulator, placed by hand: cells of 10 m, sensors in the middle of a cell.

A walk is a list of legs, a leg is a list of cells, one a second; the subscriber stays in the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hpwsn.dtn.scenario.random_waypoint import Motion
from hpwsn.dtn.scenario.scenario import Events, Scenario
from hpwsn.dtn.scenario.sensor_communities import Floats, Ints, cell_numbers, sensor_field
from hpwsn.dtn.scenario.simulation_parameters import Parameters
from hpwsn.dtn.simulation.simulation import Simulation
from hpwsn.dtn.simulation.simulation_state import LOGGED, Protocol

Cell = tuple[int, int]
Walk = Sequence[Sequence[Cell]]
FAR: Cell = (9, 9)
"""A cell in which a subscriber waits out of reach of everything that tests place elsewhere."""


def network(
    sensors: Sequence[Cell],
    walks: Sequence[Walk],
    events: Sequence[tuple[float, int]],
    wants: Sequence[Sequence[int]] | None = None,
    **parameters: Any,
) -> Scenario:
    """A scenario; events are (created, sensor) in order of time, and all subscribers want all by default."""
    given = Parameters(
        **{
            "area": 100.0,
            "grid": 10,
            "sensors": len(sensors),
            "mobiles": len(walks),
            "duration": 100,
            "quiet": 1.0,
            **parameters,
        }
    )
    x, y = (np.array([10.0 * cell[axis] + 5 for cell in sensors]) for axis in (0, 1))
    created = np.array([each[0] for each in events], np.float64)
    origin = np.array([each[1] for each in events], np.int64)
    wanted = np.ones((len(events), len(walks)), np.uint8) if wants is None else np.array(wants, np.uint8)
    field = sensor_field(x, y, given)
    return Scenario(given, field, motion_of(walks, given), Events(created, origin, wanted))


def motion_of(walks: Sequence[Walk], parameters: Parameters) -> Motion:
    """The motion along the walks."""
    shape = (parameters.duration + 1, len(walks))
    x: Floats = np.zeros(shape)
    y: Floats = np.zeros(shape)
    legs: Ints = np.zeros(shape, np.int64)
    for mobile, walk in enumerate(walks):
        steps = [(cell, number) for number, leg in enumerate(walk, 1) for cell in leg]
        for second in range(shape[0]):
            cell, number = steps[min(second, len(steps) - 1)]
            x[second, mobile], y[second, mobile] = 10.0 * cell[0] + 5, 10.0 * cell[1] + 5
            legs[second, mobile] = number
    return Motion(x, y, cell_numbers(x, y, parameters), legs)


def run(scenario: Scenario, protocol: Protocol, second: int) -> Simulation:
    """A simulation that is interpreted up to the second, with a log."""
    simulation = Simulation(scenario, protocol, 1, interpreted=True, log_lines=100_000)
    simulation.run_until(second)
    return simulation


def queued(simulation: Simulation, sensor: int) -> list[int]:
    """The events in a sensor's queue, in order."""
    state = simulation.state
    return [int(state.copy_event[copy]) for copy in state.queue[sensor, : state.length[sensor]]]


def received(simulation: Simulation, mobile: int = 0) -> dict[int, int]:
    """When the subscriber received each event."""
    times = simulation.state.received_at[:, mobile]
    return {event: int(time) for event, time in enumerate(times) if time >= 0}


def logged(simulation: Simulation, *kinds: int) -> list[tuple[int, int, int, int]]:
    """Lines of the log of these kinds: time, event, giver, taker."""
    log = simulation.state.log[: simulation.state.tally[LOGGED]]
    return [(int(t), int(event), int(a), int(b)) for t, kind, event, a, b in log if int(kind) in kinds]
