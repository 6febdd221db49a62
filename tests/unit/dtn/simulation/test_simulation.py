"""What holds in every run of every protocol, whatever its parameters and readings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hpwsn.dtn.scenario.scenario import draw_scenario
from hpwsn.dtn.scenario.simulation_parameters import DEFAULTS, Parameters
from hpwsn.dtn.simulation.compiled_functions import compiled, digest_of
from hpwsn.dtn.simulation.simulation import Simulation, simulate
from hpwsn.dtn.simulation.simulation_state import (
    CET,
    DG,
    FREE,
    LOG_BORN,
    LOG_DROPPED,
    LOGGED,
    PROTOCOLS,
)

SMALL = Parameters(sensors=20, mobiles=4, duration=300, quiet=50, interval=30.0, pause=10)
LINES = 200_000
runs = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
small = st.fixed_dictionaries(
    {
        "sensors": st.integers(1, 25),
        "mobiles": st.integers(1, 5),
        "grid": st.integers(1, 20),
        "queue": st.integers(1, 8),
        "alpha": st.integers(1, 5),
        "beta": st.sampled_from([20.0, 100.0, 2000.0]),
        "rate": st.integers(1, 5),
        "gamma": st.integers(0, 5),
        "energy": st.sampled_from([1e-4, 1e-3, 10.0]),
        "theta": st.sampled_from([5e-4, 5.0]),
        "travel": st.sampled_from(["matching", "all"]),
        "resend": st.sampled_from(["path", "connection", "once"]),
        "give_home": st.sampled_from(["on", "off"]),
        "levels": st.sampled_from(["drop", "rebuild"]),
        "dg_contact": st.sampled_from(["cell", "neighbours"]),
        "dg_repeat": st.sampled_from(["second", "entry", "once"]),
        "dg_budget": st.sampled_from(["sensor", "mobile"]),
        "spray": st.integers(1, 8),
    }
)


def interpreted(changes: dict[str, Any], protocol: str, seed: int) -> Simulation:
    parameters = replace(SMALL, duration=120, quiet=20.0, interval=20.0, **changes)
    return Simulation(draw_scenario(parameters, seed), protocol, seed, interpreted=True, log_lines=LINES)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(changes=small, seed=st.integers(0, 1000))
@runs
def test_queues_copies_and_energy_stay_in_order(protocol: str, changes: dict[str, Any], seed: int) -> None:
    simulation = interpreted(changes, protocol, seed)
    state, world = simulation.state, simulation.world
    energy = state.energy.copy()
    for second in range(0, 121, 10):
        simulation.run_until(second)
        assert (state.energy <= energy).all()
        assert (state.energy >= 0).all()
        energy = state.energy.copy()
        assert (state.length <= simulation.scenario.parameters.queue).all()
        copies = [list(map(int, state.queue[s, : state.length[s]])) for s in range(world.x.size)]
        flat = [copy for queue in copies for copy in queue]
        # Every copy is in one queue, or free.
        free = state.free[: state.tally[FREE]].tolist()
        assert sorted([*flat, *free]) == list(range(state.free.size))
        for sensor, queue in enumerate(copies):
            counts = [int(state.copy_count[copy]) if protocol == CET else 0 for copy in queue]
            keys = [(count, -int(state.copy_event[copy])) for count, copy in zip(counts, queue, strict=True)]
            assert keys == sorted(keys)
            assert all(state.copy_place[copy] == sensor for copy in queue)
            assert all(world.created[state.copy_event[copy]] <= second for copy in queue)
        if protocol == CET:
            assert all(state.copy_count[copy] <= changes["alpha"] for copy in flat)
        if protocol != DG:
            assert all(second - world.created[state.copy_event[copy]] <= changes["beta"] for copy in flat)
        held = np.zeros_like(state.copies_at)
        for copy in flat:
            held[state.copy_event[copy], state.copy_place[copy]] += 1
        assert (held == state.copies_at).all()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(changes=small, seed=st.integers(0, 1000))
@runs
def test_no_event_comes_from_nothing(protocol: str, changes: dict[str, Any], seed: int) -> None:
    simulation = interpreted(changes, protocol, seed)
    simulation.run_until(120)
    state, world = simulation.state, simulation.world
    assert state.tally[LOGGED] < LINES
    had: dict[int, set[int]] = {}
    before = 0.0
    for t, kind, number, giver, taker in state.log[: state.tally[LOGGED]]:
        event = int(number)
        assert t >= before
        before = t
        assert world.created[event] <= t
        if kind == LOG_BORN:
            assert event not in had
            assert world.origin[event] == taker
            had[event] = {int(taker)}
        else:
            assert int(giver) in had[event]
            if kind != LOG_DROPPED:
                had[event].add(int(taker))
    for event, mobile in np.argwhere(state.received_at >= 0):
        assert world.wants[event, mobile] == 1
        assert state.received_at[event, mobile] >= world.created[event]
        assert world.x.size + mobile in had[int(event)]
    for event, node in np.argwhere(state.held == 1):
        assert node in had[int(event)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_compiled_functions_do_what_interpreted_ones_do(protocol: str) -> None:
    scenario = draw_scenario(SMALL, 4)
    fast = Simulation(scenario, protocol, 4, log_lines=LINES)
    slow = Simulation(scenario, protocol, 4, interpreted=True, log_lines=LINES)
    for simulation in (fast, slow):
        simulation.run_until(SMALL.duration)
    assert fast.outcome() == slow.outcome()
    assert fast.outcome().received > 0
    for name, one, other in zip(fast.state._fields, fast.state, slow.state, strict=True):
        assert np.array_equal(one, other), name


def test_a_compiled_function_is_compiled_anew_when_what_it_calls_changes() -> None:
    def double(x: int) -> int:
        return x + x

    def triple(x: int) -> int:
        return x + x + x

    assert compiled(double)(2) == 4
    assert digest_of([double]) == digest_of([double]) != digest_of([triple])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_same_seed_gives_the_same_run_and_another_one_gives_another(protocol: str) -> None:
    assert simulate(SMALL, protocol, 7) == simulate(SMALL, protocol, 7)
    assert simulate(SMALL, protocol, 7) != simulate(SMALL, protocol, 8)
    assert simulate(SMALL, protocol, 7) != simulate(SMALL, protocol, 7, run=1)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_run_in_steps_is_the_run_at_once(protocol: str) -> None:
    scenario = draw_scenario(SMALL, 2)
    steps = Simulation(scenario, protocol, 2)
    for second in (0, 1, 17, 17, 100, SMALL.duration, SMALL.duration + 50):
        steps.run_until(second)
    assert steps.outcome() == simulate(SMALL, protocol, 2)


def test_without_events_there_is_nothing_to_measure() -> None:
    outcome = simulate(replace(SMALL, interval=1e9), CET, 1)
    assert (outcome.delivery, outcome.copies, outcome.delay, outcome.life) == (None, None, None, None)


def test_the_life_of_a_network_ends_with_its_first_empty_sensor() -> None:
    parameters = replace(SMALL, energy=1e-4)
    outcome = simulate(parameters, DG, 1)
    assert outcome.life is not None
    assert 0 < outcome.life * 86_400 <= parameters.duration
    # The life is extrapolated from the power of the busiest sensor if none is empty.
    longer = simulate(replace(SMALL, energy=10.0), DG, 1)
    assert longer.life is not None
    assert longer.life * 86_400 > parameters.duration


def test_twenty_default_runs_are_near_the_results_of_the_paper() -> None:
    cet = [simulate(DEFAULTS, CET, 1, run) for run in range(20)]
    dg = [simulate(DEFAULTS, DG, 1, run) for run in range(20)]

    def mean(outcomes: list[Any], name: str) -> float:
        return float(np.mean([getattr(one, name) for one in outcomes]))

    assert abs(mean(cet, "delivery") - 91) < 4
    assert abs(mean(dg, "delivery") - 47) < 6
    assert mean(cet, "delay") < mean(dg, "delay")
    assert mean(cet, "copies") < mean(dg, "copies")
    assert mean(cet, "life") < mean(dg, "life")
    # No head falls under theta in two hours: there is one election for each community.
    for run, outcome in enumerate(cet):
        field = draw_scenario(DEFAULTS, 1, run).field
        assert outcome.elections == int((field.loner == 0).sum())
