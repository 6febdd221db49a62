"""Events flow up the levels of a community; owners keep theirs, relays forget them, parents take turns."""

from __future__ import annotations

import pytest

from hpwsn.dtn.simulation.simulation_state import CET, LOG_COPIED, LOG_MOVED, LOG_TAKEN, OWNER_SENT, SENT
from tests.dtn_networks import FAR, logged, network, queued, received, run

CHAIN = [(1, 1), (2, 1), (3, 1), (4, 1)]
NEAR_FIRST = [(0, 1)]


def test_levels_count_the_hops_to_the_sensors_on_the_path() -> None:
    simulation = run(network(CHAIN, [[NEAR_FIRST]], []), CET, 0)
    assert simulation.state.level[0].tolist() == [1, 2, 3, 4]


def test_all_sensors_that_reach_the_announced_path_are_level_one() -> None:
    # The subscriber announces that it will go on to the third cell: three sensors will reach it.
    simulation = run(network(CHAIN, [[[(0, 1), (1, 1), (2, 1)]]], []), CET, 0)
    assert simulation.state.level[0].tolist() == [1, 1, 1, 2]


def test_an_event_climbs_all_levels_in_a_second_and_stays_with_its_owner_only() -> None:
    simulation = run(network(CHAIN, [[NEAR_FIRST]], [(0.5, 3)]), CET, 1)
    assert received(simulation) == {0: 1}
    assert [queued(simulation, sensor) for sensor in range(4)] == [[], [], [], [0]]
    assert logged(simulation, LOG_COPIED) == [(1, 0, 3, 2)]
    assert logged(simulation, LOG_MOVED) == [(1, 0, 2, 1), (1, 0, 1, 0)]
    assert logged(simulation, LOG_TAKEN) == [(1, 0, 0, 4)]
    assert (simulation.state.tally[OWNER_SENT], simulation.state.tally[SENT]) == (1, 4)


def test_only_sending_and_receiving_costs_energy() -> None:
    simulation = run(network(CHAIN, [[NEAR_FIRST]], [(0.5, 3)]), CET, 1)
    receive, send = 250 * 50e-9, 250 * (50e-9 + 10e-12 * 10**2)
    used = (10 - simulation.state.energy).tolist()
    assert used == pytest.approx([receive + send] * 3 + [send], rel=1e-6)


def test_an_event_that_the_subscriber_does_not_want_stays_unless_all_travel() -> None:
    events, wants = [(0.5, 3)], [[0]]
    assert run(network(CHAIN, [[NEAR_FIRST]], events, wants), CET, 3).state.tally[SENT] == 0
    simulation = run(network(CHAIN, [[NEAR_FIRST]], events, wants, travel="all"), CET, 3)
    assert simulation.state.tally[SENT] == 4
    assert received(simulation) == {}


def test_a_sensor_with_two_parents_uses_them_in_turn() -> None:
    # Sensors 0 and 1 reach the subscriber; sensor 2 reaches both of them and not the subscriber.
    sensors = [(1, 1), (1, 2), (2, 1)]
    simulation = run(network(sensors, [[[(0, 1)]]], [(0.1 * i, 2) for i in range(1, 7)]), CET, 1)
    assert simulation.state.level[0].tolist() == [1, 1, 2]
    takers = [taker for _, _, _, taker in logged(simulation, LOG_COPIED)]
    assert takers == [0, 1, 0, 1, 0, 1]


def test_a_sensor_sends_and_a_subscriber_takes_at_most_the_rate_in_a_second() -> None:
    events = [(0.01 * (i + 1), 0) for i in range(30)]
    simulation = run(network([(1, 1)], [[NEAR_FIRST]], events), CET, 1)
    assert len(received(simulation)) == 20
    # The youngest are first.
    assert set(received(simulation)) == set(range(10, 30))
    simulation.run_until(2)
    assert len(received(simulation)) == 30


def test_an_owner_sends_an_event_once_for_each_announced_path() -> None:
    walk = [[(0, 1)] * 5, [(0, 1)] * 5, [(0, 1)] * 5]
    for resend, times in (("path", 3), ("connection", 1), ("once", 1)):
        simulation = run(network([(1, 1)], [walk], [(0.5, 0)], resend=resend), CET, 20)
        assert simulation.state.tally[OWNER_SENT] == times, resend


def test_a_new_contact_is_a_new_connection_but_not_another_subscriber() -> None:
    walk = [[(0, 1)] * 3, [FAR] * 3, [(0, 1)] * 3]
    for resend, times in (("path", 2), ("connection", 2), ("once", 1)):
        simulation = run(network([(1, 1)], [walk], [(0.5, 0)], resend=resend), CET, 20)
        assert simulation.state.tally[OWNER_SENT] == times, resend


LINE = [(1, 1), (2, 1), (3, 1), (4, 1), (5, 1)]
ENDS = [[(0, 1), (6, 1)]]
"""A leg on which the subscriber reaches first one end of the line, and a second later the other."""


def test_paths_through_a_sensor_that_lost_the_subscriber_are_dropped() -> None:
    simulation = run(network(LINE, [ENDS], []), CET, 0)
    assert simulation.state.level[0].tolist() == [1, 2, 3, 2, 1]
    simulation.run_until(1)
    assert simulation.state.level[0].tolist() == [0, 0, 3, 2, 1]


def test_levels_can_be_rebuilt_instead() -> None:
    simulation = run(network(LINE, [ENDS], [], levels="rebuild"), CET, 1)
    assert simulation.state.level[0].tolist() == [5, 4, 3, 2, 1]


def test_events_without_a_path_wait_for_the_next_announcement() -> None:
    walk = [*ENDS, [(6, 1)]]
    assert received(run(network(LINE, [ENDS], [(1.5, 1)]), CET, 20)) == {}
    assert received(run(network(LINE, [[[*ENDS[0], *[(6, 1)] * 6], [(6, 1)]]], [(1.5, 1)]), CET, 20)) == {
        0: 8
    }
    assert received(run(network(LINE, [walk], [(1.5, 1)]), CET, 20)) == {0: 2}


def test_a_loner_hands_over_directly() -> None:
    simulation = run(network([(5, 5), (1, 1)], [[NEAR_FIRST]], [(0.5, 0), (0.6, 1)]), CET, 5)
    assert received(simulation) == {1: 1}
    simulation = run(network([(5, 5), (1, 1)], [[[(0, 1)] * 3, [(5, 4)]]], [(0.5, 0), (0.6, 1)]), CET, 5)
    assert received(simulation) == {1: 1, 0: 3}
    assert queued(simulation, 0) == [0]


def test_subscribers_never_meet() -> None:
    # Both stand in the same cell; only the first one reaches the sensor before that.
    walks = [[[(0, 1), FAR, FAR]], [[FAR]]]
    simulation = run(network([(1, 1)], walks, [(0.0, 0)]), CET, 50)
    assert received(simulation, 0) == {0: 0}
    assert received(simulation, 1) == {}
