"""CET: events flow up the levels of a community to the subscriber; owners keep theirs, relays forget them.

A second is enough for an event to pass all levels, unless a node has sent or taken all that its rate allows.
A sensor with several parents uses them in turn. What a relay holds for a subscriber goes to that one only,
until its path is lost; then it waits for any subscriber that wants it.
"""

from __future__ import annotations

from hpwsn.dtn.scenario.scenario import World
from hpwsn.dtn.simulation.community_heads import check_heads
from hpwsn.dtn.simulation.contact_sessions import follow_contacts, parent, parents
from hpwsn.dtn.simulation.event_copies import (
    begin_second,
    copy_queue,
    count_transmission,
    has_room,
    insert,
    note,
    remove,
)
from hpwsn.dtn.simulation.giving_back import give_back, keep_for_giving
from hpwsn.dtn.simulation.simulation_state import LOG_COPIED, LOG_MOVED, OWNER_SENT, Rules, State
from hpwsn.dtn.simulation.transfers import send_to_mobile, send_to_sensor


def run_cet(world: World, state: State, rules: Rules, first: int, last: int) -> None:
    """Run CET from second `first` up to `last`, inclusive."""
    for t in range(first, last + 1):
        begin_second(world, state, rules, t)
        check_heads(world, state, rules)
        for mobile in range(world.mobile_x.shape[1]):
            follow_contacts(world, state, rules, t, mobile)
        for mobile in range(world.mobile_x.shape[1]):
            for i in range(state.active_count[mobile]):
                collect(world, state, rules, t, mobile, state.active[mobile, i])
        if rules.giving_back == 1:
            for mobile in range(world.mobile_x.shape[1]):
                give_back(world, state, rules, t, mobile)


def collect(world: World, state: State, rules: Rules, t: int, mobile: int, group: int) -> None:
    """Let the sensors of a group send towards the subscriber, the deepest level first."""
    for i in range(world.member_start[group + 1] - 1, world.member_start[group] - 1, -1):
        sensor = state.level_order[mobile, i]
        level = state.level[mobile, sensor]
        if level == 0 or state.todo[mobile, sensor] == 0:
            continue
        if level > 1 or state.in_reach[mobile, sensor] == t:
            state.todo[mobile, sensor] = send_queue(world, state, rules, t, mobile, sensor)


def is_for(world: World, state: State, rules: Rules, mobile: int, copy: int) -> bool:
    """Whether a copy is to be sent to the subscriber now."""
    target = state.copy_target[copy]
    if target >= 0:
        return bool(target == mobile)
    if rules.all_travel == 0 and world.wants[state.copy_event[copy], mobile] == 0:
        return False
    if state.copy_own[copy] == 0:
        return True
    group = world.group[state.copy_place[copy]]
    return bool(state.copy_sent[copy, mobile] != state.mark[mobile, group])


def send_queue(world: World, state: State, rules: Rules, t: int, mobile: int, sensor: int) -> int:
    """Send what the sensor has for the subscriber, in order; 1 if something could not be sent."""
    count, left = copy_queue(state, sensor), 0
    for i in range(count):
        copy = state.waiting[i]
        if not is_for(world, state, rules, mobile, copy):
            continue
        if state.sent_now[sensor] >= rules.rate:
            return 1
        if state.level[mobile, sensor] == 1:
            if state.received_now[mobile] >= rules.rate:
                return 1
            sent = hand_over(world, state, rules, t, mobile, sensor, copy)
        else:
            sent = pass_on(world, state, rules, t, mobile, sensor, copy)
        if not sent:
            left = 1
    return left


def hand_over(world: World, state: State, rules: Rules, t: int, mobile: int, sensor: int, copy: int) -> bool:
    """Send a copy to the subscriber, which takes what it wants."""
    event, count = state.copy_event[copy], state.copy_count[copy]
    if not send_to_mobile(world, state, rules, t, sensor, mobile, event):
        return False
    if world.wants[event, mobile] == 1 and state.taken[event, mobile] == 0:
        keep_for_giving(world, state, rules, mobile, event, count)
    sent_by(world, state, rules, t, mobile, copy)
    return True


def pass_on(world: World, state: State, rules: Rules, t: int, mobile: int, sensor: int, copy: int) -> bool:
    """Send a copy one level up, to the next parent in turn that accepts it; False if none does."""
    event, count, own = state.copy_event[copy], state.copy_count[copy], state.copy_own[copy]
    number = parents(world, state, mobile, sensor)
    for _ in range(number):
        taker = parent(world, state, mobile, sensor, state.turn[sensor] % number)
        state.turn[sensor] += 1
        known = relays(state, taker, event, mobile)
        if not known and not has_room(state, rules, taker, event):
            continue
        if not send_to_sensor(world, state, rules, t, sensor, taker):
            return False
        note(state, t, LOG_COPIED if own == 1 else LOG_MOVED, event, sensor, taker)
        sent_by(world, state, rules, t, mobile, copy)
        if not known:
            insert(state, rules, t, taker, event, 0, count, mobile)
        return True
    return False


def relays(state: State, sensor: int, event: int, mobile: int) -> bool:
    """Whether the sensor already holds the event on its way to the subscriber."""
    if state.copies_at[event, sensor] == 0:
        return False
    copy = state.first_copy[event]
    while copy >= 0:
        if state.copy_place[copy] == sensor and state.copy_target[copy] == mobile:
            return True
        copy = state.copy_next[copy]
    return False


def sent_by(world: World, state: State, rules: Rules, t: int, mobile: int, copy: int) -> None:
    """Count what an owner has sent; forget what a relay has sent."""
    if state.copy_own[copy] == 0:
        remove(state, copy)
        return
    state.tally[OWNER_SENT] += 1
    state.copy_sent[copy, mobile] = state.mark[mobile, world.group[state.copy_place[copy]]]
    count_transmission(state, rules, t, copy)
