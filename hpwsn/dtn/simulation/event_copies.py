"""The queues of sensors: copies of events in order, and what ends them.

CET's order is fewest successful transmissions first, then the youngest; other protocols have the youngest
first. Events are numbered by age, so the youngest has the highest number. A full queue accepts nothing; with
the protocols that replicate, the newest events stay and the oldest one gives way.
"""

from __future__ import annotations

from hpwsn.dtn.scenario.scenario import World
from hpwsn.dtn.simulation.simulation_state import (
    BORN,
    EXPIRED,
    FREE,
    LOG_BORN,
    LOG_DROPPED,
    LOGGED,
    REFUSED,
    TOO_OFTEN,
    TOO_OLD,
    Rules,
    State,
)


def note(state: State, t: float, kind: int, event: int, giver: int, taker: int) -> None:
    """Add a line to the log, if it has room."""
    line = state.tally[LOGGED]
    if line < state.log.shape[0]:
        state.log[line, 0] = t
        state.log[line, 1] = kind
        state.log[line, 2] = event
        state.log[line, 3] = giver
        state.log[line, 4] = taker
        state.tally[LOGGED] = line + 1


def outranks(state: State, rules: Rules, a: int, b: int) -> bool:
    """Whether copy a comes before copy b in a queue."""
    if rules.fewest_first == 1 and state.copy_count[a] != state.copy_count[b]:
        return bool(state.copy_count[a] < state.copy_count[b])
    return bool(state.copy_event[a] > state.copy_event[b])


def has_room(state: State, rules: Rules, sensor: int, event: int) -> bool:
    """Whether the sensor's queue would accept the event."""
    length, capacity = state.length[sensor], state.queue.shape[1]
    if length < capacity:
        return True
    return rules.newest_stay == 1 and state.copy_event[state.queue[sensor, capacity - 1]] < event


def insert(
    state: State, rules: Rules, t: float, sensor: int, event: int, own: int, count: int, target: int
) -> int:
    """Put a copy into the sensor's queue; the number of the copy, or -1 if the queue does not accept it."""
    if not has_room(state, rules, sensor, event):
        return -1
    if state.length[sensor] == state.queue.shape[1]:
        drop(state, t, state.queue[sensor, state.length[sensor] - 1])
        state.tally[REFUSED] += 1
    state.tally[FREE] -= 1
    copy = state.free[state.tally[FREE]]
    state.copy_event[copy] = event
    state.copy_place[copy] = sensor
    state.copy_own[copy] = own
    state.copy_count[copy] = count
    state.copy_target[copy] = target
    state.copy_sent[copy, :] = 0
    state.copy_next[copy] = state.first_copy[event]
    state.first_copy[event] = copy
    state.copies_at[event, sensor] += 1
    state.held[event, sensor] = 1
    place = state.length[sensor]
    while place > 0 and outranks(state, rules, copy, state.queue[sensor, place - 1]):
        state.queue[sensor, place] = state.queue[sensor, place - 1]
        place -= 1
    state.queue[sensor, place] = copy
    state.length[sensor] += 1
    if target < 0:
        state.todo[:, sensor] = 1
    else:
        state.todo[target, sensor] = 1
    return int(copy)


def remove(state: State, copy: int) -> None:
    """Take a copy out of its queue, and free its number."""
    sensor, event = state.copy_place[copy], state.copy_event[copy]
    place = 0
    while state.queue[sensor, place] != copy:
        place += 1
    for i in range(place, state.length[sensor] - 1):
        state.queue[sensor, i] = state.queue[sensor, i + 1]
    state.length[sensor] -= 1
    if state.first_copy[event] == copy:
        state.first_copy[event] = state.copy_next[copy]
    else:
        before = state.first_copy[event]
        while state.copy_next[before] != copy:
            before = state.copy_next[before]
        state.copy_next[before] = state.copy_next[copy]
    state.copies_at[event, sensor] -= 1
    state.free[state.tally[FREE]] = copy
    state.tally[FREE] += 1


def copy_queue(state: State, sensor: int) -> int:
    """Put the sensor's queue into `waiting`, so that it may change meanwhile; its length."""
    for i in range(state.length[sensor]):
        state.waiting[i] = state.queue[sensor, i]
    return int(state.length[sensor])


def drop(state: State, t: float, copy: int) -> None:
    """Remove a copy that a rule ends."""
    note(state, t, LOG_DROPPED, state.copy_event[copy], state.copy_place[copy], -1)
    remove(state, copy)


def count_transmission(state: State, rules: Rules, t: float, copy: int) -> None:
    """Count a transmission by the owner; the copy moves back in its queue, or ends beyond alpha."""
    state.copy_count[copy] += 1
    if state.copy_count[copy] > rules.alpha:
        drop(state, t, copy)
        state.tally[TOO_OFTEN] += 1
        return
    sensor = state.copy_place[copy]
    place = 0
    while state.queue[sensor, place] != copy:
        place += 1
    last = state.length[sensor] - 1
    while place < last and outranks(state, rules, state.queue[sensor, place + 1], copy):
        state.queue[sensor, place] = state.queue[sensor, place + 1]
        place += 1
    state.queue[sensor, place] = copy


def create_events(world: World, state: State, rules: Rules, t: int) -> None:
    """Put the events created since the last second into the queues of their sensors."""
    while state.tally[BORN] < world.created.size and world.created[state.tally[BORN]] <= t:
        event = state.tally[BORN]
        state.tally[BORN] += 1
        sensor = world.origin[event]
        if insert(state, rules, t, sensor, event, 1, 0, -1) >= 0:
            note(state, t, LOG_BORN, event, -1, sensor)
        else:
            state.tally[REFUSED] += 1


def expire_events(world: World, state: State, rules: Rules, t: int) -> None:
    """Drop all copies of events whose survival time exceeds beta."""
    while state.tally[EXPIRED] < state.tally[BORN] and t - world.created[state.tally[EXPIRED]] > rules.beta:
        event = state.tally[EXPIRED]
        while state.first_copy[event] >= 0:
            drop(state, t, state.first_copy[event])
            state.tally[TOO_OLD] += 1
        state.tally[EXPIRED] += 1


def begin_second(world: World, state: State, rules: Rules, t: int) -> None:
    """What every protocol does first: old events end, new ones begin, and all may send again."""
    expire_events(world, state, rules, t)
    create_events(world, state, rules, t)
    state.sent_now[:] = 0
    state.received_now[:] = 0
