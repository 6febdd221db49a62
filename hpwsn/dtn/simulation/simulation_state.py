"""What changes during a run, as arrays, and the rules of a run as numbers.

Functions of the simulator take World, State and Rules. They are plain Python, written so that numba can
compile them: no objects but these tuples of arrays and numbers. Nodes are numbered sensors first, then
subscribers. A copy is an event in the queue of a sensor; copies have numbers that are used again.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hpwsn.dtn.scenario.scenario import Flags, World
from hpwsn.dtn.scenario.sensor_communities import Floats, Ints
from hpwsn.dtn.scenario.simulation_parameters import (
    ALL,
    CONNECTION,
    ENTRY,
    MOBILE,
    NEIGHBOURS,
    OFF,
    ON,
    ONCE,
    PATH,
    SECOND,
    Parameters,
)

# Places in State.tally.
FREE, BORN, EXPIRED, ANNOUNCED, OWNER_SENT, SENT = range(6)
TOO_OLD, TOO_OFTEN, REFUSED, GIVEN, ELECTIONS, LOGGED = range(6, 12)
# What a line of State.log tells: time, kind, event, node that had it, node that gets it.
LOG_BORN, LOG_COPIED, LOG_MOVED, LOG_TAKEN, LOG_GIVEN, LOG_STORED, LOG_DROPPED = range(7)

Protocol = str
CET, DG, EPIDEMIC, SPRAY, PROPHET = "cet", "dg", "epidemic", "spray", "prophet"
PROTOCOLS = (CET, DG, EPIDEMIC, SPRAY, PROPHET)


class Rules(NamedTuple):
    """The parameters and readings that the simulator's functions ask for; flags are 0 or 1."""

    rate: int
    bits: float
    electronics: float
    amplifier: float
    multipath: float
    alpha: int
    beta: float
    theta: float
    gamma: int
    fewest_first: int
    newest_stay: int
    all_travel: int
    resend: int
    giving_back: int
    give_home: int
    give_loners: int
    rebuild: int
    neighbours: int
    repeat: int
    mobile_budget: int
    peer: int
    spray: int
    hello: int
    meeting: float
    transitivity: float
    ageing: float
    ageing_unit: int


class State(NamedTuple):
    """Everything that a run changes."""

    tally: Ints
    random: Ints
    energy: Floats
    empty_at: Floats
    """When the first sensor could not pay for a transmission; infinity if none."""
    log: Floats
    queue: Ints
    length: Ints
    copy_event: Ints
    copy_place: Ints
    copy_own: Ints
    """1 if the sensor keeps the copy when it sends it, 0 if it only relays it."""
    copy_count: Ints
    """Successful transmissions; with Spray-and-Wait the copies that may still be made."""
    copy_target: Ints
    """The subscriber that a relayed copy is on its way to, or -1."""
    copy_next: Ints
    copy_sent: Ints
    """For each subscriber the announcement, connection or mark for which the copy was last sent."""
    free: Ints
    first_copy: Ints
    """For each event its latest copy, from which copy_next leads to the others; -1 if there is none."""
    copies_at: Flags
    """How many copies of each event each sensor has."""
    held: Flags
    """1 for each node that ever had each event."""
    taken: Flags
    """For each event and subscriber: 0 never had it, 1 has it, 2 gave it back."""
    received_at: Floats
    carried: Ints
    cargo: Ints
    cargo_length: Ints
    sent_now: Ints
    received_now: Ints
    in_reach: Ints
    group_seen: Ints
    active: Ints
    active_count: Ints
    session: Ints
    session_leg: Ints
    mark: Ints
    closes: Ints
    level: Ints
    last_contact: Ints
    level_order: Ints
    todo: Flags
    waiting: Ints
    """What a sensor sends from, while its queue changes; or the sensors in contact."""
    turn: Ints
    head: Ints
    tree_parent: Ints
    tree_depth: Ints
    tree_order: Ints
    tree_place: Ints
    met_since: Ints
    predictability: Floats


def rules_of(parameters: Parameters, protocol: Protocol) -> Rules:
    """The rules of a protocol."""
    p = parameters
    return Rules(
        rate=p.events_per_second,
        bits=float(p.event_bits),
        electronics=p.electronics,
        amplifier=p.amplifier,
        multipath=p.multipath,
        alpha=p.alpha,
        beta=math.inf if protocol == DG and p.dg_expiry == OFF else p.beta,
        theta=p.theta,
        gamma=p.gamma,
        fewest_first=int(protocol == CET),
        newest_stay=int(protocol not in (CET, DG)),
        all_travel=int(p.travel == ALL),
        resend=(PATH, CONNECTION, ONCE).index(p.resend),
        giving_back=int(p.giving_back == ON),
        give_home=int(p.give_home == ON),
        give_loners=int(p.give_loners == ON),
        rebuild=int(p.levels == "rebuild"),
        neighbours=int(p.dg_contact == NEIGHBOURS),
        repeat=(SECOND, ENTRY, ONCE).index(p.dg_repeat),
        mobile_budget=int(p.dg_budget == MOBILE),
        peer=PROTOCOLS.index(protocol),
        spray=p.spray,
        hello=p.hello,
        meeting=p.meeting,
        transitivity=p.transitivity,
        ageing=p.ageing,
        ageing_unit=p.ageing_unit,
    )


def new_state(
    world: World, parameters: Parameters, protocol: Protocol, seed: int, log_lines: int = 0
) -> State:
    """The state at time 0; `log_lines` is how many lines of the log are kept, the first ones."""
    sensors, mobiles = world.x.size, world.mobile_x.shape[1]
    groups, events, nodes = world.loner.size, world.created.size, sensors + mobiles
    copies = sensors * parameters.queue
    # Only protocols that let subscribers carry events need the tables of what is carried.
    carries = protocol != DG
    predicts = nodes if protocol == PROPHET else 1

    def ints(*shape: int, value: int = 0) -> Ints:
        return np.full(shape, value, np.int64)

    return State(
        tally=ints(LOGGED + 1) + np.array([copies] + [0] * LOGGED),
        random=ints(1, value=seed % 2**31),
        energy=np.full(sensors, parameters.energy),
        empty_at=np.full(1, np.inf),
        log=np.zeros((log_lines, 5)),
        queue=ints(sensors, parameters.queue),
        length=ints(sensors),
        copy_event=ints(copies),
        copy_place=ints(copies),
        copy_own=ints(copies),
        copy_count=ints(copies),
        copy_target=ints(copies),
        copy_next=ints(copies),
        copy_sent=ints(copies, mobiles),
        free=np.arange(copies - 1, -1, -1, dtype=np.int64),
        first_copy=ints(events, value=-1),
        copies_at=np.zeros((events, sensors), np.uint8),
        held=np.zeros((events, nodes), np.uint8),
        taken=np.zeros((events, mobiles), np.uint8),
        received_at=np.full((events, mobiles), -1.0),
        carried=ints(events, mobiles),
        cargo=ints(mobiles, events if carries else 1),
        cargo_length=ints(mobiles),
        sent_now=ints(sensors),
        received_now=ints(mobiles),
        in_reach=ints(mobiles, sensors, value=-2),
        group_seen=ints(mobiles, groups, value=-1),
        active=ints(mobiles, groups),
        active_count=ints(mobiles),
        session=ints(mobiles, groups),
        session_leg=ints(mobiles, groups),
        mark=ints(mobiles, groups),
        closes=ints(mobiles, groups),
        level=ints(mobiles, sensors),
        last_contact=ints(mobiles, sensors),
        level_order=ints(mobiles, sensors),
        todo=np.zeros((mobiles, sensors), np.uint8),
        waiting=ints(max(parameters.queue, sensors)),
        turn=ints(sensors),
        head=ints(groups, value=-1),
        tree_parent=ints(sensors, value=-1),
        tree_depth=ints(sensors),
        tree_order=world.members.copy(),
        tree_place=ints(groups),
        met_since=ints(mobiles, sensors, value=-1),
        predictability=np.zeros((predicts, predicts)),
    )
