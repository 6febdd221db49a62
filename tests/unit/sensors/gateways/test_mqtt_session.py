"""The session at an MQTT broker is found again after a restart, with what was subscribed to."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpwsn.sensors.gateways.mqtt_session import FILE, MqttSession

URL = "mqtt://127.0.0.1:1883"


def test_a_restarted_node_has_the_same_client_and_knows_its_subscriptions(tmp_path: Path) -> None:
    first = MqttSession(tmp_path, "n1", URL)
    assert first.client_id.startswith("hpwsn-n1-")
    assert first.differs(["a/+", "b"]) == ({"a/+", "b"}, set())
    first.subscribed(["a/+", "b"])
    again = MqttSession(tmp_path, "n1", URL)
    assert again.client_id == first.client_id
    assert again.differs(["b", "c"]) == ({"c"}, {"a/+"})


def test_two_data_directories_have_two_clients(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    one, two = (MqttSession(tmp_path / each, "n1", URL).client_id for each in ("one", "two"))
    assert one != two


def test_nothing_is_subscribed_to_at_another_broker_or_in_a_new_session(tmp_path: Path) -> None:
    MqttSession(tmp_path, "n1", URL).subscribed(["a"])
    assert MqttSession(tmp_path, "n1", "mqtt://elsewhere").differs(["a"]) == ({"a"}, set())
    MqttSession(tmp_path, "n1", URL).began()
    assert MqttSession(tmp_path, "n1", URL).differs(["a"]) == ({"a"}, set())


@pytest.mark.parametrize("content", ["", "[]", '{"client_id": "x"}', '{"url": 1, "subscribed": 2'])
def test_a_damaged_file_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE).write_text(content)
    with pytest.raises(ValueError, match="remove it, and a new session begins"):
        MqttSession(tmp_path, "n1", URL)
