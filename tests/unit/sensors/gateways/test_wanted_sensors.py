"""A sensor on demand is wanted while somebody uses it, and a little longer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from hpwsn.sensors.gateways.wanted_sensors import WantedSensors
from hpwsn.sensors.physical.physical_sensor import PhysicalSensor, parse_sensor
from hpwsn_client.wsn.topics.topic_expressions import Topic
from tests.patience import holds

LINGER = 0.02
THERMOMETER = Topic.parse("sensors:weather:s1")


def sensor(id_: str = "s1", *, kind: str = "weather", on_demand: bool = True) -> PhysicalSensor:
    quantities = {"t": {"unit": "degC"}}
    return parse_sensor({"id": id_, "kind": kind, "quantities": quantities, "on_demand": on_demand})


class Following:
    """The wanted sensors, and what was told of them."""

    def __init__(self, linger: float = LINGER) -> None:
        self.told: list[tuple[str, bool | None]] = []
        self.sensors = WantedSensors(linger, simple_subtree=True)
        self.reading: list[Topic] = []
        self.sensors.users.watched = lambda: self.reading
        self.sensors.changed.add(lambda *change: self.told.append(change))

    def register(self, *sensors: PhysicalSensor) -> None:
        for each in sensors:
            self.sensors.sensor_changed(each.id, each)

    def read(self, topic: Topic, waiting: bool) -> None:
        (self.reading.append if waiting else self.reading.remove)(topic)
        self.sensors.users.reader_changed(topic, waiting)


@pytest.fixture
async def following() -> AsyncIterator[Following]:
    made = Following()
    yield made
    await made.sensors.close()


async def test_a_sensor_starts_with_its_first_user_and_stops_after_its_last(following: Following) -> None:
    following.register(sensor(), sensor("s2"))
    assert (following.sensors.wanted("s1"), following.sensors.wanted("s2")) == (False, False)
    following.read(THERMOMETER, True)
    assert following.sensors.wanted("s1") is True
    assert following.told == [("s1", True)]
    following.read(THERMOMETER, False)
    assert following.sensors.wanted("s1") is True
    await holds(lambda: ("s1", False) in following.told)
    assert following.sensors.wanted("s1") is False
    assert following.told.count(("s1", True)) == 1


async def test_a_user_that_comes_back_within_the_linger_changes_nothing() -> None:
    following = Following(linger=0.2)
    following.register(sensor())
    following.read(THERMOMETER, True)
    for _ in range(3):
        following.read(THERMOMETER, False)
        following.read(THERMOMETER, True)
    other = sensor("s2")
    following.register(other)
    await holds(lambda: ("s2", False) in following.told)
    assert following.told == [("s1", True), ("s2", False)]
    assert following.sensors.wanted("s1") is True
    await following.sensors.close()


async def test_a_new_sensor_that_nobody_wants_is_told_to_stop_after_the_linger(following: Following) -> None:
    following.sensors.begin([sensor(), sensor("s2", on_demand=False)])
    assert following.sensors.wanted("s1") is False
    assert following.told == []
    await holds(lambda: following.told == [("s1", False)])
    assert following.sensors.counts == {"on_demand": 1, "wanted": 0}


@pytest.mark.parametrize("topic", ["sensors", "sensors:weather"])
async def test_a_topic_above_is_a_user_too(following: Following, topic: str) -> None:
    following.register(sensor(), sensor("q1", kind="quake"))
    following.read(Topic.parse(topic), True)
    assert following.sensors.wanted("s1") is True
    assert following.sensors.wanted("q1") is (topic == "sensors")


async def test_members_of_running_virtual_sensors_are_wanted(following: Following) -> None:
    following.sensors.use("early", ["s1", "unknown"])
    following.register(sensor(), sensor("s2"), sensor("s3", on_demand=False))
    assert following.told == [("s1", True)]
    following.sensors.use("mean", ["s1", "s2", "s3"])
    following.sensors.use("early", [])
    assert following.told == [("s1", True), ("s2", True)]
    following.sensors.use("mean", ["s2"])
    await holds(lambda: ("s1", False) in following.told)
    assert following.sensors.wanted("s2") is True
    following.sensors.use("mean", [])
    await holds(lambda: ("s2", False) in following.told)
    assert following.sensors.wanted("s3") is None
    assert following.sensors.counts == {"on_demand": 2, "wanted": 0}


async def test_a_sensor_that_is_no_longer_on_demand_is_told_once(following: Following) -> None:
    following.register(sensor())
    following.read(THERMOMETER, True)
    following.register(sensor(on_demand=False))
    assert following.sensors.wanted("s1") is None
    following.register(sensor())
    assert following.sensors.wanted("s1") is True
    following.sensors.sensor_changed("s1", None)
    following.sensors.sensor_changed("s1", None)
    assert following.told == [("s1", True), ("s1", None), ("s1", True), ("s1", None)]


async def test_a_sensor_of_another_kind_has_other_users(following: Following) -> None:
    following.register(sensor())
    following.read(THERMOMETER, True)
    following.register(sensor(kind="quake"))
    assert following.sensors.wanted("s1") is False
    await holds(lambda: following.told == [("s1", True), ("s1", False)])
    following.read(Topic.parse("sensors:quake"), True)
    assert following.sensors.wanted("s1") is True


async def test_a_subscription_without_a_topic_filter_wants_no_sensor(following: Following) -> None:
    class Everything:
        topics: tuple[Any, ...] = ()
        deliverable = True

    following.register(sensor())
    everything: Any = Everything()
    following.sensors.users.subscription_changed(everything)
    assert following.sensors.wanted("s1") is False
