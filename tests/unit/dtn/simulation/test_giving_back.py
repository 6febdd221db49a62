"""Giving back: events of small groups go to the community in contact, by the tree of its head."""

from __future__ import annotations

import pytest

from hpwsn.dtn.simulation.simulation_state import CET, GIVEN, LOG_GIVEN, LOG_STORED
from tests.dtn_networks import FAR, logged, network, queued, received, run

LONER = (1, 1)
COMMUNITY = [(5, 5), (6, 5), (7, 5)]
SENSORS = [LONER, *COMMUNITY]
CARRIER = [[(0, 1)] * 3, [(4, 5)] * 10, [FAR]]
"""Takes from the loner in the first seconds, and meets the community from second 3 on, by sensor 1."""


def test_an_event_of_a_loner_goes_to_the_head_of_the_community_and_from_there_to_others() -> None:
    other = [[FAR] * 20, [(8, 5)]]
    simulation = run(network(SENSORS, [CARRIER, other], [(0.5, 0)]), CET, 25)
    assert received(simulation, 0) == {0: 1}
    # All have the same energy, so the first is the head.
    assert simulation.state.head.tolist() == [-1, 1]
    assert logged(simulation, LOG_GIVEN)[0] == (3, 0, 4, 1)
    assert logged(simulation, LOG_STORED)[0] == (3, 0, 1, 1)
    assert queued(simulation, 1) == [0]
    assert received(simulation, 1) == {0: 20}


def test_given_events_are_placed_round_and_round_in_pre_order() -> None:
    simulation = run(network(SENSORS, [CARRIER], [(0.1 * i, 0) for i in range(1, 8)]), CET, 10)
    assert [taker for _, _, _, taker in logged(simulation, LOG_STORED)] == [1, 2, 3, 1, 2, 3, 1]


def test_every_hop_along_the_tree_costs_energy() -> None:
    simulation = run(network(SENSORS, [CARRIER], [(0.1 * i, 0) for i in range(1, 4)], resend="once"), CET, 10)
    receive, send = 250 * 50e-9, 250 * (50e-9 + 10e-12 * 100)
    used = (10 - simulation.state.energy).tolist()
    # Three events come in at sensor 1, two go on to 2, of which one goes on to 3. Then sensor 1 hands its
    # copy to the carrier once, and 2 and 3 send theirs by way of it.
    back = [receive * 2 + send * 3, receive + send * 2, send]
    assert used[1:] == pytest.approx(
        [
            3 * receive + 2 * send + back[0],
            2 * receive + send + back[1],
            receive + back[2],
        ],
        rel=1e-6,
    )


def test_a_subscriber_that_is_taking_events_gives_none() -> None:
    # In second 3 the community has an event for the carrier; it is idle in second 4.
    simulation = run(network(SENSORS, [CARRIER], [(0.5, 0), (2.5, 2)]), CET, 10)
    assert received(simulation) == {0: 1, 1: 3}
    assert [line[:2] for line in logged(simulation, LOG_GIVEN)] == [(4, 0), (4, 1)]


@pytest.mark.parametrize(
    ("changes", "given"),
    [
        ({}, 1),
        ({"gamma": 1}, 1),
        ({"gamma": 0}, 0),
        ({"give_loners": "off"}, 0),
        ({"giving_back": "off"}, 0),
    ],
)
def test_gamma_and_the_readings_say_what_is_given_back(changes: dict[str, object], given: int) -> None:
    simulation = run(network(SENSORS, [CARRIER], [(0.5, 0)], **changes), CET, 20)
    assert simulation.state.tally[GIVEN] == given


@pytest.mark.parametrize(("gamma", "home", "given"), [(3, "on", 1), (2, "on", 0), (3, "off", 0)])
def test_the_size_of_the_origin_in_cells_decides_also_at_home(gamma: int, home: str, given: int) -> None:
    events = [(0.5, 1)]
    walk = [[(4, 5)]]
    simulation = run(network(SENSORS, [walk], events, gamma=gamma, give_home=home), CET, 20)
    assert received(simulation) == {0: 1}
    assert simulation.state.tally[GIVEN] == given


def test_an_event_is_given_back_once_by_a_subscriber() -> None:
    walk = [[(0, 1)] * 3, [(4, 5)] * 5, [(0, 1)] * 5, [(4, 5)] * 5]
    simulation = run(network(SENSORS, [walk], [(0.5, 0)]), CET, 30)
    assert simulation.state.tally[GIVEN] == 1


def test_loners_are_given_nothing() -> None:
    walk = [[(0, 1)] * 3, [(4, 8)] * 10]
    simulation = run(network([LONER, (5, 8)], [walk], [(0.5, 0)]), CET, 20)
    assert simulation.state.tally[GIVEN] == 0
