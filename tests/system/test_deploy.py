"""The files for a real installation: the service's own command starts ActiveMQ, and its rules hold."""

from __future__ import annotations

import shlex
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import stomp
from proton import ConnectionException, Message
from proton.utils import LinkDetached, SendException

from hpwsn.configuration.sources import load_config
from tests.activemq import BackedNode
from tests.amqp_application import AmqpApplication
from tests.harness import ROOT, quiet_port
from tests.needs import need
from tests.patience import PATIENCE, until

DEPLOY = ROOT / "scripts" / "deploy"


def exec_start(unit: Path) -> list[str]:
    """The command of a unit, with its continued lines joined."""
    text = unit.read_text().replace("\\\n", " ")
    (line,) = [line for line in text.splitlines() if line.startswith("ExecStart=")]
    return shlex.split(line.removeprefix("ExecStart="))


class Ports(NamedTuple):
    """Where an installed ActiveMQ listens."""

    stomp: int
    mqtt: int
    amqp: int


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[Ports]:
    """The ports of an ActiveMQ that was installed with the files in scripts/deploy, in other folders."""
    need("ActiveMQ with AMQP")
    conf, base = tmp_path / "conf", tmp_path / "base"
    conf.mkdir()
    subprocess.run([str(ROOT / "scripts" / "activemq"), "--jars", str(base / "lib")], check=True)
    ports = Ports(quiet_port(), quiet_port(), quiet_port())
    config = (DEPLOY / "activemq.xml").read_text()
    for documented, actual in zip((61613, 1883, 5672), ports, strict=True):
        assert f"0.0.0.0:{documented}" in config
        config = config.replace(f"0.0.0.0:{documented}", f"127.0.0.1:{actual}")
    (conf / "activemq.xml").write_text(config)
    (conf / "log4j.properties").write_text((DEPLOY / "log4j.properties").read_text())
    (conf / "credentials.properties").write_text("nodes.password=eins\napplications.password=zwei\n")
    folders = {"/etc/hpwsn/activemq": str(conf), "/var/lib/hpwsn-activemq": str(base), "-Xmx1g": "-Xmx256m"}
    command = exec_start(DEPLOY / "systemd" / "hpwsn-activemq.service")
    for documented, actual in folders.items():
        command = [word.replace(documented, actual) for word in command]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=base, stdout=log, stderr=log)
    try:
        until(lambda: all(map(accepts, ports)), (tmp_path / "log").read_text)
        yield ports
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 143


class Objections(stomp.ConnectionListener):  # type: ignore[misc]
    """What ActiveMQ says against an application."""

    text = ""

    def on_error(self, frame: Any) -> None:
        self.text += f"{frame.headers} {frame.body}"


def accepts(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def test_nodes_and_applications_get_in_with_their_passwords_and_reach_what_is_theirs(
    installed: Ports, tmp_path: Path
) -> None:
    secret = tmp_path / "password"
    secret.write_text("eins")
    settings = ("--set", f"backbone.password_file={secret}", "--set", "backbone.peers=A")
    with BackedNode(
        tmp_path / "data", f"stomp://hpwsn@127.0.0.1:{installed.stomp}", *settings, name="n"
    ) as node:
        until(lambda: node.get("/readyz")["ready"], node.log)
        application = stomp.Connection12([("127.0.0.1", installed.stomp)])
        objections = Objections()
        application.set_listener("", objections)
        application.connect("application", "zwei", wait=True)
        application.send("/topic/hpwsn.A.B", "<x>shared</x>")
        until(lambda: node.events("A") == [{"x": "shared"}], node.log)
        application.send("/queue/hpwsn.node.n", "forged")
        until(lambda: "not authorized to write to: queue://hpwsn.node.n" in objections.text)
        application.disconnect()
        check_amqp(installed.amqp)
        until(lambda: node.events("A") == [{"x": "shared"}, {"x": "by AMQP"}], explain=node.log)
        assert node.post("A", {"n": 1})["first"] == 3
        assert node.backbone["refused"] == 0


def check_amqp(port: int) -> None:
    """Assert that AMQP lets applications in by their password alone, and to the shared topics alone."""
    with pytest.raises(ConnectionException), AmqpApplication(port):
        pass
    with AmqpApplication(port, user="application", password="zwei", allow_insecure_mechs=True) as application:
        application.send("hpwsn.A.B", Message(body="<x>by AMQP</x>"))
        with pytest.raises((LinkDetached, SendException)):
            application.connection.create_sender("queue://hpwsn.node.n").send(Message(body="forged"))


def test_the_settings_of_the_example_are_right() -> None:
    config = load_config(DEPLOY / "hpwsn.toml").config
    assert config.server.host == "127.0.0.1"
    assert config.data.dir == "/var/lib/hpwsn"
    assert not config.backbone.url


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--stomp", "x"], "x is not a port"),
        (["--mqtt", "65536"], "65536 is not a port"),
        (["--amqp", "65536"], "65536 is not a port"),
        (["--jars"], "--jars wants a value"),
        (["--fast"], "no option --fast"),
        (["--folder"], "--folder wants a value"),
        (["--user", "anna"], "--user wants --password"),
    ],
)
def test_the_starter_of_activemq_says_what_it_wants(arguments: list[str], words: str) -> None:
    run = subprocess.run(
        [str(ROOT / "scripts" / "activemq"), *arguments], capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    assert words in run.stderr


def test_the_starter_of_activemq_shows_examples() -> None:
    run = subprocess.run(
        [str(ROOT / "scripts" / "activemq"), "--help"], capture_output=True, text=True, check=True
    )
    assert "examples:" in run.stdout
