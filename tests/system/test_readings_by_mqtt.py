"""Readings over MQTT, from a real broker: each is taken once, whatever ends in between."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.activemq import ActiveMQ
from tests.harness import hpwsn
from tests.mosquitto import Mosquitto, field
from tests.mqtt_application import mqtt_application
from tests.patience import PATIENCE, until
from tests.sensor_node import SensorNode, ago, sensor, series

TOPIC = "sensors/{}/readings"


class MqttNode(SensorNode):
    """A node that takes the readings of a broker."""

    def __init__(self, data: Path, url: str, *arguments: str, **settings: object) -> None:
        super().__init__(data, *arguments, sensors={"mqtt_url": url, **settings})

    @property
    def link(self) -> dict[str, Any]:
        """The figures of the gateway."""
        found: dict[str, Any] = self.figures["mqtt"]
        return found

    def connected(self, is_: bool = True) -> None:
        """Wait for the broker, or for its end."""
        until(lambda: self.link["connected"] is is_, self.log)

    def has(self, count: int, name: str = "s1") -> None:
        """Wait for so many events of a sensor, of which each has another time."""
        until(
            lambda: len(self.events(f"sensors:weather:{name}")) >= count, lambda: f"{self.link}\n{self.log()}"
        )
        until(lambda: self.link["waiting"] == 0, self.log)
        events = self.events(f"sensors:weather:{name}")
        assert len(events) == count == len({event["time"] for event in events})


@pytest.fixture
def node(tmp_path: Path, mosquitto: Mosquitto) -> Iterator[MqttNode]:
    """One with the sensors s1 and s2, connected."""
    with MqttNode(tmp_path / "data", mosquitto.url) as running:
        running.register(sensor("s1"), sensor("s2"))
        running.connected()
        yield running


def messages(name: str, count: int, start: float = 1000.0) -> list[tuple[str, bytes]]:
    """As many messages of one reading each."""
    return [(TOPIC.format(name), json.dumps(each).encode()) for each in series(name, count, start)]


def test_every_form_of_a_payload_is_taken(node: MqttNode, mosquitto: Mosquitto) -> None:
    a, b, c, d, e, f, g = (ago(100 - n)[:23] + "Z" for n in range(7))
    with field(mosquitto) as client:
        topic = TOPIC.format("s1")
        client.publish(topic, {"t": 1, "time": a}, [{"t": 2, "time": b}, {"sensor": "s1", "t": 3, "time": c}])
        client.publish(topic, f'{{"t": 4, "time": "{d}"}}\n{{"t": 5, "time": "{e}"}}\n'.encode())
        client.publish(topic, f"t [degF],time\n33.8,{f}\n35.6,{g}\n".encode())
        client.publish(TOPIC.format("s2"), {"t": 9, "time": a})
        node.has(7)
        node.has(1, "s2")
    assert [event["t"] for event in node.events("sensors:weather:s1")] == [1, 2, 3, 4, 5, 1, 2]
    assert [event["time"] for event in node.events("sensors:weather:s1")] == [a, b, c, d, e, f, g]
    assert (node.link["messages"], node.link["unreadable"]) == (5, 0)
    assert node.figures["readings"] == 8


def test_what_is_wrong_is_counted_kept_and_acknowledged(node: MqttNode, mosquitto: Mosquitto) -> None:
    good, old = {"t": 1, "time": ago(5)}, {"t": 1, "time": ago(90_000)}
    with field(mosquitto) as client:
        client.publish(TOPIC.format("s1"), b"{", b"\xff\x00", b"", b"7", [])
        client.publish(TOPIC.format("s1"), {"sensor": "s2", "t": 1}, {"t": 99}, {"x": 1}, old)
        client.publish(TOPIC.format("s1"), {"t": {"value": 1, "unit": "m"}}, good, good)
        client.publish(TOPIC.format("nobody"), {"t": 1})
        until(lambda: node.link["messages"] == 13, lambda: f"{node.figures}\n{node.log()}")
        assert node.figures["rejected"] == {
            "malformed": 6,
            "unknown-sensor": 1,
            "unknown-quantity": 1,
            "unit": 1,
            "range": 1,
            "time": 1,
            "duplicate": 1,
        }
        node.has(1)
    kept = node.rejected()
    assert len(kept) == 12
    assert all(each["source"] == "mqtt" for each in kept)
    assert {each["sensor"] for each in kept} == {"s1", "nobody"}
    wrong = [each for each in kept if "the reading is of the sensor 's2'" in each["detail"]]
    assert [(each["sensor"], json.loads(each["reading"])) for each in wrong] == [
        ("s1", {"sensor": "s2", "t": 1})
    ]
    # Nothing of it comes again.
    node.terminate()
    node.start()
    node.connected()
    with field(mosquitto) as client:
        client.publish(TOPIC.format("s1"), {"t": 2})
        node.has(2)
    assert node.link["messages"] == 1


@pytest.mark.parametrize("end", ["terminate", "kill"])
def test_what_comes_while_the_node_is_down_is_taken_once_it_is_back(
    node: MqttNode, mosquitto: Mosquitto, end: str
) -> None:
    sent = messages("s1", 600)
    with field(mosquitto) as client:
        client.publish_all(sent[:100])
        node.has(100)
        getattr(node, end)()
        client.publish_all(sent[100:])
        node.start()
        node.has(600)
    assert [event["t"] for event in node.events("sensors:weather:s1")] == [at % 50 for at in range(600)]
    assert node.figures["rejected"]["duplicate"] == 0 or end == "kill"


def test_a_node_that_is_killed_again_and_again_loses_no_reading_and_takes_none_twice(
    node: MqttNode, mosquitto: Mosquitto
) -> None:
    sent = messages("s1", 4000, start=5000)
    with field(mosquitto) as client:
        publishing = threading.Thread(target=lambda: client.publish_all(sent))
        publishing.start()
        for least in (1, 500, 1500):
            until(lambda least=least: len(node.events("sensors:weather:s1")) >= least, node.log)
            node.kill()
            node.start()
        publishing.join(PATIENCE)
        node.has(4000)


def test_a_broker_that_restarts_loses_no_reading(node: MqttNode, mosquitto: Mosquitto) -> None:
    with field(mosquitto) as client:
        client.publish_all(messages("s1", 50))
        node.has(50)
    mosquitto.stop()
    node.connected(False)
    assert any("no connection to the MQTT broker" in each for each in node.get("/status")["problems"])
    assert node.get("/readyz")["ready"]
    mosquitto.start()
    node.connected()
    with field(mosquitto) as client:
        client.publish_all(messages("s2", 50))
        node.has(50, "s2")
    assert node.figures["rejected"]["duplicate"] == 0


def test_a_broker_that_is_there_only_later_is_found(tmp_path: Path) -> None:
    server = Mosquitto(tmp_path / "mosquitto")
    with MqttNode(tmp_path / "data", server.url) as node:
        node.register(sensor("s1"))
        node.connected(False)
        with server:
            node.connected()
            with field(server) as client:
                client.publish_all(messages("s1", 3))
                node.has(3)


def test_topics_are_as_the_setting_says_and_follow_its_change(tmp_path: Path, mosquitto: Mosquitto) -> None:
    first = {"mqtt_topics": "field/+/{sensor}, all/#"}
    node = MqttNode(tmp_path / "data", mosquitto.url, **first)
    with node, field(mosquitto) as client:
        node.register(sensor("s1"))
        node.connected()
        client.publish("field/north/s1", {"t": 1})
        client.publish("all/of/them", {"sensor": "s1", "t": 2}, {"t": 3})
        node.has(2)
        until(lambda: node.figures["rejected"]["malformed"] == 1)
        node.terminate()
        client.publish("field/north/s1", {"t": 4})
        # What the session has queued comes, though the new setting does not name its topic.
        again = MqttNode(tmp_path / "data", mosquitto.url, mqtt_topics="new/{sensor}")
        with again:
            again.connected()
            client.publish("new/s1", {"t": 5})
            until(lambda: [event["t"] for event in again.events("sensors:weather:s1")][-1] == 5, again.log)
            before = again.link["messages"]
            client.publish("field/north/s1", {"t": 6})
            client.publish("new/s1", {"t": 7})
            until(lambda: again.link["messages"] == before + 1, again.log)
            assert [event["t"] for event in again.events("sensors:weather:s1")][-2:] == [5, 7]


def test_one_message_may_have_as_many_readings_as_allowed(tmp_path: Path, mosquitto: Mosquitto) -> None:
    with MqttNode(tmp_path / "data", mosquitto.url, readings_limit=20) as node, field(mosquitto) as client:
        node.register(sensor("s1"))
        node.connected()
        readings = list(series("s1", 41))
        client.publish(TOPIC.format("s1"), readings[:21], readings[21:])
        node.has(20)
        assert node.link["unreadable"] == 1
        assert "sensors.readings_limit" in node.rejected()[0]["detail"]


def test_a_password_over_tls(tmp_path: Path) -> None:
    server = Mosquitto(tmp_path / "mosquitto", user="node", password="secret", secure=True)
    with server:
        settings = {
            "mqtt_user": "node",
            "mqtt_password_file": server.password_file,
            "mqtt_ca_file": server.ca_file,
        }
        with MqttNode(tmp_path / "data", server.url, **settings) as node, field(server) as client:
            node.register(sensor("s1"))
            node.connected()
            client.publish_all(messages("s1", 3))
            node.has(3)
            # The password is read at each connection.
            server.password_file.write_text("wrong\n")
            server.stop()
            node.connected(False)
            server.start()
            server.password_file.write_text("wrong\n")
            until(lambda: any("refused" in each for each in node.get("/status")["problems"]), node.log)
            server.password_file.write_text("secret\n")
            node.connected()


def test_a_certificate_that_is_not_trusted_is_told(tmp_path: Path) -> None:
    with (
        Mosquitto(tmp_path / "mosquitto", secure=True) as server,
        MqttNode(tmp_path / "data", server.url) as node,
    ):
        until(lambda: any("not trusted" in each for each in node.get("/status")["problems"]), node.log)


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("mqtt_url=mqtt://", "sensors.mqtt_url"),
        ("mqtt_url=http://127.0.0.1", "sensors.mqtt_url"),
        ("mqtt_url=mqtt://u:p@127.0.0.1", "sensors.mqtt_user"),
        ("mqtt_topics=a/{sensor}b", "sensors.mqtt_topics"),
        ("mqtt_topics=", "sensors.mqtt_topics"),
        ("mqtt_commands=a/+", "sensors.mqtt_commands"),
        ("mqtt_password_file=/nowhere", "sensors.mqtt_password_file"),
        ("mqtt_ca_file=/nowhere", "sensors.mqtt_ca_file"),
    ],
)
def test_a_wrong_setting_is_told_before_the_start(tmp_path: Path, setting: str, told: str) -> None:
    given = ("--set", "sensors.mqtt_url=mqtt://127.0.0.1:9", "--set", f"sensors.{setting}")
    ended = hpwsn("serve", "--data", str(tmp_path / "data"), "--port", "0", *given)
    assert ended.returncode == 1
    assert told in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("by", ["mqtt", "http"])
def test_simulated_sensors_register_themselves_where_the_node_allows_it(
    tmp_path: Path, mosquitto: Mosquitto, by: str
) -> None:
    with MqttNode(tmp_path / "data", mosquitto.url, auto_register="true") as node:
        node.connected()
        target = ("--mqtt", mosquitto.url) if by == "mqtt" else ("--url", node.url)
        given = ("weather", "--sensors", "3", "--seconds", "20", "--speed", "max", "--describe", *target)
        ended = hpwsn("sensors", "simulate", *given)
        assert ended.returncode == 0, ended.stderr
        until(lambda: node.figures["readings"] == 60, lambda: f"{node.figures}\n{node.rejected()[:3]}")
        found = node.get("/sensors")["items"]
        assert [each["id"] for each in found] == ["weather-1", "weather-2", "weather-3"]
        assert all(each["kind"] == "weather" and each["quantities"] and each["place"] for each in found)
        node.has(20, "weather-2")
        assert set(node.figures["rejected"].values()) == {0}


def test_the_broker_of_the_settings_needs_no_registration(tmp_path: Path, mosquitto: Mosquitto) -> None:
    with MqttNode(tmp_path / "data", mosquitto.url, "--set=registrations.required=true") as node:
        node.register(sensor("s1"))
        node.connected()
        with field(mosquitto) as client:
            client.publish_all(messages("s1", 5))
        node.has(5)
        assert node.post(*series("s1", 1, 2000.0)).status == 403


def test_without_auto_register_simulated_sensors_are_unknown(node: MqttNode, mosquitto: Mosquitto) -> None:
    given = ("weather", "--sensors", "1", "--seconds", "5", "--speed", "max", "--describe")
    assert hpwsn("sensors", "simulate", *given, "--mqtt", mosquitto.url).returncode == 0
    until(lambda: node.figures["rejected"]["unknown-sensor"] == 5, node.log)
    assert node.ask("GET", "/sensors/weather-1").status == 404


def test_the_mqtt_port_of_activemq(tmp_path: Path, activemq: ActiveMQ) -> None:
    topics = {"mqtt_topics": f"{tmp_path.name}/{{sensor}}"}
    node = MqttNode(tmp_path / "data", f"mqtt://127.0.0.1:{activemq.mqtt_port}", **topics)
    with node, mqtt_application(activemq) as (client, _):
        node.register(sensor("s1"))
        node.connected()
        readings = series("s1", 300)

        def publish(part: slice) -> None:
            sent = [
                client.publish(f"{tmp_path.name}/s1", json.dumps(each).encode(), qos=1)
                for each in readings[part]
            ]
            for each in sent:
                each.wait_for_publish(PATIENCE)

        publish(slice(0, 100))
        node.has(100)
        node.kill()
        publish(slice(100, 200))
        node.start()
        node.has(200)
        node.terminate()
        publish(slice(200, 300))
        node.start()
        node.has(300)
