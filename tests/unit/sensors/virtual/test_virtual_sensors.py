"""Virtual sensors run while somebody uses their topic, and follow their definitions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hpwsn.journal import Journal
from hpwsn.sensors.physical.physical_sensor import SensorRefused
from hpwsn.sensors.virtual.definitions import KIND, Definitions, TooManyDefinitions
from hpwsn.sensors.virtual.virtual_sensors import VirtualSensors
from hpwsn_client.wsn.topics.topic_expressions import Topic
from tests.patience import holds
from tests.unit.sensors.virtual.virtual_field import Field, sensor, template

LINGER = 0.05


class Node:
    """Virtual sensors over a journal, and who reads which topic."""

    def __init__(self, journal: Journal, linger: float = LINGER, documents: Any = None) -> None:
        self.field = Field(sensor("s1"), sensor("s2"))
        self.definitions = Definitions(journal, limit=3, clock=self.field.clock)
        self.definitions.restore(documents or {})
        self.virtual = VirtualSensors(
            self.definitions,
            self.field.running,
            self.field.last,
            self.field.jobs,
            linger=linger,
            simple_subtree=True,
        )
        self.reading: list[Topic] = []
        self.virtual.users.watched = lambda: self.reading

    def read(self, topic: str) -> None:
        self.reading.append(Topic.parse(topic))
        self.virtual.users.reader_changed(Topic.parse(topic), True)

    def leave(self, topic: str) -> None:
        self.reading.remove(Topic.parse(topic))
        self.virtual.users.reader_changed(Topic.parse(topic), False)

    @property
    def running(self) -> set[str]:
        return set(self.virtual.running.names)

    def state(self, name: str) -> str:
        found = self.virtual.get(name)
        assert found is not None
        return str(self.virtual.describe(found)["state"])


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[Journal]:
    journal = Journal(tmp_path / "journal.db", reserve=1 << 16)
    await journal.open()
    yield journal
    await journal.close()


@pytest.fixture
async def node(journal: Journal) -> AsyncIterator[Node]:
    made = Node(journal)
    made.virtual.begin()
    yield made
    await made.virtual.close()


async def test_one_runs_from_its_first_user_until_linger_after_the_last(node: Node) -> None:
    await node.virtual.put([template("hall"), template("roof")])
    assert (node.state("hall"), node.running) == ("idle", set())
    node.read("virtual:hall")
    node.read("virtual:hall")
    assert (node.state("hall"), node.running) == ("running", {"hall"})
    first = node.virtual.running.windows("hall")
    node.leave("virtual:hall")
    assert node.running == {"hall"}
    node.leave("virtual:hall")
    assert node.state("hall") == "running"
    await holds(lambda: not node.running)
    assert node.state("hall") == "idle"
    node.read("virtual:hall")
    assert node.virtual.running.windows("hall") is not first


async def test_who_comes_back_within_the_linger_finds_it_as_it_was(journal: Journal) -> None:
    node = Node(journal, linger=60)
    node.virtual.begin()
    await node.virtual.put([template("hall")])
    node.read("virtual:hall")
    windows = node.virtual.running.windows("hall")
    node.leave("virtual:hall")
    node.read("virtual:hall")
    assert node.virtual.running.windows("hall") is windows
    assert not node.virtual._leaving
    await node.virtual.close()


@pytest.mark.parametrize(
    ("topic", "running"),
    [
        ("virtual", {"hall", "roof"}),
        ("virtual:hall", {"hall"}),
        ("virtual:hall:deeper", set()),
        ("sensors", set()),
        ("virtual:nothing", set()),
    ],
)
async def test_a_reader_of_a_topic_above_uses_all_below(topic: str, running: set[str], node: Node) -> None:
    await node.virtual.put([template("hall"), template("roof")])
    node.read(topic)
    assert node.running == running


async def test_a_definition_that_is_used_already_runs_at_once(node: Node) -> None:
    node.read("virtual:hall")
    await node.virtual.put([template("hall")])
    assert node.running == {"hall"}


async def test_a_definition_that_changes_while_it_runs_goes_on_as_defined_now(node: Node) -> None:
    node.read("virtual:hall")
    await node.virtual.put([template("hall")])
    windows = node.virtual.running.windows("hall")
    await node.virtual.put([template("hall")])
    assert node.virtual.running.windows("hall") is windows
    await node.virtual.put([template("hall", combine="max")])
    assert node.virtual.running.windows("hall") is not windows
    assert node.virtual.get("hall") == template("hall", combine="max")
    node.leave("virtual:hall")
    await holds(lambda: not node.running)


async def test_a_definition_that_is_removed_stops_and_one_that_comes_back_is_new(node: Node) -> None:
    node.read("virtual:hall")
    await node.virtual.put([template("hall")])
    assert await node.virtual.remove("hall")
    assert (node.running, node.virtual.get("hall"), len(node.virtual)) == (set(), None, 0)
    assert not await node.virtual.remove("hall")
    await node.virtual.put([template("hall")])
    assert node.running == {"hall"}


async def test_a_definition_that_is_removed_while_it_lingers_leaves_nothing(node: Node) -> None:
    await node.virtual.put([template("hall")])
    node.read("virtual:hall")
    node.leave("virtual:hall")
    await node.virtual.remove("hall")
    assert (node.running, node.virtual._leaving) == (set(), {})


async def test_many_changes_at_once_are_made_one_after_another(node: Node) -> None:
    node.read("virtual")
    await asyncio.gather(
        *[node.virtual.put([template("hall", quorum=number + 1)]) for number in range(20)],
        *[node.virtual.remove("hall") for _ in range(10)],
        node.virtual.put([template("roof")]),
    )
    await node.virtual.put([template("hall")])
    assert node.running == {"hall", "roof"}


async def test_a_change_is_made_to_its_end_if_the_caller_leaves(node: Node) -> None:
    node.read("virtual:hall")
    asking = asyncio.create_task(node.virtual.put([template("hall")]))
    await asyncio.sleep(0)
    asking.cancel()
    await holds(lambda: node.running == {"hall"})
    assert node.virtual.get("hall") is not None


async def test_what_is_refused_changes_nothing(node: Node) -> None:
    await node.virtual.put([template("a"), template("b")])
    with pytest.raises(TooManyDefinitions):
        await node.virtual.put([template("c"), template("d")])
    with pytest.raises(SensorRefused, match="this node runs no services"):
        await node.virtual.put([template("c"), template("a", service="x")])
    assert sorted(each.name for each in node.virtual) == ["a", "b"]
    assert node.virtual.get("a") == template("a")


async def test_after_a_restart_only_what_is_used_runs(journal: Journal) -> None:
    before = Node(journal)
    before.virtual.begin()
    await before.virtual.put([template("hall"), template("roof")])
    await before.virtual.close()
    await journal.close()
    documents = (await journal.open()).documents[KIND]
    node = Node(journal, documents=documents)
    node.reading.append(Topic.parse("virtual:hall"))
    assert node.running == set()
    node.virtual.begin()
    assert (node.running, len(node.virtual)) == ({"hall"}, 2)
    assert node.virtual.figures() == {"virtual": 2, "running": 1}
    await node.virtual.close()


async def test_definitions_before_the_begin_start_with_it(journal: Journal) -> None:
    node = Node(journal)
    node.reading.append(Topic.parse("virtual:hall"))
    await node.virtual.put([template("hall")])
    assert node.running == set()
    node.virtual.begin()
    assert node.running == {"hall"}
    await node.virtual.close()


async def test_a_description_has_the_template_and_what_runs(node: Node) -> None:
    await node.virtual.put([template("hall", tags=["x"])])
    idle = node.virtual.describe(template("hall", tags=["x"]))
    assert idle == {
        "name": "hall",
        **template("hall", tags=["x"]).document(),
        "topic": "virtual:hall",
        "state": "idle",
        "members": None,
        "late": None,
        "refused": None,
    }
    await node.virtual.put([template("hall")])
    node.read("virtual:hall")
    await holds(lambda: node.virtual.describe(template("hall"))["members"] == 2)
    found = node.virtual.describe(template("hall"))
    assert (found["state"], found["late"], found["refused"]) == ("running", 0, 0)
