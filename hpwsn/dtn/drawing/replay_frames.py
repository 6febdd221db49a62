"""Records a run for drawing: what can be seen at regular times, and the transmissions between two of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from hpwsn.dtn.scenario.scenario import Scenario, draw_scenario
from hpwsn.dtn.scenario.simulation_parameters import Parameters
from hpwsn.dtn.simulation.simulation import Simulation
from hpwsn.dtn.simulation.simulation_state import (
    LOG_COPIED,
    LOG_GIVEN,
    LOG_MOVED,
    LOG_TAKEN,
    LOGGED,
    Protocol,
)

MOST_FRAMES = 400
MOST_LINES = 200
"""Lines in a frame; of more, those with the most transmissions."""
MOST_LOGGED = 2_000_000
KINDS = {LOG_COPIED: "up", LOG_MOVED: "up", LOG_TAKEN: "taken", LOG_GIVEN: "given"}


@dataclass(frozen=True, slots=True)
class Frame:
    """A moment: places of subscribers, lengths of queues, and who sent to whom since the last frame."""

    time: int
    mobiles: list[tuple[float, float]]
    queued: list[int]
    heads: list[int]
    lines: list[tuple[str, int, int, int]]
    """Kind (up, taken, given), giver, taker, transmissions; subscribers are numbered after the sensors."""
    created: int
    received: int
    wanted: int
    """Receptions that subscribers want of the events created so far."""


@dataclass(frozen=True, slots=True)
class Replay:
    """A recorded run."""

    parameters: Parameters
    protocol: Protocol
    seed: int
    sensors: list[tuple[float, float]]
    groups: list[int]
    links: list[tuple[int, int]]
    frames: list[Frame]


def record(parameters: Parameters, protocol: Protocol, seed: int) -> Replay:
    """Run the first scenario of the seed, and stop for every frame."""
    scenario = draw_scenario(parameters, seed)
    simulation = Simulation(scenario, protocol, seed, log_lines=MOST_LOGGED)
    step = max(1, -(-parameters.duration // MOST_FRAMES))
    frames: list[Frame] = []
    logged = 0
    for time in range(step, parameters.duration + step, step):
        simulation.run_until(time)
        end = int(simulation.state.tally[LOGGED])
        frames.append(_frame(simulation, logged, end))
        logged = end
    field = scenario.field
    return Replay(
        parameters,
        protocol,
        seed,
        [(round(x, 1), round(y, 1)) for x, y in zip(field.x.tolist(), field.y.tolist(), strict=True)],
        [-1 if field.loner[group] else int(group) for group in field.group],
        _links(scenario),
        frames,
    )


def _links(scenario: Scenario) -> list[tuple[int, int]]:
    return [
        (sensor, int(other))
        for sensor in range(scenario.field.x.size)
        for other in scenario.field.links[sensor]
        if other > sensor
    ]


def _frame(simulation: Simulation, first: int, last: int) -> Frame:
    world, state, time = simulation.world, simulation.state, simulation.time
    counted = Counter(
        (KINDS[int(kind)], int(giver), int(taker))
        for _, kind, _, giver, taker in state.log[first:last]
        if int(kind) in KINDS
    )
    created = int(np.searchsorted(world.created, time, side="right"))
    places = zip(world.mobile_x[time].tolist(), world.mobile_y[time].tolist(), strict=True)
    return Frame(
        time,
        [(round(x, 1), round(y, 1)) for x, y in places],
        state.length.tolist(),
        [head for head in state.head.tolist() if head >= 0],
        [(*line, count) for line, count in counted.most_common(MOST_LINES)],
        created,
        int((state.received_at >= 0).sum()),
        int(world.wants[:created].sum()),
    )
