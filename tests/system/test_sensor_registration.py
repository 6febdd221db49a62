"""Physical sensors over HTTP: registered, replaced, listed, shown and removed, also after a restart."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE, until
from tests.sensor_node import SensorNode, sensor

FULL = {
    "id": "roof",
    "kind": "weather",
    "quantities": {"t": {"unit": "degC", "min": -40.0, "max": 60.0}, "p": {"unit": "hPa"}},
    "place": {"longitude": 116.4, "latitude": 39.9},
    "tags": ["roof", "北京"],
    "interval": 10.0,
}
STATE = {"last_seen": None, "interval": None, "silent": False}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SensorNode]:
    """One node for tests that leave it empty."""
    with SensorNode(tmp_path_factory.mktemp("sensors") / "data", sensors={"limit": 5}) as node:
        yield node


@pytest.fixture
def node(running: SensorNode) -> Iterator[SensorNode]:
    yield running
    for each in running.get("/sensors")["items"]:
        assert running.ask("DELETE", f"/sensors/{each['id']}").status == 204


def listed(node: SensorNode, **query: object) -> list[str]:
    return [each["id"] for each in node.get("/sensors", **query)["items"]]


def test_one_sensor_is_answered_with_its_description(node: SensorNode) -> None:
    status, body = node.ask("POST", "/sensors", FULL)
    assert status == 201
    assert body == {**FULL, "state": STATE, "wanted": None}
    assert node.get("/sensors/roof") == body
    assert node.figures["physical"] == 1


def test_an_array_is_registered_whole_or_not_at_all(node: SensorNode) -> None:
    assert node.ask("POST", "/sensors", [sensor("s1"), sensor("s2"), sensor("s1", "quake")]) == (
        201,
        {"registered": 2},
    )
    assert node.get("/sensors/s1")["kind"] == "quake"
    status, body = node.ask("POST", "/sensors", [sensor("s3"), {"id": "s4"}])
    assert status == 400
    assert "at index 1 of the array: the field kind is missing" in body["error"]
    assert listed(node) == ["s1", "s2"]


def test_a_second_registration_replaces_the_first(node: SensorNode) -> None:
    node.register(FULL)
    node.register(sensor("roof", tags=["cellar"]))
    found = node.get("/sensors/roof")
    assert found["tags"] == ["cellar"]
    assert "place" not in found
    assert node.post({"sensor": "roof", "p": 1}).body["errors"] == [
        {"index": 0, "reason": "unknown-quantity"}
    ]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"{", "not JSON"),
        ([], "the array is empty"),
        ({"id": "s1", "kind": "k"}, "quantities is missing"),
        (sensor("two words"), "id is 'two words'"),
        ({**sensor("s1"), "place": {"longitude": 181, "latitude": 0}}, "longitude is 181"),
        ({**sensor("s1"), "colour": "red"}, "the field 'colour' is unknown"),
        ({**sensor("s1"), "quantities": {"t": {"unit": "parsnip"}}}, "the unit 'parsnip' is unknown"),
        ({**sensor("s1"), "quantities": {"time": {"unit": "s"}}}, "the quantity 'time'"),
    ],
)
def test_a_wrong_description_is_told_and_changes_nothing(node: SensorNode, body: Any, told: str) -> None:
    status, answer = node.ask("POST", "/sensors", body)
    assert status == 400
    assert told in answer["error"]
    assert listed(node) == []


def test_as_many_sensors_as_allowed_and_not_one_more(node: SensorNode) -> None:
    node.register(*[sensor(f"s{n}") for n in range(5)])
    status, body = node.ask("POST", "/sensors", [sensor("s0"), sensor("s5")])
    assert status == 503
    assert "sensors.limit" in body["error"]
    assert listed(node) == ["s0", "s1", "s2", "s3", "s4"]
    node.register(sensor("s0", "quake"))


def test_the_list_is_chosen_by_kind_tag_and_area(node: SensorNode) -> None:
    node.register(
        FULL,
        sensor("a", "quake", tags=["deep"], place={"longitude": 179, "latitude": 0}),
        sensor("b", "quake", tags=["deep", "old"], place={"longitude": -179, "latitude": 0}),
    )
    assert listed(node) == ["a", "b", "roof"]
    assert listed(node, kind="quake") == ["a", "b"]
    assert listed(node, kind="none") == []
    assert listed(node, tag="北京") == ["roof"]
    assert [each["id"] for each in node.get("/sensors?tag=deep&tag=old")["items"]] == ["b"]
    assert listed(node, area="116,39,117,40") == ["roof"]
    assert listed(node, area="178,-1,-178,1") == ["a", "b"]
    assert listed(node, kind="quake", area="-180,-1,0,1") == ["b"]
    assert node.ask("GET", "/sensors?area=1,2,3").status == 400
    assert node.ask("GET", "/sensors?colour=red").status == 400


def test_the_list_comes_in_pages(node: SensorNode) -> None:
    node.register(*[sensor(f"s{n}") for n in range(5)])
    first = node.get("/sensors", limit=3)
    assert (len(first["items"]), first["total"]) == (3, 5)
    second = node.get("/sensors", limit=3, after=first["next"])
    assert [each["id"] for each in first["items"] + second["items"]] == [f"s{n}" for n in range(5)]
    assert second["next"] is None


def test_a_removed_sensor_is_unknown(node: SensorNode) -> None:
    node.register(sensor("s1"))
    assert node.ask("DELETE", "/sensors/s1") == (204, None)
    for method in ("GET", "DELETE"):
        status, body = node.ask(method, "/sensors/s1")
        assert status == 404
        assert "there is no sensor 's1'" in body["error"]
    assert node.post({"sensor": "s1", "t": 1}).body["errors"] == [{"index": 0, "reason": "unknown-sensor"}]


@pytest.mark.parametrize("end", ["terminate", "kill"])
def test_sensors_survive_a_restart(tmp_path: Path, end: str) -> None:
    node = SensorNode(tmp_path / "data")
    with node:
        node.register(FULL, sensor("s1"), sensor("s2"))
        node.ask("DELETE", "/sensors/s2")
        assert node.post({"sensor": "s1", "t": 1}).status == 202
        seen = node.get("/sensors/s1")["state"]["last_seen"]
        getattr(node, end)()
        node.start()
        assert listed(node) == ["roof", "s1"]
        assert node.get("/sensors/roof") == {**FULL, "state": STATE, "wanted": None}
        assert node.get("/sensors/s1")["state"]["last_seen"][:19] >= seen[:17]


def test_sensors_of_a_file_are_registered_at_the_start_and_after_sighup(tmp_path: Path) -> None:
    file = tmp_path / "sensors.toml"
    file.write_text('[sensors.s1]\nkind = "weather"\nquantities.t = {unit = "degC"}\n')
    with SensorNode(tmp_path / "data", sensors={"file": file}) as node:
        assert listed(node) == ["s1"]
        node.register(sensor("s2"))
        file.write_text('[[sensors]]\nid = "s3"\nkind = "weather"\nquantities.t = {unit = "K"}\n')
        os.kill(node.pid, signal.SIGHUP)
        until(lambda: listed(node) == ["s1", "s2", "s3"], node.log)
        file.write_text("[sensors.s4]\nkind = 5\n")
        os.kill(node.pid, signal.SIGHUP)
        until(lambda: "sensor 's4'" in node.log())
        assert listed(node) == ["s1", "s2", "s3"]
        assert node.terminate() == 0
        node.launch()
        assert node.process is not None
        assert node.process.wait(PATIENCE) == 1
        assert "sensors.file" in node.log()
