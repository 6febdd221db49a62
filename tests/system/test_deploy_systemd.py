"""The documented installation as a systemd service: its commands, its units and its settings fit together."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from hpwsn.configuration.sources import load_config
from hpwsn_client import SyncClient
from tests.harness import ROOT, environment, quiet_port
from tests.needs import need
from tests.patience import PATIENCE, until
from tests.systemd_installation import ACTIVEMQ, ADMIN, CLUSTER, Installation, values_of, verify

UNITS = ("hpwsn.service", "hpwsn-activemq.service", "hpwsn-admin.service")
EXPOSURE = 1.4
"""What docs/admin.md says that `systemd-analyze security` gives the units; 10 is the worst."""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """A machine on which somebody followed all three documents."""
    need("systemd-analyze")
    installed = Installation(tmp_path_factory.mktemp("machine"))
    for document in (ADMIN, ACTIVEMQ, CLUSTER):
        installed.follow(document)
    return installed


@contextmanager
def service(machine: Installation, unit: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The service's own command, in its own folder, until the end of the block."""
    (folder,) = values_of(machine.path(f"/etc/systemd/system/{unit}"), "WorkingDirectory")
    machine.path(folder).mkdir(exist_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen(
            machine.command(unit, "ExecStart"),
            cwd=machine.path(folder),
            env=environment(),
            stdout=output,
            stderr=output,
        )
    try:
        until(lambda: "ready http" in log.read_text(), log.read_text)
        yield process
    finally:
        process.terminate()
        assert process.wait(PATIENCE) == 0, log.read_text()


def test_the_documents_install_every_unit(machine: Installation) -> None:
    assert [unit.name for unit in machine.units()] == sorted(UNITS)
    shipped = ROOT / "scripts" / "deploy" / "systemd"
    assert sorted(file.name for file in shipped.iterdir()) == sorted(UNITS)
    for name in UNITS:
        started = f"systemctl enable --now {name.removesuffix('.service')}"
        assert started in machine.notes


@pytest.mark.parametrize("name", UNITS)
class TestEachUnit:
    def test_has_nothing_that_systemd_analyze_complains_about(self, machine: Installation, name: str) -> None:
        assert verify(machine.root, name) == ""

    def test_would_be_complained_about_with_a_mistake(self, machine: Installation, name: str) -> None:
        wrong = machine.path(f"/etc/systemd/system/wrong-{name}")
        text = machine.path(f"/etc/systemd/system/{name}").read_text()
        try:
            wrong.write_text(text.replace("ProtectHome=yes", "ProtectHome=perhaps"))
            assert "protect home" in verify(machine.root, wrong.name)
            wrong.write_text(text.replace("ExecStart=/", "ExecStart=/missing/"))
            assert "is not executable" in verify(machine.root, wrong.name)
        finally:
            wrong.unlink()

    def test_runs_as_a_user_that_the_documents_make(self, machine: Installation, name: str) -> None:
        unit = machine.path(f"/etc/systemd/system/{name}")
        (user,) = values_of(unit, "User")
        assert values_of(unit, "Group") == [user]
        made = [note.split()[-1] for note in machine.notes if note.startswith("useradd --system")]
        # Debian's package makes the user activemq.
        packages = " ".join(note for note in machine.notes if note.startswith("apt-get install"))
        assert user in made or f" {user}" in packages

    def test_speaks_only_of_files_that_the_documents_install(self, machine: Installation, name: str) -> None:
        unit = machine.path(f"/etc/systemd/system/{name}")
        (state,) = values_of(unit, "StateDirectory")
        assert values_of(unit, "WorkingDirectory") == [f"/var/lib/{state}"]
        text = "\n".join(line for line in unit.read_text().splitlines() if not line.startswith("#"))
        for path in re.findall(r"(?<![\w/])(?:file:)?(/(?:etc|opt|usr/local)/[\w./-]+)", text):
            assert machine.path(path).exists(), f"nothing installs {path}"

    def test_is_as_little_exposed_as_the_document_says(self, machine: Installation, name: str) -> None:
        command = ["systemd-analyze", "security", "--offline=yes", "--no-pager"]
        limit = f"--threshold={int(EXPOSURE * 10)}"
        unit = str(machine.path(f"/etc/systemd/system/{name}"))
        ended = subprocess.run([*command, limit, unit], capture_output=True, text=True, timeout=PATIENCE)
        assert ended.returncode == 0, ended.stdout
        assert f"an exposure of {EXPOSURE} " in ADMIN.read_text()


def test_a_secret_is_readable_by_the_group_of_its_service_alone(machine: Installation) -> None:
    modes = {}
    for note in machine.notes:
        words = note.split()
        if words[0] == "install" and "--directory" not in words:
            modes[words[-1]] = words[1:-2]
    for path, group in (
        ("/etc/hpwsn/hpwsn.toml", "hpwsn"),
        ("/etc/hpwsn/cluster-secret", "hpwsn"),
        ("/etc/hpwsn/activemq-password", "hpwsn"),
        ("/etc/hpwsn/activemq/credentials.properties", "activemq"),
    ):
        assert modes[path] == ["--group", group, "--mode", "640"]
        assert machine.path(path).stat().st_mode & 0o777 == 0o640
    assert machine.path("/etc/hpwsn/secrets").stat().st_mode & 0o777 == 0o700


def test_the_installed_node_starts_by_its_units_command_and_takes_a_notification(
    machine: Installation, tmp_path: Path
) -> None:
    port = quiet_port()
    machine.settle("/etc/hpwsn/hpwsn.toml", port=str(port))
    with (
        service(machine, "hpwsn.service", tmp_path / "log"),
        SyncClient(f"http://127.0.0.1:{port}/wsn") as client,
    ):
        client.notify("test:first", "it works")
        assert client.get_current_message("test:first").text == "it works"
    assert machine.path("/var/lib/hpwsn/journal.db").exists()


def test_the_installed_admin_node_starts_by_its_units_command(machine: Installation, tmp_path: Path) -> None:
    port = quiet_port()
    machine.settle("/etc/hpwsn/admin.toml", port=str(port))
    with (
        service(machine, "hpwsn-admin.service", tmp_path / "log"),
        urlopen(f"http://127.0.0.1:{port}/healthz", timeout=PATIENCE) as answer,
    ):
        assert answer.status == 200


def test_the_sections_that_the_settings_leave_out_are_right_once_their_marks_are_taken_away(
    tmp_path: Path,
) -> None:
    example = (ROOT / "scripts" / "deploy" / "hpwsn.toml").read_text()
    whole = tmp_path / "hpwsn.toml"
    whole.write_text(re.sub(r"^# (?=\[|\w+ = )", "", example, flags=re.MULTILINE))
    config = load_config(whole).config
    assert config.backbone.password_file == "/etc/hpwsn/activemq-password"
    assert config.topics.password_file
    assert config.cluster.secret_file == "/etc/hpwsn/cluster-secret"
    assert config.server.public_url
