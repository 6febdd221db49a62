"""The sensor with the most energy is the head, until its energy falls under theta."""

from __future__ import annotations

import numpy as np

from hpwsn.dtn.simulation.community_heads import check_heads
from hpwsn.dtn.simulation.simulation_state import CET, ELECTIONS
from tests.dtn_networks import FAR, network, run

STAR = [(5, 5), (4, 4), (6, 4), (4, 6), (6, 6), (7, 7)]
"""Sensor 0 touches 1 to 4, which do not touch each other; sensor 5 touches 4."""


def elected(energies: list[float], theta: float = 5.0) -> tuple[int, int]:
    """The head after energies change from 10 J for all, and the number of elections."""
    simulation = run(network(STAR, [[[FAR]]], [], theta=theta), CET, 0)
    assert simulation.state.head.tolist() == [0]
    simulation.state.energy[:] = energies
    check_heads(simulation.world, simulation.state, simulation.rules)
    return int(simulation.state.head[0]), int(simulation.state.tally[ELECTIONS])


def test_a_head_stays_while_it_has_theta_even_if_others_have_more() -> None:
    assert elected([5.0, 9, 9, 9, 9, 9]) == (0, 1)


def test_the_strongest_follows_a_head_under_theta() -> None:
    assert elected([4.999, 7, 8, 9, 6, 8]) == (3, 2)


def test_of_equally_strong_sensors_the_first_is_elected() -> None:
    assert elected([1, 7, 9, 9, 9, 2]) == (2, 2)


def test_a_weak_head_stays_if_nobody_is_stronger() -> None:
    assert elected([3, 2, 2, 2, 2, 2]) == (0, 1)


def test_the_tree_starts_at_the_new_head_and_reaches_every_sensor() -> None:
    simulation = run(network(STAR, [[[FAR]]], []), CET, 0)
    state = simulation.state
    assert state.tree_parent.tolist() == [-1, 0, 0, 0, 0, 4]
    assert state.tree_order.tolist() == [0, 1, 2, 3, 4, 5]
    state.energy[:] = [1, 6, 6, 6, 6, 9]
    check_heads(simulation.world, state, simulation.rules)
    assert state.tree_parent.tolist() == [4, 0, 0, 0, 5, -1]
    assert state.tree_order.tolist() == [5, 4, 0, 1, 2, 3]
    assert state.tree_depth.tolist() == [2, 3, 3, 3, 1, 0]
    assert state.tree_place.tolist() == [0]


def test_the_head_changes_in_a_run_once_its_energy_has_fallen_under_theta() -> None:
    # Sensor 0 hands over all events. 250 bits over 10 m cost it 12.75 uJ to send.
    cost = 250 * (50e-9 + 10e-12 * 100)
    events = [(i + 0.5, 0) for i in range(10)]
    scenario = network(
        [(1, 1), (2, 1)], [[[(0, 1)]]], events, energy=20 * cost, theta=15.5 * cost, giving_back="off"
    )
    simulation = run(scenario, CET, 0)
    heads = []
    for second in range(1, 11):
        simulation.run_until(second)
        heads.append(int(simulation.state.head[0]))
    # After five events sensor 0 has the energy of 15 left, which the check of second 6 finds.
    assert heads == [0] * 5 + [1] * 5
    assert simulation.state.tally[ELECTIONS] == 2
    assert np.isclose(simulation.state.energy[0], 10 * cost)


def test_loners_have_no_head() -> None:
    assert run(network([(1, 1), (5, 5)], [[[FAR]]], []), CET, 5).state.head.tolist() == [-1, -1]
