"""The topics that virtual sensors need: each told once when the first needs it, and once after the last."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from hpwsn.sensors.gateways.member_topics import MemberTopics
from hpwsn.sensors.physical.physical_sensor import PhysicalSensor, parse_sensor
from hpwsn_client.wsn.topics.topic_expressions import Topic


def sensor(id_: str, kind: str) -> PhysicalSensor:
    return parse_sensor({"id": id_, "kind": kind, "quantities": {"t": {"unit": "K"}}})


class Following:
    """The topics with a registry, and what was told of them."""

    def __init__(self) -> None:
        self.registered: dict[str, PhysicalSensor] = {}
        self.topics = MemberTopics(self.registered.get)
        self.told: list[tuple[str, bool]] = []
        self.topics.changed.add(lambda topic, needed: self.told.append((str(topic), needed)))

    def register(self, id_: str, kind: str) -> None:
        self.registered[id_] = sensor(id_, kind)
        self.topics.sensor_changed(id_, self.registered[id_])

    def remove(self, id_: str) -> None:
        if self.registered.pop(id_, None) is not None:
            self.topics.sensor_changed(id_, None)


def test_a_topic_is_needed_from_the_first_virtual_sensor_to_the_last() -> None:
    found = Following()
    found.register("s1", "weather")
    found.register("s2", "weather")
    found.topics.use("north", ["s1", "s2"])
    found.topics.use("south", ["s1"])
    assert sorted(found.told) == [("sensors:weather:s1", True), ("sensors:weather:s2", True)]
    assert set(found.topics) == {Topic.parse("sensors:weather:s1"), Topic.parse("sensors:weather:s2")}
    found.told.clear()
    found.topics.use("north", [])
    assert found.told == [("sensors:weather:s2", False)]
    found.topics.use("south", [])
    assert found.told[1:] == [("sensors:weather:s1", False)]
    assert list(found.topics) == []


def test_a_sensor_of_another_kind_is_needed_on_its_new_topic() -> None:
    found = Following()
    found.register("s1", "weather")
    found.topics.use("north", ["s1"])
    found.register("s1", "quake")
    assert found.told[1:] == [("sensors:quake:s1", True), ("sensors:weather:s1", False)]
    found.register("s1", "quake")
    assert len(found.told) == 3
    found.remove("s1")
    found.topics.use("north", [])
    assert found.told[3:] == [("sensors:quake:s1", False)]


IDS = st.sampled_from(["s1", "s2", "s3"])
STEPS = st.one_of(
    st.tuples(st.just("use"), st.sampled_from(["a", "b"]), st.frozensets(IDS)),
    st.tuples(st.just("register"), IDS, st.sampled_from(["weather", "quake"])),
    st.tuples(st.just("remove"), IDS, st.none()),
)


@given(st.lists(STEPS))
def test_what_was_told_is_what_is_needed(steps: list[tuple[str, str, object]]) -> None:
    found = Following()
    members: dict[str, object] = {}
    for step, name, rest in steps:
        if step == "use":
            # Members are registered sensors, as a registry tells them.
            chosen = [each for each in rest if each in found.registered]  # type: ignore[attr-defined]
            found.topics.use(name, chosen)
            members[name] = chosen
        elif step == "register":
            found.register(name, str(rest))
        else:
            for user, chosen in members.items():
                members[user] = [each for each in chosen if each != name]  # type: ignore[attr-defined]
                found.topics.use(user, members[user])  # type: ignore[arg-type]
            found.remove(name)
        needed = {each for chosen in members.values() for each in chosen}  # type: ignore[attr-defined]
        expected = {str(found.registered[each].topic) for each in needed}
        assert set(map(str, found.topics)) == expected
        held: Counter[str] = Counter()
        for topic, is_needed in found.told:
            held[topic] += 1 if is_needed else -1
        assert {topic for topic, count in held.items() if count} == expected
        assert max(held.values(), default=0) <= 1
