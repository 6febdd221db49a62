"""The files for a real installation: the service's own command starts ActiveMQ, and its rules hold."""

from __future__ import annotations

import shlex
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import stomp

from hpwsn.config import load_config
from tests.activemq import BackedNode, until
from tests.harness import ROOT, quiet_port

pytestmark = pytest.mark.timeout(180)

DEPLOY = ROOT / "scripts" / "deploy"
JARS = ("mqtt-client", "hawtdispatch", "hawtdispatch-transport")


def exec_start(unit: Path) -> list[str]:
    """The command of a unit, with its continued lines joined."""
    text = unit.read_text().replace("\\\n", " ")
    (line,) = [line for line in text.splitlines() if line.startswith("ExecStart=")]
    return shlex.split(line.removeprefix("ExecStart="))


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[int]:
    """The STOMP port of an ActiveMQ that was installed as the comments in the unit say, in other folders."""
    conf, base = tmp_path / "conf", tmp_path / "base"
    (base / "lib").mkdir(parents=True)
    conf.mkdir()
    for name in JARS:
        (base / "lib" / f"{name}.jar").symlink_to(f"/usr/share/java/{name}.jar")
    stomp_port, mqtt_port = quiet_port(), quiet_port()
    config = (DEPLOY / "activemq.xml").read_text()
    config = config.replace("0.0.0.0:61613", f"127.0.0.1:{stomp_port}")
    (conf / "activemq.xml").write_text(config.replace("0.0.0.0:1883", f"127.0.0.1:{mqtt_port}"))
    (conf / "log4j.properties").write_text((DEPLOY / "log4j.properties").read_text())
    (conf / "credentials.properties").write_text("nodes.password=eins\napplications.password=zwei\n")
    folders = {"/etc/hpwsn/activemq": str(conf), "/var/lib/hpwsn-activemq": str(base), "-Xmx1g": "-Xmx256m"}
    command = exec_start(DEPLOY / "systemd" / "hpwsn-activemq.service")
    for documented, actual in folders.items():
        command = [word.replace(documented, actual) for word in command]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=base, stdout=log, stderr=log)
    try:
        until(lambda: accepts(stomp_port) and accepts(mqtt_port), 90, (tmp_path / "log").read_text)
        yield stomp_port
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 143


class Objections(stomp.ConnectionListener):  # type: ignore[misc]
    """What ActiveMQ says against an application."""

    text = ""

    def on_error(self, frame: Any) -> None:
        self.text += f"{frame.headers} {frame.body}"


def accepts(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def test_nodes_and_applications_get_in_with_their_passwords_and_reach_what_is_theirs(
    installed: int, tmp_path: Path
) -> None:
    secret = tmp_path / "password"
    secret.write_text("eins")
    settings = ("--set", f"backbone.password_file={secret}", "--set", "backbone.peers=A")
    with BackedNode(tmp_path / "data", f"stomp://hpwsn@127.0.0.1:{installed}", *settings, name="n") as node:
        until(lambda: node.get("/readyz")["ready"], 30, node.log)
        application = stomp.Connection12([("127.0.0.1", installed)])
        objections = Objections()
        application.set_listener("", objections)
        application.connect("application", "zwei", wait=True)
        application.send("/topic/hpwsn.A.B", "<x>shared</x>")
        until(lambda: node.events("A") == [{"x": "shared"}], 20, node.log)
        application.send("/queue/hpwsn.node.n", "forged")
        until(lambda: "not authorized to write to: queue://hpwsn.node.n" in objections.text)
        application.disconnect()
        assert node.post("A", {"n": 1})["first"] == 2
        assert node.backbone["refused"] == 0


def test_the_settings_of_the_example_are_right() -> None:
    config = load_config(DEPLOY / "hpwsn.toml").config
    assert config.server.host == "127.0.0.1"
    assert config.data.dir == "/var/lib/hpwsn"
    assert not config.backbone.url


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--stomp", "x"], "x is no port"),
        (["--mqtt", "65536"], "65536 is no port"),
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
