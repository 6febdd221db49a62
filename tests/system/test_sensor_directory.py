"""Sensors in OpenLDAP: a node follows the edits of an admin, and writes there if it may."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.harness import hpwsn
from tests.patience import until
from tests.sensor_node import SensorNode, sensor
from tests.slapd import ADMIN, Slapd

SENSORS = "ou=sensors,dc=hpwsn"
ROOF = f"""\
dn: hpwsnSensorId=roof,{SENSORS}
objectClass: hpwsnSensor
hpwsnSensorId: roof
hpwsnSensorKind: weather
hpwsnSensorQuantity: t; degC; -40; 60
hpwsnSensorQuantity: p; hPa
hpwsnSensorLongitude: 116.4
hpwsnSensorLatitude: 39.9
hpwsnSensorTag: roof
hpwsnSensorInterval: 10
hpwsnSensorOnDemand: TRUE
hpwsnSensorOwner: met office
"""
DESCRIBED = {
    "id": "roof",
    "kind": "weather",
    "quantities": {"t": {"unit": "degC", "min": -40.0, "max": 60.0}, "p": {"unit": "hPa"}},
    "place": {"longitude": 116.4, "latitude": 39.9},
    "tags": ["roof"],
    "interval": 10.0,
    "owner": "met office",
    "on_demand": True,
}


def entry(name: str, quantity: str = "t; degC", kind: str = "weather") -> str:
    lines = [f"dn: hpwsnSensorId={name},{SENSORS}", "objectClass: hpwsnSensor", f"hpwsnSensorId: {name}"]
    lines += [f"hpwsnSensorKind: {kind}", f"hpwsnSensorQuantity: {quantity}"]
    return "\n".join(lines) + "\n"


class DirectoryNode(SensorNode):
    """A node whose sensors are in a directory; it may write with `edits`."""

    def __init__(self, data: Path, server: Slapd, *, edits: bool = False, **settings: object) -> None:
        given = {"topics.url": server.url, "topics.open": "true", "topics.poll": "0.1 s"}
        given |= {"topics.retry_max": "0.2 s"}
        if edits:
            given |= {"topics.edit_bind_dn": ADMIN, "topics.edit_password_file": server.password_file}
        arguments = [f"--set={name}={value}" for name, value in given.items()]
        super().__init__(data, *arguments, sensors={"ldap_base": SENSORS, **settings})

    def ids(self) -> list[str]:
        return [each["id"] for each in self.get("/sensors")["items"]]

    def has(self, *ids: str) -> None:
        """Wait for exactly these sensors."""
        until(lambda: self.ids() == sorted(ids), lambda: f"{self.ids()}\n{self.log()}")

    def described(self, id_: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"/sensors/{id_}")
        return {name: value for name, value in found.items() if name not in ("state", "wanted")}

    def problems(self) -> str:
        return "\n".join(self.get("/status")["problems"])


def test_the_edits_of_an_admin_are_followed(tmp_path: Path, slapd: Slapd) -> None:
    slapd.add(ROOF)
    with DirectoryNode(tmp_path / "data", slapd) as node:
        # They are there once the node is ready.
        assert node.ids() == ["roof"]
        assert node.described("roof") == DESCRIBED
        assert node.post({"sensor": "roof", "t": 20}).status == 202
        slapd.add(entry("s2"))
        node.has("roof", "s2")
        slapd.modify(
            f"dn: hpwsnSensorId=roof,{SENSORS}\nchangetype: modify\n"
            "replace: hpwsnSensorQuantity\nhpwsnSensorQuantity: t; K; ; 400\n-\n"
            "delete: hpwsnSensorLongitude\n-\ndelete: hpwsnSensorLatitude\n"
        )
        until(lambda: node.described("roof")["quantities"] == {"t": {"unit": "K", "max": 400.0}}, node.log)
        assert "place" not in node.described("roof")
        assert node.post({"sensor": "roof", "t": 300}).status == 202
        slapd.rename(f"hpwsnSensorId=s2,{SENSORS}", "hpwsnSensorId=S2")
        node.has("S2", "roof")
        slapd.delete(f"hpwsnSensorId=S2,{SENSORS}")
        node.has("roof")


@pytest.mark.parametrize("end", ["terminate", "kill"])
def test_what_was_edited_while_the_node_was_down_is_found(tmp_path: Path, slapd: Slapd, end: str) -> None:
    slapd.add(ROOF)
    slapd.add(entry("gone"))
    with DirectoryNode(tmp_path / "data", slapd) as node:
        node.register(sensor("own"))
        node.has("gone", "own", "roof")
        getattr(node, end)()
        slapd.delete(f"hpwsnSensorId=gone,{SENSORS}")
        slapd.add(entry("new"))
        node.start()
        # What was registered at the node stays.
        assert node.ids() == ["new", "own", "roof"]


def test_a_directory_that_is_away_takes_no_sensor_away(tmp_path: Path, slapd: Slapd) -> None:
    slapd.add(ROOF)
    with DirectoryNode(tmp_path / "data", slapd) as node:
        assert node.ids() == ["roof"]
        node.kill()
        slapd.kill()
        node.start()
        assert node.ids() == ["roof"]
        assert "the sensors do not change" in node.problems()
        slapd.start()
        slapd.add(entry("s2"))
        node.has("roof", "s2")
        until(lambda: "sensors do not change" not in node.problems())
        slapd.kill()
        until(lambda: "sensors do not change" in node.problems())
        slapd.start()
        slapd.delete(f"hpwsnSensorId=roof,{SENSORS}")
        node.has("s2")


def test_a_server_that_cannot_report_changes_is_asked_again_and_again(tmp_path: Path) -> None:
    with Slapd(tmp_path / "slapd", "--no-syncprov") as server:
        server.add(ROOF)
        with DirectoryNode(tmp_path / "data", server) as node:
            assert node.ids() == ["roof"]
            server.add(entry("s2"))
            node.has("roof", "s2")
            server.delete(f"hpwsnSensorId=roof,{SENSORS}")
            node.has("s2")


def test_entries_that_are_not_valid_are_told_and_cost_nothing_else(tmp_path: Path, slapd: Slapd) -> None:
    slapd.add(ROOF)
    slapd.add(entry("bad-unit", "t; parsnip"))
    slapd.add(entry("bad-range", "t; K; 5; 1"))
    slapd.add(entry("bad-kind", kind="two words"))
    slapd.add(f"dn: ou=more,{SENSORS}\nobjectClass: organizationalUnit\nou: more\n")
    slapd.add(ROOF.replace(SENSORS, f"ou=more,{SENSORS}"))
    with DirectoryNode(tmp_path / "data", slapd) as node:
        assert node.ids() == ["roof"]
        until(lambda: "4 entries are not sensors" in node.problems(), node.problems)
        slapd.modify(
            f"dn: hpwsnSensorId=bad-range,{SENSORS}\nchangetype: modify\n"
            "replace: hpwsnSensorQuantity\nhpwsnSensorQuantity: t; K; 1; 5\n"
        )
        node.has("bad-range", "roof")
        # A sensor whose entry becomes wrong stays as it was, and so does it over a restart.
        slapd.modify(
            f"dn: hpwsnSensorId=bad-range,{SENSORS}\nchangetype: modify\n"
            "replace: hpwsnSensorQuantity\nhpwsnSensorQuantity: t; K; warm\n"
        )
        until(lambda: "not a sensor: hpwsnSensorId=bad-range" in node.log().split("min of t")[0])
        until(lambda: "min of t is 'warm'" in node.log())
        node.kill()
        node.start()
        node.has("bad-range", "roof")
        # The second of two entries counts once the first is gone.
        slapd.delete(f"hpwsnSensorId=roof,{SENSORS}")
        until(lambda: "4 entries" not in node.problems())
        assert "roof" in node.ids()


def test_no_more_sensors_than_allowed(tmp_path: Path, slapd: Slapd) -> None:
    for name in ("a", "b", "c"):
        slapd.add(entry(name))
    with DirectoryNode(tmp_path / "data", slapd, limit=2) as node:
        assert len(node.ids()) == 2
        assert "sensors.limit" in node.problems()


def test_a_sensor_of_a_directory_that_is_only_read_is_changed_there(tmp_path: Path, slapd: Slapd) -> None:
    slapd.add(ROOF)
    with DirectoryNode(tmp_path / "data", slapd, auto_register="true") as node:
        for found in (
            node.ask("POST", "/sensors", [sensor("s1"), sensor("roof")]),
            node.ask("DELETE", "/sensors/roof"),
        ):
            assert found.status == 403
            assert "topics.edit_bind_dn" in found.body["error"]
        assert node.described("roof") == DESCRIBED
        node.register(sensor("s1"))
        assert node.post({"sensor": "new", "kind": "weather", "t": 1}).status == 202
        assert node.ids() == ["new", "roof", "s1"]
        assert node.ask("DELETE", "/sensors/s1").status == 204


def test_what_is_registered_at_the_node_is_written_if_it_may(tmp_path: Path, slapd: Slapd) -> None:
    slapd.add(entry("old"))
    with (
        DirectoryNode(tmp_path / "data", slapd, edits=True) as node,
        DirectoryNode(tmp_path / "other", slapd) as other,
    ):
        assert node.ask("POST", "/sensors", DESCRIBED).status == 201
        node.register(sensor("old", tags=["a"]), sensor("plain", quantities={"n": {"unit": ""}}))
        other.has("old", "plain", "roof")
        assert other.described("roof") == DESCRIBED
        assert other.described("plain") == node.described("plain")
        until(lambda: other.described("old")["tags"] == ["a"], other.log)
        node.register(sensor("roof"))
        until(lambda: other.described("roof") == sensor_described("roof"), other.log)
        assert node.ask("DELETE", "/sensors/old").status == 204
        other.has("plain", "roof")
        node.kill()
        node.start()
        assert node.ids() == ["plain", "roof"]
        # A server that refuses one entry gets none.
        refused = sensor("wrong", tags=[""])
        status, body = node.ask("POST", "/sensors", [sensor("good"), refused])
        assert status == 503, body
        node.has("plain", "roof")
        slapd.kill()
        assert node.ask("POST", "/sensors", sensor("s9")).status == 503
        assert node.ask("DELETE", "/sensors/roof").status == 503
        assert node.ids() == ["plain", "roof"]
        slapd.start()
        until(lambda: "sensors do not change" not in other.problems())
        assert other.ids() == ["plain", "roof"]


def sensor_described(name: str) -> dict[str, Any]:
    found = sensor(name, tags=[])
    found["quantities"] = {"t": {"unit": "degC", "min": -40.0, "max": 60.0}}
    return found


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (["sensors.ldap_base=ou=sensors"], "topics.url is ''"),
        (
            ["sensors.ldap_base=sensors", "topics.url=ldap://127.0.0.1:9/ou=topics"],
            "not a distinguished name",
        ),
    ],
)
def test_a_wrong_setting_is_told_before_the_start(tmp_path: Path, settings: list[str], told: str) -> None:
    given = [f"--set={each}" for each in settings]
    ended = hpwsn("serve", "--data", str(tmp_path / "data"), "--port", "0", *given)
    assert ended.returncode == 1
    assert "sensors.ldap_base" in ended.stderr
    assert told in ended.stderr
    assert "Traceback" not in ended.stderr
