"""Queues: fewest transmissions first, then the youngest; alpha, beta and the size of the queue are limits."""

from __future__ import annotations

from hpwsn.dtn.simulation.simulation_state import CET, DG, REFUSED, TOO_OFTEN, TOO_OLD
from tests.dtn_networks import FAR, network, queued, received, run

IDLE = [[FAR]]
NEAR = [(0, 1)]


def test_the_youngest_is_first_among_those_that_were_sent_as_often() -> None:
    simulation = run(network([(1, 1)], [IDLE], [(0.1, 0), (0.2, 0), (0.3, 0)]), CET, 1)
    assert queued(simulation, 0) == [2, 1, 0]


def test_what_was_sent_less_often_is_first() -> None:
    events = [(0.1, 0), (0.2, 0), (5.5, 0)]
    wants = [[1], [0], [0]]
    simulation = run(network([(1, 1)], [[NEAR]], events, wants), CET, 6)
    # Event 0 was sent once; of the others, event 2 is younger.
    assert queued(simulation, 0) == [2, 1, 0]
    simulation = run(network([(1, 1)], [[NEAR]], events, [[0], [1], [0]]), CET, 6)
    assert queued(simulation, 0) == [2, 0, 1]


def test_an_event_ends_when_it_was_sent_more_than_alpha_times() -> None:
    walk = [NEAR] * 5
    for alpha, left in ((4, []), (5, [0])):
        simulation = run(network([(1, 1)], [walk], [(0.0, 0)], alpha=alpha), CET, 10)
        assert queued(simulation, 0) == left
        assert simulation.state.tally[TOO_OFTEN] == (not left)


def test_an_event_ends_when_it_is_older_than_beta() -> None:
    simulation = run(network([(1, 1)], [IDLE], [(1.0, 0)], beta=10.0), CET, 11)
    assert queued(simulation, 0) == [0]
    simulation.run_until(12)
    assert queued(simulation, 0) == []
    assert simulation.state.tally[TOO_OLD] == 1


def test_direct_gathering_keeps_events_whatever_their_age_unless_told() -> None:
    for expiry, left in (("off", [0]), ("on", [])):
        simulation = run(network([(1, 1)], [IDLE], [(1.0, 0)], beta=10.0, dg_expiry=expiry), DG, 50)
        assert queued(simulation, 0) == left


def test_a_full_queue_accepts_nothing() -> None:
    events = [(0.1, 0), (0.2, 0), (0.3, 0)]
    simulation = run(network([(1, 1)], [[[FAR] * 3, NEAR]], events, queue=2), CET, 1)
    assert queued(simulation, 0) == [1, 0]
    assert simulation.state.tally[REFUSED] == 1
    simulation.run_until(20)
    assert set(received(simulation)) == {0, 1}


def test_what_a_full_parent_refuses_stays_until_there_is_room() -> None:
    # Sensor 0 is full of its own event, which the subscriber does not want.
    events, wants = [(0.1, 0), (0.2, 1)], [[0], [1]]
    simulation = run(network([(1, 1), (2, 1)], [[NEAR]], events, wants, queue=1, beta=20.0), CET, 19)
    assert received(simulation) == {}
    assert queued(simulation, 1) == [1]
    events = [(0.1, 0), (15.0, 1)]
    simulation = run(network([(1, 1), (2, 1)], [[NEAR]], events, wants, queue=1, beta=20.0), CET, 22)
    assert received(simulation) == {1: 21}
