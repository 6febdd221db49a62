"""Sensors at random places, the cells that they lie in, and the communities that they form.

Sensors are neighbours if their cells are the same or touch, by a side or a corner. A community is a connected
part of at least two sensors; a sensor without neighbours is a loner. Here both are groups, numbered by their
lowest sensor; `loner` tells them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpwsn.dtn.scenario.simulation_parameters import Parameters

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Lists:
    """Many lists of numbers in one array: list i is `values[start[i]:start[i + 1]]`."""

    start: Ints
    values: Ints

    def __getitem__(self, index: int) -> Ints:
        return self.values[self.start[index] : self.start[index + 1]]


@dataclass(frozen=True, slots=True)
class SensorField:
    """Sensors with their cells, neighbours and groups."""

    x: Floats
    y: Floats
    cell: Ints
    group: Ints
    members: Lists
    """The sensors of each group."""
    loner: Ints
    """For each group 1 if it is a loner, 0 if it is a community."""
    size: Ints
    """The number of cells that each group lies in."""
    links: Lists
    """The neighbours of each sensor."""
    near: Lists
    """The sensors in each cell and the cells that touch it."""
    inside: Lists
    """The sensors in each cell."""


def cell_numbers(x: Floats, y: Floats, parameters: Parameters) -> Ints:
    """The cell of each place, row by row; the far edge belongs to the last cell."""
    last = parameters.grid - 1
    column = np.minimum((x / parameters.cell).astype(np.int64), last)
    row = np.minimum((y / parameters.cell).astype(np.int64), last)
    found: Ints = row * parameters.grid + column
    return found


def touching(cell: int, grid: int) -> list[int]:
    """The cell itself and those that share a side or a corner with it, in ascending order."""
    row, column = divmod(cell, grid)
    rows = range(max(0, row - 1), min(grid, row + 2))
    columns = range(max(0, column - 1), min(grid, column + 2))
    return [r * grid + c for r in rows for c in columns]


def as_lists(lists: Sequence[Sequence[int]]) -> Lists:
    """Lists in one array."""
    start = np.zeros(len(lists) + 1, np.int64)
    start[1:] = np.cumsum([len(one) for one in lists])
    return Lists(start, np.array([value for one in lists for value in one], np.int64))


def sensor_field(x: Floats, y: Floats, parameters: Parameters) -> SensorField:
    """Sensors at these places, with all that follows from where they are."""
    cell = cell_numbers(x, y, parameters)
    inside: list[list[int]] = [[] for _ in range(parameters.grid**2)]
    for sensor, number in enumerate(cell.tolist()):
        inside[number].append(sensor)
    near = [
        [sensor for each in touching(number, parameters.grid) for sensor in inside[each]]
        for number in range(parameters.grid**2)
    ]
    links = [[other for other in near[cell[sensor]] if other != sensor] for sensor in range(x.size)]
    group, members = _groups(links)
    return SensorField(
        x=x,
        y=y,
        cell=cell,
        group=group,
        members=as_lists(members),
        loner=np.array([int(len(one) == 1) for one in members], np.int64),
        size=np.array([len({int(cell[sensor]) for sensor in one}) for one in members], np.int64),
        links=as_lists(links),
        near=as_lists(near),
        inside=as_lists(inside),
    )


def _groups(links: Sequence[Sequence[int]]) -> tuple[Ints, list[list[int]]]:
    """The number of each sensor's group, and the sensors of each group in ascending order."""
    group = np.full(len(links), -1, np.int64)
    members: list[list[int]] = []
    for first in range(len(links)):
        if group[first] >= 0:
            continue
        found, group[first] = [first], len(members)
        for sensor in found:
            for other in links[sensor]:
                if group[other] < 0:
                    group[other] = len(members)
                    found.append(other)
        members.append(sorted(found))
    return group, members
