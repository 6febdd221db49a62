"""Epidemic routing, Spray-and-Wait and PRoPHET on the same sensors and subscribers.

All nodes copy events to each other. Neighbouring sensors exchange at every hello, subscribers when they
meet a sensor and then at every hello. Epidemic gives everything that the other does not have. Spray-and-
Wait (binary) gives half of its remaining copies, and its last one only to a subscriber that wants it.
PRoPHET gives an event to a node that is more likely to meet one of those who want it: a meeting raises the
predictability of both nodes, time lowers all, and whoever a met node is likely to meet becomes more likely
too. Subscribers keep everything; a sensor's queue keeps the newest events.
"""

from __future__ import annotations

from hpwsn.dtn.scenario.scenario import World
from hpwsn.dtn.simulation.event_copies import begin_second, copy_queue, has_room, insert, note
from hpwsn.dtn.simulation.simulation_state import (
    BORN,
    EXPIRED,
    GIVEN,
    LOG_COPIED,
    LOG_GIVEN,
    OWNER_SENT,
    Rules,
    State,
)
from hpwsn.dtn.simulation.transfers import pay, receiving_cost, send_to_mobile, send_to_sensor

_SPRAY, _PROPHET = 3, 4
"""Values of Rules.peer: places in simulation_state.PROTOCOLS."""


def run_replication(world: World, state: State, rules: Rules, first: int, last: int) -> None:
    """Run the protocol of `rules.peer` from second `first` up to `last`, inclusive."""
    for t in range(first, last + 1):
        before = state.tally[BORN]
        begin_second(world, state, rules, t)
        give_shares(state, rules, before)
        if rules.peer == _PROPHET and t % rules.ageing_unit == 0:
            age(state, rules)
            meet_neighbours(world, state, rules)
        if t % rules.hello == 0:
            state.todo[:] = 1
            for sensor in range(world.x.size):
                for i in range(world.link_start[sensor], world.link_start[sensor + 1]):
                    exchange(world, state, rules, t, sensor, world.links[i])
        for mobile in range(world.mobile_x.shape[1]):
            meet_sensors(world, state, rules, t, mobile)


def give_shares(state: State, rules: Rules, before: int) -> None:
    """Give new events the number of copies that may be made of them."""
    for event in range(before, state.tally[BORN]):
        if state.first_copy[event] >= 0:
            state.copy_count[state.first_copy[event]] = rules.spray


def meet_sensors(world: World, state: State, rules: Rules, t: int, mobile: int) -> None:
    """Exchange events with every sensor in reach, as long as the rate allows."""
    cell = world.mobile_cell[t, mobile]
    given = 0
    for i in range(world.near_start[cell], world.near_start[cell + 1]):
        sensor = world.near[i]
        if state.in_reach[mobile, sensor] < t - 1:
            state.todo[mobile, sensor] = 1
            if rules.peer == _PROPHET:
                meet(world, state, rules, sensor, world.x.size + mobile)
        state.in_reach[mobile, sensor] = t
        if state.todo[mobile, sensor] == 1:
            left = take_events(world, state, rules, t, mobile, sensor)
            given, more = leave_events(world, state, rules, t, mobile, sensor, given)
            state.todo[mobile, sensor] = max(left, more)


def is_worth(
    world: World, state: State, rules: Rules, event: int, giver: int, taker: int, share: int
) -> bool:
    """Whether the protocol gives a copy of the event from one node to another that has none."""
    sensors = world.x.size
    if taker >= sensors and world.wants[event, taker - sensors] == 1:
        return True
    if rules.peer == _SPRAY:
        return share > 1
    if rules.peer == _PROPHET:
        for mobile in range(world.wants.shape[1]):
            goal = sensors + mobile
            if (
                world.wants[event, mobile] == 1
                and state.predictability[taker, goal] > state.predictability[giver, goal]
            ):
                return True
        return False
    return True


def exchange(world: World, state: State, rules: Rules, t: int, giver: int, taker: int) -> None:
    """Send from one sensor to its neighbour what that lacks, as much as the rate allows."""
    for i in range(copy_queue(state, giver)):
        copy = state.waiting[i]
        event, share = state.copy_event[copy], state.copy_count[copy]
        if state.copies_at[event, taker] > 0 or not has_room(state, rules, taker, event):
            continue
        if not is_worth(world, state, rules, event, giver, taker, share):
            continue
        if state.sent_now[giver] >= rules.rate * rules.hello:
            return
        if not send_to_sensor(world, state, rules, t, giver, taker):
            return
        state.tally[OWNER_SENT] += 1
        note(state, t, LOG_COPIED, event, giver, taker)
        state.copy_count[copy] = share - share // 2
        insert(state, rules, t, taker, event, 1, share // 2, -1)


def take_events(world: World, state: State, rules: Rules, t: int, mobile: int, sensor: int) -> int:
    """Let the subscriber take what it lacks and should have; 1 if the rate did not allow all."""
    for i in range(state.length[sensor]):
        copy = state.queue[sensor, i]
        event, share = state.copy_event[copy], state.copy_count[copy]
        if state.taken[event, mobile] > 0:
            continue
        if not is_worth(world, state, rules, event, sensor, world.x.size + mobile, share):
            continue
        if state.received_now[mobile] >= rules.rate or state.sent_now[sensor] >= rules.rate * rules.hello:
            return 1
        if not send_to_mobile(world, state, rules, t, sensor, mobile, event):
            return 0
        state.tally[OWNER_SENT] += 1
        state.taken[event, mobile] = 1
        state.held[event, world.x.size + mobile] = 1
        if share > 1:
            state.copy_count[copy] = share - share // 2
        state.carried[event, mobile] = share // 2
        state.cargo[mobile, state.cargo_length[mobile]] = event
        state.cargo_length[mobile] += 1
    return 0


def leave_events(
    world: World, state: State, rules: Rules, t: int, mobile: int, sensor: int, given: int
) -> tuple[int, int]:
    """Leave events with a sensor that lacks them, the last taken first.

    Returns how many the subscriber has given in this second, and 1 if the rate did not allow all.
    """
    forget_expired(state, mobile)
    for i in range(state.cargo_length[mobile] - 1, -1, -1):
        event = state.cargo[mobile, i]
        if event < state.tally[EXPIRED]:
            continue
        share = state.carried[event, mobile]
        if state.copies_at[event, sensor] > 0 or not has_room(state, rules, sensor, event):
            continue
        if not is_worth(world, state, rules, event, world.x.size + mobile, sensor, share):
            continue
        if given >= rules.rate:
            return given, 1
        if not pay(state, t, sensor, receiving_cost(rules)):
            return given, 0
        given += 1
        state.tally[GIVEN] += 1
        note(state, t, LOG_GIVEN, event, world.x.size + mobile, sensor)
        state.carried[event, mobile] = share - share // 2
        insert(state, rules, t, sensor, event, 1, share // 2, -1)
    return given, 0


def forget_expired(state: State, mobile: int) -> None:
    """Remove expired events from what the subscriber carries, once the one that it has longest is expired."""
    if state.cargo_length[mobile] == 0 or state.cargo[mobile, 0] >= state.tally[EXPIRED]:
        return
    kept = 0
    for i in range(state.cargo_length[mobile]):
        if state.cargo[mobile, i] >= state.tally[EXPIRED]:
            state.cargo[mobile, kept] = state.cargo[mobile, i]
            kept += 1
    state.cargo_length[mobile] = kept


def age(state: State, rules: Rules) -> None:
    """Lower all predictabilities by one unit of time."""
    for a in range(state.predictability.shape[0]):
        for b in range(state.predictability.shape[1]):
            state.predictability[a, b] *= rules.ageing


def meet(world: World, state: State, rules: Rules, a: int, b: int) -> None:
    """Raise the predictabilities of two nodes that have met."""
    state.predictability[a, b] += (1.0 - state.predictability[a, b]) * rules.meeting
    state.predictability[b, a] += (1.0 - state.predictability[b, a]) * rules.meeting
    learn(world, state, rules, a, b)
    learn(world, state, rules, b, a)


def learn(world: World, state: State, rules: Rules, a: int, b: int) -> None:
    """Raise what node a predicts of subscribers by what node b predicts of them."""
    through = state.predictability[a, b] * rules.transitivity
    sensors = world.x.size
    for goal in range(sensors, state.predictability.shape[0]):
        if goal != a and through * state.predictability[b, goal] > state.predictability[a, goal]:
            state.predictability[a, goal] = through * state.predictability[b, goal]


def meet_neighbours(world: World, state: State, rules: Rules) -> None:
    """Let neighbouring sensors, which never part, learn from each other."""
    for a in range(world.x.size):
        for i in range(world.link_start[a], world.link_start[a + 1]):
            b = world.links[i]
            state.predictability[a, b] = rules.meeting
            learn(world, state, rules, a, b)
