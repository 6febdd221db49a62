"""`hpwsn sensors simulate` with real servers: readings reach an MQTT broker, and failures are one line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.harness import NodeProcess, environment, quiet_port
from tests.mosquitto import Mosquitto, field
from tests.patience import PATIENCE, until


@contextmanager
def simulating(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The running command; it is killed if a test leaves it."""
    command = [sys.executable, "-m", "hpwsn", "sensors", "simulate", "weather", *arguments]
    piped = subprocess.PIPE
    with subprocess.Popen(command, env=environment(), stdout=piped, stderr=piped, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def simulate(*arguments: str) -> tuple[int, str, str]:
    """The status of the command, and what it printed."""
    with simulating(*arguments) as process:
        out, err = process.communicate(timeout=PATIENCE)
        return process.returncode, out, err


FAST = ("--sensors", "2", "--seconds", "30", "--speed", "max")


def test_each_reading_is_a_message_on_the_topic_of_its_sensor(mosquitto: Mosquitto) -> None:
    with field(mosquitto) as client:
        client.listen("tele/+")
        told = ("--mqtt", mosquitto.url, "--mqtt-topic", "tele/{sensor}", "--json")
        status, out, err = simulate(*FAST, *told)
        assert status == 0, err
        until(lambda: len(client.commands) == 60, lambda: f"{len(client.commands)} messages")
        printed = [json.loads(line) for line in out.splitlines()]
        assert [json.loads(payload) for _, payload in client.commands] == printed
        assert {topic for topic, _ in client.commands} == {"tele/weather-1", "tele/weather-2"}
    assert "the sensors are not registered" in err
    assert "60 readings by MQTT: 60 acknowledged by the broker" in err


def test_sensors_are_registered_at_the_node_and_readings_go_by_mqtt(
    mosquitto: Mosquitto, shared_node: NodeProcess
) -> None:
    with field(mosquitto) as client:
        client.listen("sensors/+/readings")
        status, out, err = simulate(*FAST, "--mqtt", mosquitto.url, "--url", shared_node.url)
        assert (status, err) == (0, "")
        assert out == "60 readings by MQTT: 60 acknowledged by the broker\n"
        until(lambda: len(client.commands) == 60, lambda: f"{len(client.commands)} messages")


def test_a_broker_that_wants_a_password_gets_it(tmp_path: Path) -> None:
    with Mosquitto(tmp_path / "mosquitto", user="field", password="secret") as server:
        told = ("--mqtt", server.url, "--mqtt-user", "field", "--describe")
        assert simulate(*FAST, *told, "--mqtt-password-file", str(server.password_file))[0] == 0
        status, _, err = simulate(*FAST, *told)
        assert status == 1
        assert "refuses the connection" in err
        assert err.count("\n") == 1


@pytest.mark.parametrize(("option", "scheme"), [("--mqtt", "mqtt"), ("--url", "http")])
def test_a_server_that_is_away_is_one_line(option: str, scheme: str) -> None:
    status, out, err = simulate(*FAST, option, f"{scheme}://127.0.0.1:{quiet_port()}")
    assert (status, out) == (1, "")
    assert err.startswith("hpwsn: error: no ")
    assert err.count("\n") == 1


def test_an_interrupted_simulation_says_what_it_sent_and_ends(mosquitto: Mosquitto) -> None:
    with field(mosquitto) as client, simulating("--mqtt", mosquitto.url, "--describe") as process:
        client.listen("sensors/#")
        until(lambda: client.commands, lambda: "nothing was sent")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
        assert (process.returncode, err) == (130, "")
        assert "readings by MQTT" in out
