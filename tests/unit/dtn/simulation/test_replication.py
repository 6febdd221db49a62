"""Epidemic copies everything, Spray-and-Wait a bounded number, PRoPHET towards likelier nodes."""

from __future__ import annotations

import numpy as np
import pytest

from hpwsn.dtn.simulation.simulation_state import (
    EPIDEMIC,
    LOG_COPIED,
    LOG_GIVEN,
    PROPHET,
    SPRAY,
)
from tests.dtn_networks import FAR, logged, network, queued, received, run

CHAIN = [(1, 1), (2, 1), (3, 1), (4, 1)]


def test_epidemic_reaches_all_connected_sensors_with_the_hellos() -> None:
    simulation = run(network([*CHAIN, (8, 8)], [[[(0, 5)]]], [(0.5, 0)]), EPIDEMIC, 10)
    # Sensors exchange in the order of their numbers, so one hello carries the event to the end.
    assert [queued(simulation, sensor) for sensor in range(5)] == [[0]] * 4 + [[]]


def test_a_subscriber_carries_an_event_that_it_does_not_want_to_another_place() -> None:
    walk = [[(0, 1)] * 5, [(8, 7)] * 20]
    simulation = run(network([(1, 1), (8, 8)], [walk], [(0.5, 0)], [[0]]), EPIDEMIC, 25)
    assert received(simulation) == {}
    assert queued(simulation, 1) == [0]
    assert [line[1:] for line in logged(simulation, LOG_GIVEN)] == [(0, 2, 1)]


def test_a_full_queue_keeps_the_newest() -> None:
    simulation = run(network([(1, 1)], [[[FAR]]], [(0.1, 0), (0.2, 0), (0.3, 0)], queue=2), EPIDEMIC, 1)
    assert queued(simulation, 0) == [2, 1]


@pytest.mark.parametrize("copies", [1, 2, 3, 4, 8])
def test_spray_makes_no_more_copies_than_its_number_and_loses_none(copies: int) -> None:
    simulation = run(network(CHAIN, [[[FAR]]], [(0.5, 0)], spray=copies), SPRAY, 60)
    state = simulation.state
    held = [copy for sensor in range(4) for copy in state.queue[sensor, : state.length[sensor]]]
    assert sum(int(state.copy_count[copy]) for copy in held) == copies
    # A sensor gives each neighbour half of what it has, rounded down, so the last one may keep two.
    assert len(held) == {1: 1, 2: 2, 3: 2, 4: 3, 8: 4}[copies]
    assert len(logged(simulation, LOG_COPIED)) == len(held) - 1


def test_the_last_copy_goes_only_to_a_subscriber_that_wants_it() -> None:
    for wants in (0, 1):
        simulation = run(network([(1, 1)], [[[(0, 1)]]], [(0.5, 0)], [[wants]], spray=1), SPRAY, 20)
        assert received(simulation) == ({0: 1} if wants else {})
        assert simulation.state.held[0, 1] == wants


def test_a_meeting_raises_predictability_and_time_lowers_it() -> None:
    simulation = run(network([(1, 1)], [[[FAR] * 5, [(0, 1)] * 3, [FAR]]], []), PROPHET, 29)
    assert np.isclose(simulation.state.predictability[0, 1], 0.75)
    simulation.run_until(30)
    assert np.isclose(simulation.state.predictability[0, 1], 0.75 * 0.98)
    simulation.run_until(60)
    assert np.isclose(simulation.state.predictability[1, 0], 0.75 * 0.98**2)


def test_a_neighbour_of_one_that_meets_a_subscriber_learns_of_it() -> None:
    simulation = run(network([(1, 1), (2, 1)], [[[(0, 1)] * 3, [FAR]]], []), PROPHET, 30)
    met = 0.75 * 0.98
    assert np.isclose(simulation.state.predictability[0, 2], met)
    assert np.isclose(simulation.state.predictability[1, 2], 0.75 * 0.25 * met)


def test_prophet_gives_to_a_sensor_that_is_likelier_to_meet_a_subscriber() -> None:
    # Sensor 0 has met the subscriber, which wants the event of sensor 1.
    walk = [[(0, 1)] * 3, [FAR]]
    sensors = [(1, 1), (2, 1), (3, 1)]
    simulation = run(network(sensors, [walk], [(31.0, 1)], resend="once"), PROPHET, 45)
    assert queued(simulation, 0) == [0]
    # Sensor 2 knows of the subscriber over two hops only.
    assert queued(simulation, 2) == []
