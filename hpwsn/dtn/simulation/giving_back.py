"""Giving back: an idle subscriber leaves events of small groups with the community in contact.

The sensor in contact sends each event along the tree of the head to the sensor whose turn it is, which treats
it as its own. The subscriber deletes the event, and does not give it a second time.
"""

from __future__ import annotations

from hpwsn.dtn.scenario.scenario import World
from hpwsn.dtn.simulation.event_copies import has_room, insert, note
from hpwsn.dtn.simulation.simulation_state import (
    EXPIRED,
    GIVEN,
    LOG_GIVEN,
    LOG_STORED,
    Rules,
    State,
)
from hpwsn.dtn.simulation.transfers import pay, receiving_cost, send_to_sensor


def keep_for_giving(world: World, state: State, rules: Rules, mobile: int, event: int, count: int) -> None:
    """Remember an event that the subscriber has just taken, if it may be given back."""
    state.taken[event, mobile] = 1
    state.held[event, world.x.size + mobile] = 1
    origin = world.group[world.origin[event]]
    if world.size[origin] > rules.gamma or (rules.give_loners == 0 and world.loner[origin] == 1):
        return
    state.carried[event, mobile] = count
    state.cargo[mobile, state.cargo_length[mobile]] = event
    state.cargo_length[mobile] += 1


def give_back(world: World, state: State, rules: Rules, t: int, mobile: int) -> None:
    """Give as many events as fit into this second to the community in contact, if the subscriber is idle."""
    if state.received_now[mobile] > 0 or state.cargo_length[mobile] == 0:
        return
    contact = sensor_in_contact(world, state, t, mobile)
    if contact < 0:
        return
    group = world.group[contact]
    given, kept = 0, 0
    for i in range(state.cargo_length[mobile]):
        event = state.cargo[mobile, i]
        if event < state.tally[EXPIRED]:
            continue
        at_home = rules.give_home == 0 and world.group[world.origin[event]] == group
        if given < rules.rate and not at_home and place_event(world, state, rules, t, mobile, contact, event):
            given += 1
            continue
        state.cargo[mobile, kept] = event
        kept += 1
    state.cargo_length[mobile] = kept


def sensor_in_contact(world: World, state: State, t: int, mobile: int) -> int:
    """A sensor of a community that reaches the subscriber now, or -1."""
    cell = world.mobile_cell[t, mobile]
    for i in range(world.near_start[cell], world.near_start[cell + 1]):
        if world.loner[world.group[world.near[i]]] == 0:
            return int(world.near[i])
    return -1


def place_event(
    world: World, state: State, rules: Rules, t: int, mobile: int, contact: int, event: int
) -> bool:
    """Send an event to the next sensor of the tree's order that has room; False if there is none."""
    group = world.group[contact]
    first, members = world.member_start[group], world.member_start[group + 1] - world.member_start[group]
    tried = 0
    place = first + state.tree_place[group]
    while tried < members and not has_room(state, rules, state.tree_order[place], event):
        tried += 1
        place = first + (place + 1 - first) % members
    if tried == members or not pay(state, t, contact, receiving_cost(rules)):
        return False
    state.tree_place[group] = (place + 1 - first) % members
    note(state, t, LOG_GIVEN, event, world.x.size + mobile, contact)
    state.taken[event, mobile] = 2
    state.tally[GIVEN] += 1
    state.held[event, contact] = 1
    keeper = state.tree_order[place]
    if not send_along_tree(world, state, rules, t, contact, keeper):
        return True
    if not owns(state, keeper, event):
        insert(state, rules, t, keeper, event, 1, state.carried[event, mobile], -1)
        note(state, t, LOG_STORED, event, contact, keeper)
    return True


def send_along_tree(world: World, state: State, rules: Rules, t: int, giver: int, taker: int) -> bool:
    """Pay for every hop from one sensor to another along the tree; False if a sensor on the way cannot."""
    goal = taker
    while giver != goal:
        hop = state.tree_parent[giver]
        # Down from here if the taker is below this sensor: its ancestor one step deeper is the next hop.
        if state.tree_depth[goal] > state.tree_depth[giver]:
            below = goal
            while state.tree_depth[below] > state.tree_depth[giver] + 1:
                below = state.tree_parent[below]
            if state.tree_parent[below] == giver:
                hop = below
        if not send_to_sensor(world, state, rules, t, giver, hop):
            return False
        giver = hop
    return True


def owns(state: State, sensor: int, event: int) -> bool:
    """Whether the sensor has a copy of the event as its owner."""
    copy = state.first_copy[event]
    while copy >= 0:
        if state.copy_place[copy] == sensor and state.copy_own[copy] == 1:
            return True
        copy = state.copy_next[copy]
    return False
