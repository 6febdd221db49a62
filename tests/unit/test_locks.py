"""The locks: made from the requirements that setup.cfg has now, pinned with hashes, and the same for all."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from lib.locks import BUILD, DEV, LOCKS, Lock, path_of, requirements_of
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PARTS = ("setup.cfg", "pyproject.toml", "client/setup.cfg", "client/pyproject.toml", "scripts/lock")
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
MACHINES = ("x86_64", "aarch64")


def pins(lock: Lock) -> list[Requirement]:
    """All that a lock installs somewhere."""
    text = re.sub(r"^ *#.*\n", "", path_of(lock, ROOT).read_text(), flags=re.MULTILINE)
    return [Requirement(line.partition("--hash")[0]) for line in text.replace("\\\n", " ").splitlines()]


def installed_by(lock: Lock, python: str, machine: str) -> dict[str, str]:
    """Which version of which package a lock installs on Linux."""
    place = {
        **default_environment(),
        "python_version": python,
        "python_full_version": f"{python}.1",
        "platform_machine": machine,
        "sys_platform": "linux",
        "os_name": "posix",
    }
    chosen = [pin for pin in pins(lock) if pin.marker is None or pin.marker.evaluate(place)]
    found = {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in chosen}
    assert len(found) == len(chosen), "a package is pinned twice"
    return found


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what decides about locks."""
    for part in PARTS:
        (tmp_path / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / part, tmp_path / part)
    shutil.copytree(ROOT / "scripts" / "locks", tmp_path / "scripts" / "locks")
    shutil.copytree(ROOT / "scripts" / "lib", tmp_path / "scripts" / "lib")
    return tmp_path


def check(checkout: Path) -> tuple[int, str]:
    """The exit status of `scripts/lock --check`, and what it says; it reaches no network."""
    ended = subprocess.run(
        [checkout / "scripts" / "lock", "--check"],
        env={"PATH": "/usr/bin:/bin", "PYTHON": sys.executable},
        capture_output=True,
        text=True,
    )
    return ended.returncode, ended.stderr


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_the_locks_of_this_checkout_are_fresh(checkout: Path) -> None:
    assert check(checkout) == (0, "")


def test_a_changed_requirement_makes_the_locks_stale_that_cover_it(checkout: Path) -> None:
    replace(checkout / "setup.cfg", "numba >=", "numba >=0.1,>=")
    stale = "scripts/locks/dev.txt, scripts/locks/node.txt"
    assert check(checkout) == (1, f"lock: {stale}: made from other requirements; run scripts/lock\n")


def test_a_requirement_of_the_client_alone_makes_locks_stale(checkout: Path) -> None:
    replace(checkout / "client" / "setup.cfg", "    lxml ", "    idna\n    lxml ")
    status, said = check(checkout)
    assert status == 1
    assert all(f"scripts/locks/{name}.txt" in said for name in ("core", "node", "dev"))
    assert "build.txt" not in said


def test_a_changed_build_requirement_makes_its_lock_stale(checkout: Path) -> None:
    replace(checkout / "pyproject.toml", "setuptools>=", "setuptools>=1,>=")
    assert "scripts/locks/build.txt: " in check(checkout)[1]


def test_a_missing_lock_is_stale(checkout: Path) -> None:
    (checkout / "scripts" / "locks" / "core.txt").unlink()
    status, said = check(checkout)
    assert (status, "scripts/locks/core.txt: " in said) == (1, True)


def test_comments_and_order_make_no_lock_stale(checkout: Path) -> None:
    replace(checkout / "setup.cfg", "    httptools >=0.6,<1\n    lark >=1.2,<2\n", "")
    replace(
        checkout / "setup.cfg", "    numpy ", "# why\n    lark >=1.2,<2\n    httptools >=0.6,<1\n    numpy "
    )
    assert check(checkout) == (0, "")


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
class TestEachLock:
    def test_pins_every_package_with_hashes(self, lock: Lock) -> None:
        text = path_of(lock, ROOT).read_text()
        entries = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
        assert len(entries) == len(pins(lock)) > 0
        for entry in entries:
            assert re.match(r"[a-z0-9-]+==\S+ (; .+ )?\\\n    --hash=sha256:[0-9a-f]{64}", entry), entry[:80]

    def test_names_no_index_and_no_path(self, lock: Lock) -> None:
        text = path_of(lock, ROOT).read_text()
        assert not re.findall(r"https?://|^--|^-e|file:|/tmp|/home", text, flags=re.MULTILINE)

    @pytest.mark.parametrize("machine", MACHINES)
    @pytest.mark.parametrize("python", PYTHONS)
    def test_satisfies_the_requirements_on_each_supported_system(
        self, lock: Lock, python: str, machine: str
    ) -> None:
        found = installed_by(lock, python, machine)
        place = {"python_version": python, "python_full_version": f"{python}.1", "platform_machine": machine}
        for requirement in map(Requirement, requirements_of(lock, ROOT)):
            if requirement.marker is None or requirement.marker.evaluate(place):
                version = found.get(canonicalize_name(requirement.name), "nothing")
                assert version in requirement.specifier, f"{requirement} has {version}"

    def test_has_the_versions_that_the_tests_run_with(self, lock: Lock) -> None:
        for python in PYTHONS:
            tested = installed_by(DEV, python, "x86_64")
            assert installed_by(lock, python, "x86_64").items() <= tested.items()


def test_extras_that_an_extra_names_are_part_of_it() -> None:
    names = {Requirement(line).name for line in requirements_of(DEV, ROOT)}
    assert {"pyspark", "numba", "duckdb", "spyne", "aiohttp", "pytest"} <= names
    assert "hpwsn" not in names


def test_what_builds_packages_is_locked() -> None:
    assert "setuptools" in installed_by(BUILD, "3.14", "aarch64")
