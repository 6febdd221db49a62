"""Hundreds of virtual sensors start with one subscription to `virtual`: the node goes on meanwhile."""

from __future__ import annotations

import asyncio

from hpwsn.sensors.physical.physical_sensor import parse_sensor
from tests.unit.sensors.virtual.virtual_field import Field, sensor

MANY = 50


def started() -> Field:
    """A field of MANY sensors, one for each of MANY virtual sensors that have just been started."""
    field = Field(*(sensor(f"s{number}", tags=[f"t{number}"]) for number in range(MANY)))
    for number in range(MANY):
        field.start(f"v{number}", tags=[f"t{number}"])
    return field


async def all_have_members(field: Field) -> int:
    """The turns of the loop until each virtual sensor has its member."""
    turns = 0
    async with asyncio.timeout(60):
        while not all(field.running.members(f"v{number}") for number in range(MANY)):
            await asyncio.sleep(0)
            turns += 1
    return turns


async def test_the_loop_has_turns_between_the_starts_of_many_virtual_sensors():
    field = started()
    assert await all_have_members(field) >= MANY
    await field.running.close()


async def test_a_sensor_that_comes_or_goes_while_virtual_sensors_start_is_a_member_or_not():
    field = started()
    last = MANY - 1
    assert not field.running.members(f"v{last}")
    late = parse_sensor(sensor("late", tags=[f"t{last}"]))
    moved = parse_sensor(sensor(f"s{last - 1}", tags=[f"t{last}"]))
    for each in (late, moved):
        field.registry._keep(each)
        field.registry.changed(each.id, each)
    for _ in range(3 * MANY):
        await asyncio.sleep(0)
    assert set(field.running.members(f"v{last}")) == {f"s{last}", "late", f"s{last - 1}"}
    assert not field.running.members(f"v{last - 1}")
    await field.running.close()


async def test_virtual_sensors_that_are_released_while_they_start_have_no_members():
    field = started()
    for number in range(MANY):
        field.running.stop(f"v{number}")
    for _ in range(3 * MANY):
        await asyncio.sleep(0)
    assert not any(field.running.members(f"v{number}") for number in range(MANY))
    assert not field.running.names
    await field.running.close()
