"""Contacts of subscribers with communities: announced paths, and the levels by which events flow to them.

A subscriber announces the cells up to its waypoint when it meets a group, and again when it learns another
waypoint. Sensors that reach the path are level 1, their neighbours level 2, and so on. A level-1 sensor that
has lost the subscriber leaves its level, and so do those that have no other path; with the reading `rebuild`
the levels are made anew instead. A level of 0 means that the sensor has no path to the subscriber.
"""

from __future__ import annotations

from hpwsn.dtn.scenario.scenario import World
from hpwsn.dtn.simulation.simulation_state import ANNOUNCED, Rules, State

_NEVER = 2**62


def follow_contacts(world: World, state: State, rules: Rules, t: int, mobile: int) -> None:
    """Begin, renew and end the subscriber's contacts for this second."""
    cell = world.mobile_cell[t, mobile]
    for i in range(world.near_start[cell], world.near_start[cell + 1]):
        sensor = world.near[i]
        state.in_reach[mobile, sensor] = t
        group = world.group[sensor]
        if state.group_seen[mobile, group] == t:
            continue
        state.group_seen[mobile, group] = t
        if state.session[mobile, group] == 0:
            state.active[mobile, state.active_count[mobile]] = group
            state.active_count[mobile] += 1
            announce(world, state, rules, t, mobile, group)
        elif state.session_leg[mobile, group] != world.leg[t, mobile]:
            announce(world, state, rules, t, mobile, group)
    kept = 0
    for i in range(state.active_count[mobile]):
        group = state.active[mobile, i]
        if state.group_seen[mobile, group] != t:
            end_session(world, state, mobile, group)
            continue
        if t > state.closes[mobile, group]:
            close_paths(world, state, rules, t, mobile, group)
        state.active[mobile, kept] = group
        kept += 1
    state.active_count[mobile] = kept


def announce(world: World, state: State, rules: Rules, t: int, mobile: int, group: int) -> None:
    """Tell the group the path up to the subscriber's waypoint."""
    state.tally[ANNOUNCED] += 1
    number = state.tally[ANNOUNCED]
    if rules.resend == 0 or (rules.resend == 1 and state.session[mobile, group] == 0):
        state.mark[mobile, group] = number
    elif rules.resend == 2:
        state.mark[mobile, group] = 1
    state.session[mobile, group] = number
    state.session_leg[mobile, group] = world.leg[t, mobile]
    for i in range(world.member_start[group], world.member_start[group + 1]):
        state.last_contact[mobile, world.members[i]] = -1
    second = t
    while second < world.leg.shape[0] and world.leg[second, mobile] == world.leg[t, mobile]:
        cell = world.mobile_cell[second, mobile]
        # All seconds in the same cell at once.
        while (
            second + 1 < world.leg.shape[0]
            and world.leg[second + 1, mobile] == world.leg[t, mobile]
            and world.mobile_cell[second + 1, mobile] == cell
        ):
            second += 1
        for i in range(world.near_start[cell], world.near_start[cell + 1]):
            if world.group[world.near[i]] == group:
                state.last_contact[mobile, world.near[i]] = second
        second += 1
    build_levels(world, state, t, mobile, group)


def build_levels(world: World, state: State, t: int, mobile: int, group: int) -> None:
    """Give every sensor of the group its level, from those that still reach the path."""
    first, last = world.member_start[group], world.member_start[group + 1]
    found = first
    state.closes[mobile, group] = _NEVER
    for i in range(first, last):
        sensor = world.members[i]
        state.todo[mobile, sensor] = 1
        state.level[mobile, sensor] = 0
        if state.last_contact[mobile, sensor] >= t:
            state.level[mobile, sensor] = 1
            state.level_order[mobile, found] = sensor
            found += 1
            if state.last_contact[mobile, sensor] < state.closes[mobile, group]:
                state.closes[mobile, group] = state.last_contact[mobile, sensor]
    # Members of a group fill their part of the order: from level 1 down.
    reached = first
    while reached < found:
        sensor = state.level_order[mobile, reached]
        reached += 1
        for i in range(world.link_start[sensor], world.link_start[sensor + 1]):
            other = world.links[i]
            if state.level[mobile, other] == 0:
                state.level[mobile, other] = state.level[mobile, sensor] + 1
                state.level_order[mobile, found] = other
                found += 1


def close_paths(world: World, state: State, rules: Rules, t: int, mobile: int, group: int) -> None:
    """Drop the paths through level-1 sensors that have lost the subscriber."""
    first, last = world.member_start[group], world.member_start[group + 1]
    if rules.rebuild == 1:
        build_levels(world, state, t, mobile, group)
    else:
        state.closes[mobile, group] = _NEVER
        for i in range(first, last):
            sensor = state.level_order[mobile, i]
            if state.level[mobile, sensor] == 1:
                if state.last_contact[mobile, sensor] < t:
                    state.level[mobile, sensor] = 0
                elif state.last_contact[mobile, sensor] < state.closes[mobile, group]:
                    state.closes[mobile, group] = state.last_contact[mobile, sensor]
            elif state.level[mobile, sensor] > 1 and parents(world, state, mobile, sensor) == 0:
                state.level[mobile, sensor] = 0
    for i in range(first, last):
        if state.level[mobile, world.members[i]] == 0:
            strand(state, mobile, world.members[i])


def parents(world: World, state: State, mobile: int, sensor: int) -> int:
    """How many neighbours of the sensor are one level above it."""
    count = 0
    for i in range(world.link_start[sensor], world.link_start[sensor + 1]):
        if state.level[mobile, world.links[i]] == state.level[mobile, sensor] - 1:
            count += 1
    return count


def parent(world: World, state: State, mobile: int, sensor: int, which: int) -> int:
    """One of the sensor's parents, counted from 0."""
    count = 0
    for i in range(world.link_start[sensor], world.link_start[sensor + 1]):
        if state.level[mobile, world.links[i]] == state.level[mobile, sensor] - 1:
            if count == which:
                return int(world.links[i])
            count += 1
    return -1


def end_session(world: World, state: State, mobile: int, group: int) -> None:
    """Forget the levels when the subscriber is out of reach of the whole group."""
    state.session[mobile, group] = 0
    for i in range(world.member_start[group], world.member_start[group + 1]):
        state.level[mobile, world.members[i]] = 0
        strand(state, mobile, world.members[i])


def strand(state: State, mobile: int, sensor: int) -> None:
    """Let relayed copies that cannot reach this subscriber wait for any other."""
    freed = 0
    for i in range(state.length[sensor]):
        copy = state.queue[sensor, i]
        if state.copy_target[copy] == mobile:
            state.copy_target[copy] = -1
            freed = 1
    if freed == 1:
        state.todo[:, sensor] = 1
