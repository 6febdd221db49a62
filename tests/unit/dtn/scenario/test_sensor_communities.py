"""Sensors in the same cell or in cells that touch are neighbours; connected ones are a community."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpwsn.dtn.scenario.scenario import draw_scenario
from hpwsn.dtn.scenario.sensor_communities import cell_numbers, sensor_field, touching
from hpwsn.dtn.scenario.simulation_parameters import Parameters
from tests.dtn_networks import FAR, Cell, network


def communities(*sensors: Cell) -> list[list[int]]:
    field = network(sensors, [[[FAR]]], []).field
    return [field.members[group].tolist() for group in range(field.loner.size)]


@pytest.mark.parametrize(
    ("sensors", "expected"),
    [
        ([(1, 1), (1, 1)], [[0, 1]]),
        ([(1, 1), (2, 1)], [[0, 1]]),
        ([(1, 1), (2, 2)], [[0, 1]]),
        ([(1, 1), (3, 1)], [[0], [1]]),
        ([(1, 1), (3, 1), (2, 2)], [[0, 1, 2]]),
        ([(0, 0), (9, 0)], [[0], [1]]),
        ([(9, 0), (0, 1)], [[0], [1]]),
    ],
)
def test_cells_that_share_a_side_or_a_corner_join_sensors(
    sensors: list[Cell], expected: list[list[int]]
) -> None:
    assert communities(*sensors) == expected


def test_the_size_of_a_community_is_its_number_of_cells_and_a_loner_is_none() -> None:
    field = network([(1, 1), (1, 1), (2, 1), (5, 5)], [[[FAR]]], []).field
    assert field.size.tolist() == [2, 1]
    assert field.loner.tolist() == [0, 1]


def test_a_cell_touches_eight_others_and_fewer_at_the_edge() -> None:
    assert touching(0, 3) == [0, 1, 3, 4]
    assert touching(4, 3) == list(range(9))
    assert touching(0, 1) == [0]


def test_the_far_edge_belongs_to_the_last_cell() -> None:
    parameters = Parameters(area=100, grid=10)
    places = np.array([0.0, 9.999, 10.0, 100.0])
    assert cell_numbers(places, np.zeros(4), parameters).tolist() == [0, 0, 1, 9]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=15))
def test_neighbours_are_symmetric_and_in_the_same_group_and_groups_are_complete(cells: list[Cell]) -> None:
    x, y = (np.array([10.0 * cell[axis] + 5 for cell in cells]) for axis in (0, 1))
    field = sensor_field(x, y, Parameters(area=100, grid=10))
    for a, one in enumerate(cells):
        near = [
            b for b, other in enumerate(cells) if max(abs(one[0] - other[0]), abs(one[1] - other[1])) <= 1
        ]
        assert sorted(field.links[a]) == [b for b in near if b != a]
        assert {int(field.group[b]) for b in near} == {int(field.group[a])}
    members = [sensor for group in range(field.loner.size) for sensor in field.members[group]]
    assert sorted(members) == list(range(len(cells)))


def test_subscribers_walk_within_the_area_and_their_limits_of_speed() -> None:
    parameters = Parameters(duration=2000, pause=20)
    motion = draw_scenario(parameters, 3).motion
    for axis in (motion.x, motion.y):
        assert axis.min() >= 0
        assert axis.max() <= parameters.area
    steps = np.hypot(np.diff(motion.x, axis=0), np.diff(motion.y, axis=0))
    assert steps.max() <= parameters.speed_max + 1e-9
    assert (np.diff(motion.leg, axis=0) >= 0).all()
    assert motion.leg.min() == 1


def test_a_subscriber_pauses_no_longer_than_the_longest_pause() -> None:
    parameters = Parameters(duration=3000, pause=15, speed_min=4)
    motion = draw_scenario(parameters, 5).motion
    still = np.hypot(np.diff(motion.x, axis=0), np.diff(motion.y, axis=0)) == 0
    for mobile in range(parameters.mobiles):
        runs = "".join("x" if one else " " for one in still[:, mobile]).split()
        assert runs
        assert max(map(len, runs)) <= parameters.pause


def test_events_come_by_a_poisson_process_and_none_in_the_quiet_time() -> None:
    parameters = Parameters()
    counts = [draw_scenario(parameters, 1, run).events.created for run in range(20)]
    assert all(created.max() <= parameters.duration - parameters.quiet for created in counts)
    assert all((np.diff(created) >= 0).all() for created in counts)
    # The expected number is 7000 with a deviation of 84 for a run.
    assert abs(np.mean([created.size for created in counts]) - 7000) < 84


def test_two_of_ten_subscribers_want_an_event() -> None:
    # (10/22)^2 of them: 2.07 of 10, as two whole numbers from 0 to 10 are smaller than two others.
    shares = [draw_scenario(Parameters(duration=600), 1, run).events.wants.mean() for run in range(200)]
    assert abs(10 * np.mean(shares) - 2.07) < 0.15


def test_a_parameter_of_one_part_leaves_the_others_as_they_are() -> None:
    base, changed = draw_scenario(Parameters(), 1), draw_scenario(Parameters(interval=50), 1)
    assert (base.motion.x == changed.motion.x).all()
    assert (base.field.x == changed.field.x).all()
    assert base.events.created.size < changed.events.created.size
    assert (draw_scenario(Parameters(), 1, 1).motion.x != base.motion.x).any()
