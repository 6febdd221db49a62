"""A scenario: all that is random in a run, drawn from a seed, so that every protocol gets the same.

Sensors, motion, events and subscriptions have random sequences of their own: a parameter of one of them does
not change the others. The World has the same as arrays, in the form that the simulator's functions take.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpwsn.dtn.scenario.random_waypoint import Motion, random_waypoints
from hpwsn.dtn.scenario.sensor_communities import Floats, Ints, SensorField, sensor_field
from hpwsn.dtn.scenario.simulation_parameters import Parameters

Flags = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Events:
    """Events in the order of their creation; `wants[e, m]` is 1 if subscriber m wants event e."""

    created: Floats
    origin: Ints
    wants: Flags


@dataclass(frozen=True, slots=True)
class Scenario:
    """The sensors, the motion of the subscribers, and the events of a run."""

    parameters: Parameters
    field: SensorField
    motion: Motion
    events: Events

    def world(self) -> World:
        """The scenario as arrays."""
        field, motion, events = self.field, self.motion, self.events
        return World(
            x=field.x,
            y=field.y,
            group=field.group,
            member_start=field.members.start,
            members=field.members.values,
            loner=field.loner,
            size=field.size,
            link_start=field.links.start,
            links=field.links.values,
            near_start=field.near.start,
            near=field.near.values,
            inside_start=field.inside.start,
            inside=field.inside.values,
            mobile_x=motion.x,
            mobile_y=motion.y,
            mobile_cell=motion.cell,
            leg=motion.leg,
            created=events.created,
            origin=events.origin,
            wants=events.wants,
        )


class World(NamedTuple):
    """What does not change during a run; lists of lists as in sensor_communities.Lists."""

    x: Floats
    y: Floats
    group: Ints
    member_start: Ints
    members: Ints
    loner: Ints
    size: Ints
    link_start: Ints
    links: Ints
    near_start: Ints
    near: Ints
    inside_start: Ints
    inside: Ints
    mobile_x: Floats
    mobile_y: Floats
    mobile_cell: Ints
    leg: Ints
    created: Floats
    origin: Ints
    wants: Flags


def draw_scenario(parameters: Parameters, seed: int, run: int = 0) -> Scenario:
    """The scenario of a run; the same for the same parameters, seed and number of the run."""
    places, motion, events = np.random.default_rng([seed, run]).spawn(3)
    x, y = (places.uniform(0, parameters.area, parameters.sensors) for _ in range(2))
    return Scenario(
        parameters,
        sensor_field(x, y, parameters),
        random_waypoints(motion, parameters),
        random_events(events, parameters),
    )


def random_events(random: np.random.Generator, parameters: Parameters) -> Events:
    """Events by a Poisson process at every sensor, and who of the subscribers wants them."""
    until = parameters.duration - parameters.quiet
    counts = random.poisson(until / parameters.interval, parameters.sensors)
    origin = np.repeat(np.arange(parameters.sensors, dtype=np.int64), counts)
    created = random.uniform(0, until, origin.size)
    order = np.argsort(created, kind="stable")
    values = random.integers(0, parameters.attribute_max, (origin.size, 2), endpoint=True)
    bounds = random.integers(0, parameters.attribute_max, (parameters.mobiles, 2), endpoint=True)
    wants: Flags = np.all(values[:, None, :] < bounds[None, :, :], axis=2).astype(np.uint8)
    return Events(created[order], origin[order], wants)
