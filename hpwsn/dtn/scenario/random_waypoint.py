"""Random waypoint motion: a subscriber walks straight to a random place, pauses, and chooses the next one.

Speed and pause are uniform within their limits. Positions are those at whole seconds. A leg is the walk to a
waypoint with the pause after it; its number changes when the subscriber learns its next waypoint.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hpwsn.dtn.scenario.sensor_communities import Floats, Ints, cell_numbers
from hpwsn.dtn.scenario.simulation_parameters import Parameters

_LEGS_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Motion:
    """Where every subscriber is at each second from 0; arrays of seconds by subscribers."""

    x: Floats
    y: Floats
    cell: Ints
    leg: Ints


def random_waypoints(random: np.random.Generator, parameters: Parameters) -> Motion:
    """The motion of all subscribers, each from a random place."""
    walks = [_walk(generator, parameters) for generator in random.spawn(parameters.mobiles)]
    x, y = (np.column_stack([walk[axis] for walk in walks]) for axis in (0, 1))
    leg = np.column_stack([walk[2] for walk in walks]).astype(np.int64)
    return Motion(x, y, cell_numbers(x, y, parameters), leg)


def _walk(random: np.random.Generator, parameters: Parameters) -> tuple[Floats, Floats, Floats]:
    """Places and leg numbers of one subscriber."""
    seconds = np.arange(parameters.duration + 1, dtype=np.float64)
    start = random.uniform(0, parameters.area, 2)
    times, places, departures = [0.0], [start], [0.0]
    while times[-1] <= parameters.duration:
        targets = random.uniform(0, parameters.area, (_LEGS_AT_ONCE, 2))
        speeds = random.uniform(parameters.speed_min, parameters.speed_max, _LEGS_AT_ONCE)
        pauses = random.uniform(0, parameters.pause, _LEGS_AT_ONCE)
        for target, speed, pause in zip(targets, speeds, pauses, strict=True):
            distance = float(np.hypot(*(target - places[-1])))
            # A speed of 0 never arrives; the run ends first.
            arrival = times[-1] + distance / max(speed, 1e-9)
            times += [arrival, arrival + pause]
            places += [target, target]
            departures.append(times[-1])
    steps = np.array(places)
    x = np.interp(seconds, times, steps[:, 0])
    y = np.interp(seconds, times, steps[:, 1])
    leg = np.searchsorted(np.array(departures), seconds, side="right").astype(np.float64)
    return x, y, leg
