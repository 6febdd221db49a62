"""What tests need of the machine: a missing server, namespaces for those that need root, and networks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hosts import Relayed, two_places
from tests.needs import NEEDS, has, need
from tests.user_namespace import permitted

ROOT = Path(__file__).parents[2]


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def provide(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_a_test_without_its_server_is_skipped_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NEEDS, "a server", (lambda: False, "apt-get install it"))
    with pytest.raises(pytest.skip.Exception, match=r"^needs a server: apt-get install it$"):
        need("a server")
    monkeypatch.setitem(NEEDS, "another", (lambda: True, "apt-get install it"))
    need("another")


@pytest.mark.parametrize(
    ("version", "suffices"),
    [('openjdk version "17.0.15" 2025', True), ('java version "25" 2025', True), ('"1.8.0_452"', False),
     ('openjdk version "11.0.2"', False), ("", False)],
)  # fmt: skip
def test_java_is_asked_for_its_version(commands: Path, version: str, suffices: bool) -> None:
    provide(commands, "java", f"echo '{version}' >&2")
    assert NEEDS["Java 17 or later"][0]() is suffices


def test_no_java_is_no_error(commands: Path) -> None:
    assert not NEEDS["Java 17 or later"][0]()


def test_each_need_can_be_asked_for() -> None:
    assert {type(has(name)) for name in NEEDS} == {bool}


SUITE = """
import os, subprocess, pytest

@pytest.mark.needs_root
def test_that_mounts(tmp_path):
    subprocess.run(("mount", "-t", "tmpfs", "tmpfs", tmp_path), check=True)
    assert os.path.ismount(tmp_path)
    subprocess.run(("umount", tmp_path), check=True)

@pytest.mark.needs_root
@pytest.mark.parametrize("number", [1, 2])
def test_that_fails_for_two(number): assert number == 1, "this is not one"

@pytest.mark.needs_root
def test_that_skips(): pytest.skip("needs a thing: apt-get install it")

def test_that_skips_outside(): pytest.skip("needs a thing: apt-get install it")
"""
# Whoever runs this, the outer process thinks that it is an ordinary user; the root in the namespace does not.
ORDINARY = """
import os
from tests.skipped_needs import pytest_terminal_summary
from tests.user_namespace import in_namespaces, pytest_configure

namespace = os.readlink("/proc/self/ns/user")
if os.environ.setdefault("OUTSIDE", namespace) == namespace:
    os.geteuid = lambda: 1000

def pytest_collection_modifyitems(items):
    in_namespaces(items)
"""


def run_suite(folder: Path, *arguments: str) -> str:
    (folder / "conftest.py").write_text(ORDINARY)
    (folder / "test_suite.py").write_text(SUITE)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments, str(folder)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "CI": ""}
    environ.pop("PYTEST_ADDOPTS", None)
    return subprocess.run(command, env=environ, capture_output=True, text=True, cwd=folder).stdout


@pytest.mark.parametrize("arguments", [(), ("-n", "1")], ids=["alone", "with xdist"])
def test_an_ordinary_user_runs_what_needs_root_in_namespaces(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    if not permitted():
        pytest.skip(
            "needs user namespaces: sysctl kernel.unprivileged_userns_clone=1, or run the tests as root"
        )
    output = run_suite(tmp_path, *arguments)
    assert "1 failed, 2 passed, 2 skipped" in output, output
    assert "in namespaces of its own:" in output
    assert "this is not one" in output
    assert "FAILED test_suite.py::test_that_fails_for_two[2]" in output
    assert "2 tests: needs a thing: apt-get install it" in output


async def test_without_ip_hosts_are_relays_with_a_warning_and_in_ci_an_error(
    commands: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "")
    with pytest.warns(UserWarning, match="hosts are relays .* apt-get install iproute2"):
        async with two_places() as hosts:
            assert isinstance(hosts, Relayed)
    monkeypatch.setenv("CI", "true")
    with pytest.raises(AssertionError, match="cannot be network namespaces: apt-get install iproute2"):
        async with two_places():
            pass


async def test_a_network_that_is_not_permitted_is_told_with_what_it_needs(
    commands: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provide(commands, "ip", '[ "$2" = list ] && exit; echo "Operation not permitted" >&2; exit 1')
    assert shutil.which("ip")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(AssertionError, match=r"needs root, or user namespaces .*\(Operation not permitted\)"):
        async with two_places():
            pass
