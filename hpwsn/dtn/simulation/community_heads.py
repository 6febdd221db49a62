"""Heads of communities: their election, and the random tree by which they place what is given back.

The sensor with the most energy is the head; it is replaced when its energy falls under theta. All neighbours
of the head are its children; sensors further down choose a parent at random among their neighbours one step
nearer to the head. Events are placed in pre-order of this tree, round and round.
"""

from __future__ import annotations

from hpwsn.dtn.scenario.scenario import World
from hpwsn.dtn.simulation.simulation_state import ELECTIONS, Rules, State


def check_heads(world: World, state: State, rules: Rules) -> None:
    """Elect a head in every community that has none, or whose head has too little energy."""
    for group in range(world.loner.size):
        if world.loner[group] == 1:
            continue
        head = state.head[group]
        if head >= 0 and state.energy[head] >= rules.theta:
            continue
        best = strongest(world, state, group)
        if best != head:
            state.head[group] = best
            state.tally[ELECTIONS] += 1
            plant_tree(world, state, group)


def strongest(world: World, state: State, group: int) -> int:
    """The sensor of the group with the most energy, of equal ones the first."""
    best = world.members[world.member_start[group]]
    for i in range(world.member_start[group], world.member_start[group + 1]):
        if state.energy[world.members[i]] > state.energy[best]:
            best = world.members[i]
    return int(best)


def draw(state: State, below: int) -> int:
    """A pseudo-random number from 0 up to `below`, exclusive."""
    state.random[0] = (state.random[0] * 1103515245 + 12345) % 2147483648
    return int((state.random[0] >> 8) % below)


def plant_tree(world: World, state: State, group: int) -> None:
    """Build the random tree from the head of the group, and start to place at the head."""
    first, last = world.member_start[group], world.member_start[group + 1]
    for i in range(first, last):
        state.tree_depth[world.members[i]] = -1
        state.tree_parent[world.members[i]] = -1
    state.tree_depth[state.head[group]] = 0
    measure_depths(world, state, group)
    for i in range(first, last):
        choose_parent(world, state, world.members[i])
    # Pre-order: the next sensor of the order is on top of the stack, which fills the part from the end.
    state.tree_place[group] = 0
    stack = last - 1
    state.tree_order[stack] = state.head[group]
    for place in range(first, last):
        sensor = state.tree_order[stack]
        stack += 1
        state.tree_order[place] = sensor
        for i in range(world.link_start[sensor + 1] - 1, world.link_start[sensor] - 1, -1):
            if state.tree_parent[world.links[i]] == sensor:
                stack -= 1
                state.tree_order[stack] = world.links[i]


def measure_depths(world: World, state: State, group: int) -> None:
    """Give every sensor of the group its distance from the head in hops."""
    first, last = world.member_start[group], world.member_start[group + 1]
    state.tree_order[first] = state.head[group]
    found, reached = first + 1, first
    while reached < last:
        sensor = state.tree_order[reached]
        reached += 1
        for i in range(world.link_start[sensor], world.link_start[sensor + 1]):
            other = world.links[i]
            if state.tree_depth[other] < 0:
                state.tree_depth[other] = state.tree_depth[sensor] + 1
                state.tree_order[found] = other
                found += 1


def choose_parent(world: World, state: State, sensor: int) -> None:
    """Choose a parent at random among the neighbours that are nearer to the head."""
    if state.tree_depth[sensor] == 0:
        return
    count = 0
    for i in range(world.link_start[sensor], world.link_start[sensor + 1]):
        if state.tree_depth[world.links[i]] == state.tree_depth[sensor] - 1:
            count += 1
    which = draw(state, count)
    for i in range(world.link_start[sensor], world.link_start[sensor + 1]):
        if state.tree_depth[world.links[i]] == state.tree_depth[sensor] - 1:
            if which == 0:
                state.tree_parent[sensor] = world.links[i]
            which -= 1
