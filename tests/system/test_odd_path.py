"""Servers, node and stream job run from a checkout whose path has blanks, quotes and letters beyond ASCII."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hpwsn_client import SyncClient, SyncReceiver
from tests.harness import ROOT, hpwsn
from tests.needs import need
from tests.patience import PATIENCE
from tests.spark import cheap_environment

ODD = "a ø b's 50% & co"
PARTS = ("admin", "client", "hpwsn", "ldap_schema", "scripts", "wsdl")
SERVICE = """
uri = "urn:example:hot"
topic = "weather:hot"

[inputs.readings]
source = "files"
path = "readings ø.json"
format = "json"
schema = "place STRING, degrees DOUBLE"

[[ops]]
op = "filter"
where = "degrees > 30"
"""
READINGS = '{"place": "Tromsø", "degrees": 12}\n{"place": "Málaga", "degrees": 36}\n'


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of this checkout, without an environment of its own."""
    folder = tmp_path_factory.mktemp("odd") / ODD
    ignored = shutil.ignore_patterns("__pycache__")
    for part in PARTS:
        shutil.copytree(ROOT / part, folder / part, symlinks=True, ignore=ignored)
    return folder


def environment(checkout: Path) -> dict[str, str]:
    """That of a service without a locale, in which Java by itself cannot name the folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HPWSN_", "LC_"))}
    path = os.pathsep.join(str(checkout / part) for part in ("", "client", "admin"))
    return {**kept, "PYTHONPATH": path, "PYTHONWARNINGS": "default", "LC_ALL": "C"}


@contextmanager
def running(checkout: Path, *command: str | Path) -> Iterator[str]:
    """What the ready line of a command says, which runs in the checkout until the block ends."""
    log = checkout / "commands.log"
    with log.open("ab") as errors:
        process = subprocess.Popen(
            command, cwd=checkout, env=environment(checkout), stdout=subprocess.PIPE, stderr=errors
        )
    with process:
        try:
            yield ready(process, log)
        finally:
            process.terminate()


def ready(process: subprocess.Popen[bytes], log: Path) -> str:
    """The address in the ready line."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(b"ready "):
            return line.decode().split()[1]
    raise AssertionError(f"there is no ready line: {log.read_text()}")


def test_a_node_with_both_servers_passes_a_notification_on(checkout: Path) -> None:
    need("slapd")
    need("ActiveMQ")
    scripts, state = checkout / "scripts", checkout / "state of ø"
    state.mkdir()
    slapd = (scripts / "slapd", "--example", "--tls", "--data", state / "slapd")
    activemq = (scripts / "activemq", "--folder", state / "activemq", "--stomp", "0", "--mqtt", "0")
    node = (sys.executable, "-m", "hpwsn", "serve", "--port", "0", "--data", state / "data")
    with running(checkout, *slapd) as topics, running(checkout, *activemq) as backbone:
        told = ("--topics", topics, "--backbone", backbone, "--name", "odd")
        with (
            running(checkout, *node, *told) as url,
            SyncReceiver() as receiver,
            SyncClient(url) as client,
        ):
            topic = hpwsn("topics", "list", "--topics", topics).stdout.split()[0]
            client.subscribe(topic, receiver)
            client.notify(topic, "<x>1</x>")
            assert receiver.get(PATIENCE).text == "<x>1</x>"
    assert (state / "data" / "journal.db").is_file()
    assert (state / "activemq" / "activemq.log").is_file()
    assert list((state / "activemq" / "data" / "kahadb").glob("*.log"))
    log = (checkout / "commands.log").read_text()
    assert "ERROR" not in log, log


def test_a_stream_job_reads_publishes_and_keeps_its_state(checkout: Path, tmp_path: Path) -> None:
    need("Java 17 or later")
    state = checkout / "streams of ø"
    state.mkdir()
    (state / "hot ø.toml").write_text(SERVICE)
    (state / "readings ø.json").write_text(READINGS)
    node = (sys.executable, "-m", "hpwsn", "serve", "--port", "0", "--data", state / "data")
    with (
        running(checkout, *node) as url,
        SyncReceiver() as receiver,
        SyncClient(url) as client,
    ):
        client.subscribe("weather", receiver)
        job = (sys.executable, "-m", "hpwsn", "streams", "run", state / "hot ø.toml", "--once", "--url", url)
        kept = ("--checkpoint", state / "checkpoints", "--history", state / "history", "--master", "local[1]")
        spark = cheap_environment(tmp_path / "spark")
        run = subprocess.run((*job, *kept), env=environment(checkout) | spark, capture_output=True)
        assert run.returncode == 0, run.stdout.decode() + run.stderr.decode()
        assert "Málaga" in receiver.get(PATIENCE).text
    assert list((state / "checkpoints").rglob("offsets"))
    assert list((state / "history").rglob("*.parquet"))
