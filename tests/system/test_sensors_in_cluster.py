"""Sensors in a cluster: users at another node start sensors and virtual ones, and get what they publish."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.cluster import SECRET, AdminProcess
from tests.patience import PATIENCE, holds
from tests.sensor_node import SensorNode, sensor
from tests.virtual_users import USERS, ahead, define, has, ready, state_is

Nodes = tuple[SensorNode, SensorNode]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """The node with the sensors, and another one in its cluster."""
    folder = tmp_path_factory.mktemp("cluster")
    with ExitStack() as stack:
        admin = stack.enter_context(AdminProcess(folder / "admin"))

        def member(name: str) -> SensorNode:
            joining = ("--name", name, "--cluster", "plant", "--admin", admin.base)
            settings = (f"--set=cluster.secret={SECRET}", f"--set=cluster.start_wait={PATIENCE}")
            found = SensorNode(folder / name, *joining, *settings, sensors={"linger": "0.3 s"})
            return stack.enter_context(found)

        field, office = member("field"), member("office")
        field.register(sensor("s1", on_demand=True), sensor("s2"))
        yield field, office


@pytest.mark.parametrize("kind", ["soap", "stream"])
async def test_a_user_at_another_node_has_a_virtual_sensor_run_and_gets_its_results(
    kind: str, nodes: Nodes
) -> None:
    field, office = nodes
    name = f"warmth-{kind}"
    define(field, name, kind="weather")
    async with USERS[kind](office, f"virtual:{name}") as got:
        await state_is(field, name, "running")
        await holds(lambda: field.get("/sensors/s1")["wanted"])
        await ready(field, name)
        assert field.post(*ahead([20, 21.5, 19])).status == 202
        events = await has(got, 3)
    assert [event["value"] for event in events] == [20, 21.5, 19]
    await state_is(field, name, "idle")
    await holds(lambda: field.get("/sensors/s1")["wanted"] is False)
    assert events == field.events(f"virtual:{name}")
    await holds(lambda: office.get("/readings", virtual=name)["items"] == events)


async def test_a_special_subscriber_at_another_node_gets_and_keeps_the_readings(nodes: Nodes) -> None:
    field, office = nodes
    async with USERS["stream"](office, "sensors:weather", "t >= 30") as got:
        await holds(lambda: field.get("/sensors/s1")["wanted"])
        readings = ahead([29, 31], name="s2")
        assert field.post(*readings).body["accepted"] == 2
        events = await has(got, 1)
    assert [event["t"] for event in events] == [31]
    assert events[0] in office.get("/readings", sensor="s2")["items"]
