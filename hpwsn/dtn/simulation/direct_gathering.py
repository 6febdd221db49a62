"""DG, direct gathering: a sensor sends its own events to a subscriber in contact, the newest first.

The readings: the contact is the sensor's own cell or the cells around it too; the sensor sends its newest
events every second, or when the subscriber enters a cell, or each event once to each subscriber; the rate
limits each sensor, or each subscriber, which then serves the sensor first that it met first.
"""

from __future__ import annotations

from hpwsn.dtn.scenario.scenario import World
from hpwsn.dtn.simulation.event_copies import begin_second
from hpwsn.dtn.simulation.simulation_state import OWNER_SENT, Rules, State
from hpwsn.dtn.simulation.transfers import send_to_mobile


def run_dg(world: World, state: State, rules: Rules, first: int, last: int) -> None:
    """Run DG from second `first` up to `last`, inclusive."""
    for t in range(first, last + 1):
        begin_second(world, state, rules, t)
        for mobile in range(world.mobile_x.shape[1]):
            gather(world, state, rules, t, mobile)


def gather(world: World, state: State, rules: Rules, t: int, mobile: int) -> None:
    """Let every sensor in contact send to the subscriber."""
    cell = world.mobile_cell[t, mobile]
    entered = t == 0 or world.mobile_cell[t - 1, mobile] != cell
    if rules.repeat == 1 and not entered:
        return
    start, sensors = world.inside_start, world.inside
    if rules.neighbours == 1:
        start, sensors = world.near_start, world.near
    count = start[cell + 1] - start[cell]
    for i in range(count):
        sensor = sensors[start[cell] + i]
        state.waiting[i] = sensor
        if state.in_reach[mobile, sensor] < t - 1:
            state.met_since[mobile, sensor] = t
        state.in_reach[mobile, sensor] = t
    if rules.mobile_budget == 1:
        order_by_meeting(state, mobile, count)
    for i in range(count):
        send_newest(world, state, rules, t, mobile, state.waiting[i])


def order_by_meeting(state: State, mobile: int, count: int) -> None:
    """Put the sensor that the subscriber met first to the front of `waiting`."""
    for i in range(1, count):
        sensor, place = state.waiting[i], i
        since = state.met_since[mobile, sensor]
        while place > 0 and state.met_since[mobile, state.waiting[place - 1]] > since:
            state.waiting[place] = state.waiting[place - 1]
            place -= 1
        state.waiting[place] = sensor


def send_newest(world: World, state: State, rules: Rules, t: int, mobile: int, sensor: int) -> None:
    """Send the newest events of the sensor's queue, as many as the rate allows."""
    sent = 0
    for i in range(state.length[sensor]):
        if sent >= rules.rate or (rules.mobile_budget == 1 and state.received_now[mobile] >= rules.rate):
            return
        copy = state.queue[sensor, i]
        if rules.repeat == 2 and state.copy_sent[copy, mobile] == 1:
            continue
        event = state.copy_event[copy]
        if not send_to_mobile(world, state, rules, t, sensor, mobile, event):
            return
        sent += 1
        state.tally[OWNER_SENT] += 1
        state.copy_sent[copy, mobile] = 1
        if world.wants[event, mobile] == 1:
            state.taken[event, mobile] = 1
            state.held[event, world.x.size + mobile] = 1
