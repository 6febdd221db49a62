"""What a newcomer reads once the node is ready."""

import sys
from pathlib import Path

import pytest

from hpwsn.commands.main import DEFAULT_URL, next_steps


def test_commands_start_where_the_reader_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(tmp_path / ".venv" / "bin" / "hpwsn"), "serve"])
    lines = next_steps(DEFAULT_URL, Path("hpwsn-data")).splitlines()
    assert "  .venv/bin/hpwsn listen sensors" in lines
    assert lines[-1] == f"Stop with Ctrl-C. State stays in {tmp_path}/hpwsn-data"


def test_commands_from_elsewhere_name_the_program_whole_and_quoted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["/opt/a b/bin/hpwsn", "serve"])
    assert "  '/opt/a b/bin/hpwsn' listen sensors" in next_steps(DEFAULT_URL, Path("data")).splitlines()


def test_commands_name_an_address_that_is_not_the_default() -> None:
    text = next_steps("http://127.0.0.1:8090/wsn", Path("data"))
    assert "listen sensors --url http://127.0.0.1:8090/wsn" in text
    assert "21.5</reading>' --url http://127.0.0.1:8090/wsn" in text


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://0.0.0.0:8090/wsn", "http://127.0.0.1:8090/wsn"),
        ("http://[::]:8090/wsn", "'http://[::1]:8090/wsn'"),
        ("http://[::1]:8090/wsn", "'http://[::1]:8090/wsn'"),
    ],
)
def test_commands_name_an_address_that_can_be_connected_to_and_pasted(url: str, said: str) -> None:
    text = next_steps(url, Path("data"))
    assert f"listen sensors --url {said}\n" in text
    assert f"HPwsn listens on {url}\n" in text
    page = said.strip("'").removesuffix("wsn") + "ui/"
    assert f"Its page for browsers is {page}\n" in text


def test_a_node_at_all_addresses_of_the_default_port_needs_no_option() -> None:
    assert "--url" not in next_steps("http://0.0.0.0:8080/wsn", Path("data"))


def test_with_tls_the_reader_learns_how_to_trust_the_certificate() -> None:
    assert "add --ca with the PEM file" in next_steps("https://127.0.0.1:8443/wsn", Path("data"))
    assert "--ca" not in next_steps(DEFAULT_URL, Path("data"))
