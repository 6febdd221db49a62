"""The energy of transmissions, and events that pass from a sensor to a sensor or a subscriber.

Only sending and receiving events costs a sensor energy; subscribers have no limits. A bit costs the
electronics at both ends, and the amplifier of the sender by the square of the distance, beyond the range of
free space by its fourth power. A sensor that cannot pay neither sends nor receives.
"""

from __future__ import annotations

from hpwsn.dtn.scenario.scenario import World
from hpwsn.dtn.simulation.event_copies import note
from hpwsn.dtn.simulation.simulation_state import LOG_TAKEN, SENT, Rules, State


def sending_cost(rules: Rules, square: float) -> float:
    """The energy to send an event over a distance, given by its square."""
    amplifier = rules.amplifier * square
    if rules.multipath > 0 and square > rules.amplifier / rules.multipath:
        amplifier = rules.multipath * square * square
    return rules.bits * (rules.electronics + amplifier)


def receiving_cost(rules: Rules) -> float:
    """The energy to receive an event."""
    return rules.bits * rules.electronics


def pay(state: State, t: float, sensor: int, cost: float) -> bool:
    """Take the energy from the sensor; False if it has too little, and then nothing changes."""
    if state.energy[sensor] < cost:
        if t < state.empty_at[0]:
            state.empty_at[0] = t
        return False
    state.energy[sensor] -= cost
    return True


def send_to_sensor(world: World, state: State, rules: Rules, t: float, giver: int, taker: int) -> bool:
    """Pay for an event between neighbours; False if one of them cannot."""
    square = (world.x[giver] - world.x[taker]) ** 2 + (world.y[giver] - world.y[taker]) ** 2
    if state.energy[taker] < receiving_cost(rules):
        pay(state, t, taker, receiving_cost(rules))
        return False
    if not pay(state, t, giver, sending_cost(rules, square)):
        return False
    pay(state, t, taker, receiving_cost(rules))
    state.sent_now[giver] += 1
    state.tally[SENT] += 1
    return True


def send_to_mobile(
    world: World, state: State, rules: Rules, t: int, sensor: int, mobile: int, event: int
) -> bool:
    """Send an event to a subscriber in reach; False if the sensor cannot pay."""
    across = world.x[sensor] - world.mobile_x[t, mobile]
    up = world.y[sensor] - world.mobile_y[t, mobile]
    if not pay(state, t, sensor, sending_cost(rules, across * across + up * up)):
        return False
    state.sent_now[sensor] += 1
    state.received_now[mobile] += 1
    state.tally[SENT] += 1
    note(state, t, LOG_TAKEN, event, sensor, world.x.size + mobile)
    if world.wants[event, mobile] == 1 and state.received_at[event, mobile] < 0:
        state.received_at[event, mobile] = t
    return True
