"""Direct gathering: the newest events go to subscribers in contact, repeatedly unless sensors remember."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hpwsn.dtn.scenario.simulation_parameters import HONEST_DG
from hpwsn.dtn.simulation.simulation_state import DG, SENT
from tests.dtn_networks import FAR, Cell, network, received, run

HONEST: dict[str, Any] = dict(HONEST_DG)


@pytest.mark.parametrize(
    ("contact", "cell", "met"),
    [
        ("cell", (1, 1), True),
        ("cell", (2, 1), False),
        ("neighbours", (2, 2), True),
        ("neighbours", (3, 1), False),
    ],
)
def test_the_contact_is_the_cell_or_also_those_around_it(contact: str, cell: Cell, met: bool) -> None:
    simulation = run(network([(1, 1)], [[[cell]]], [(0.5, 0)], dg_contact=contact), DG, 5)
    assert received(simulation) == ({0: 1} if met else {})


def test_a_sensor_hands_over_its_own_events_only() -> None:
    simulation = run(network([(1, 1), (2, 1)], [[[(1, 1)]]], [(0.5, 1)]), DG, 20)
    assert received(simulation) == {}


@pytest.mark.parametrize(("repeat", "sent"), [("second", 10), ("entry", 2), ("once", 1)])
def test_a_sensor_repeats_itself_unless_it_remembers(repeat: str, sent: int) -> None:
    walk = [[FAR] + [(1, 1)] * 5 + [FAR] * 5 + [(1, 1)] * 5 + [FAR]]
    simulation = run(network([(1, 1)], [walk], [(0.5, 0)], dg_repeat=repeat), DG, 40)
    assert simulation.state.tally[SENT] == sent


def test_a_sensor_that_forgets_never_gets_beyond_its_newest_events() -> None:
    events = [(0.01 * (i + 1), 0) for i in range(25)]
    stay = [[[(1, 1)]]]
    assert set(received(run(network([(1, 1)], stay, events), DG, 50))) == set(range(5, 25))
    assert set(received(run(network([(1, 1)], stay, events, **HONEST), DG, 50))) == set(range(25))


def test_the_rate_of_a_subscriber_serves_the_sensor_first_that_it_met_first() -> None:
    # Sensor 1 is met at second 2, sensor 0 at second 4; both have more than a second's events.
    events = [(0.01 * (i + 1), i % 2) for i in range(60)]
    walk = [[FAR, FAR, (5, 5), (5, 5), (4, 5)]]
    scenario = network([(3, 5), (6, 5)], [walk], events, dg_contact="neighbours", dg_budget="mobile")
    assert set(received(run(scenario, DG, 3))) == set(range(21, 60, 2))
    scenario = network([(3, 5), (6, 5)], [[[(5, 5), (4, 5), (5, 5)]]], events, dg_contact="neighbours")
    both = run(replace(scenario), DG, 5)
    assert {event % 2 for event in received(both)} == {0, 1}
