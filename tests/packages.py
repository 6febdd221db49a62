"""Our distributions as strangers get them: built from a copy of the checkout, installed into clean folders.

No index is asked. What ours depend on comes from wheels that are made again of what is installed here, so
that pip resolves the declared requirements for real, and finds nothing beside them.
"""

from __future__ import annotations

import email.message
import email.parser
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.harness import ROOT, NodeProcess
from tests.patience import PATIENCE

OURS = {"hpwsn": ".", "hpwsn-client": "client"}
"""Each distribution, and its folder in the checkout."""
FOLDERS = ("admin", "client", "docs", "hpwsn", "ldap_schema", "wsdl")
FILES = ("CHANGELOG.md", "LICENSE", "MANIFEST.in", "README.md", "pyproject.toml", "setup.cfg", "setup.py")
LEFTOVERS = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", "dist", "node_modules")
NOT_OF_WHEELS = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}
BUILD_BACKEND = "setuptools"


def clean_environment() -> dict[str, str]:
    """The variables of a process that must not see this checkout, nor settings for Python, pip or us."""
    unwanted = ("PYTHON", "PIP_", "HPWSN_")
    return {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}


def run(*command: str | Path, cwd: Path, status: int = 0) -> str:
    """What a command prints, after it has ended with this status."""
    ended = subprocess.run(
        command,
        cwd=cwd,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
    )
    assert ended.returncode == status, f"{command} ended with {ended.returncode}:\n{ended.stdout}"
    return ended.stdout


def copy_checkout(target: Path) -> Path:
    """Copy what packages are built from, without what builds have left in the checkout."""
    target.mkdir()
    for name in FOLDERS:
        shutil.copytree(ROOT / name, target / name, symlinks=True, ignore=LEFTOVERS)
    for name in FILES:
        shutil.copy(ROOT / name, target)
    return target


@dataclass(frozen=True)
class Built:
    """A wheel and an sdist of each distribution, their source, and all wheels that pip may use."""

    source: Path
    wheels: dict[str, Path]
    sdists: dict[str, Path]
    wheelhouse: Path


def build_all(folder: Path) -> Built:
    """Build sdists from a copy of the checkout, and each wheel from its sdist; then fill a wheelhouse."""
    source, wheels, sdists = copy_checkout(folder / "source"), {}, {}
    for name, where in OURS.items():
        target = folder / name
        run(sys.executable, "-m", "build", "--no-isolation", "--outdir", target, source / where, cwd=folder)
        (wheels[name],) = target.glob("*.whl")
        (sdists[name],) = target.glob("*.tar.gz")
    wheelhouse = folder / "wheelhouse"
    fill_wheelhouse(wheelhouse, list(wheels.values()))
    for wheel in wheels.values():
        shutil.copy(wheel, wheelhouse)
    return Built(source, wheels, sdists, wheelhouse)


def metadata_of(wheel: Path) -> email.message.Message:
    """The core metadata of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.parser.Parser().parsestr(archive.read(name).decode())


def fill_wheelhouse(folder: Path, wheels: list[Path]) -> None:
    """Make wheels of all that these need to be built and to run, without extras and without ours."""
    folder.mkdir()
    waiting = [BUILD_BACKEND]
    for wheel in wheels:
        waiting += _required(metadata_of(wheel).get_all("Requires-Dist", []))
    done = set(OURS)
    while waiting:
        name = waiting.pop()
        if name not in done:
            done.add(name)
            repack(metadata.distribution(name), folder)
            waiting += _required(metadata.requires(name) or [])


def _required(lines: list[str]) -> list[str]:
    found = map(Requirement, lines)
    return [
        canonicalize_name(one.name) for one in found if not one.marker or one.marker.evaluate({"extra": ""})
    ]


def repack(installed: metadata.Distribution, folder: Path) -> Path:
    """Make a wheel again of what was installed from one; its commands are left to pip, which makes them."""
    path = folder / _wheel_name(installed)
    record = []
    with zipfile.ZipFile(path, "w") as archive:
        for file in installed.files or ():
            if ".." in file.parts or file.suffix == ".pyc" or file.name in NOT_OF_WHEELS:
                continue
            archive.write(file.locate(), str(file))
            hashed = f"{file.hash.mode}={file.hash.value}" if file.hash else ""
            record.append(f"{file},{hashed},{'' if file.size is None else file.size}")
        name = f"{_folder_of(installed)}/RECORD"
        archive.writestr(name, "\n".join([*record, f"{name},,", ""]))
    return path


def _folder_of(installed: metadata.Distribution) -> str:
    """The folder of its metadata; other such folders, deeper down, are of what it carries inside."""
    found = (file.parts for file in installed.files or () if len(file.parts) == 2)
    (folder,) = (folder for folder, name in found if folder.endswith(".dist-info") and name == "METADATA")
    return folder


def _wheel_name(installed: metadata.Distribution) -> str:
    tags = re.findall(r"^Tag: (\S+)-(\S+)-(\S+)$", installed.read_text("WHEEL") or "", re.MULTILINE)
    compressed = "-".join(".".join(sorted(set(part))) for part in zip(*tags, strict=True))
    return f"{_folder_of(installed).removesuffix('.dist-info')}-{compressed}.whl"


class CleanEnvironment:
    """A virtual environment with nothing in it, not even pip: that of the tests installs into it."""

    def __init__(self, folder: Path, wheelhouse: Path) -> None:
        self.folder = folder
        self._wheelhouse = wheelhouse
        venv.create(folder, with_pip=False, symlinks=True)

    @property
    def site(self) -> Path:
        """Where packages are installed."""
        (found,) = self.folder.glob("lib/python*/site-packages")
        return found

    def dependencies_alone(self, folder: Path) -> CleanEnvironment:
        """Another environment with all that is in this one but our distributions; costs hardly any time."""
        other = CleanEnvironment(folder, self._wheelhouse)
        ignored = shutil.ignore_patterns("hpwsn*", "pyspark_hpwsn*")
        shutil.copytree(self.site, other.site, dirs_exist_ok=True, copy_function=os.link, ignore=ignored)
        return other

    def command(self, name: str) -> Path:
        """A command of this environment; it need not exist."""
        return self.folder / "bin" / name

    def run(self, name: str, *arguments: str | Path, status: int = 0) -> str:
        """What a command of this environment prints."""
        return run(self.command(name), *arguments, cwd=self.folder, status=status)

    def install(self, *what: str | Path) -> None:
        """Install these with all that they require, and nothing from a network."""
        self._pip("install", "--no-index", "--find-links", self._wheelhouse, "--no-compile", *what)

    def uninstall(self, *names: str) -> None:
        """Remove these distributions, and none that they require."""
        self._pip("uninstall", "--yes", *names)

    def complaints(self) -> str:
        """What pip finds wrong with the environment; nothing if all that is required is there."""
        command = (sys.executable, "-m", "pip", "--isolated", "--python", self.command("python"), "check")
        ended = subprocess.run(command, capture_output=True, text=True, env=clean_environment())
        return "" if ended.returncode == 0 else ended.stdout

    def _pip(self, *arguments: str | Path) -> None:
        options = ("--isolated", "--disable-pip-version-check", "--python", self.command("python"))
        run(sys.executable, "-m", "pip", *options, *arguments, cwd=self.folder)

    def packages(self) -> set[str]:
        """The packages of ours that are there, by their files."""
        found = [*self.site.glob("hpwsn*"), *self.site.glob("pyspark_hpwsn*")]
        return {path.name for path in found if path.suffix != ".dist-info"}


class InstalledNode(NodeProcess):
    """`hpwsn serve` of an environment."""

    def __init__(self, environment: CleanEnvironment, data: Path, *arguments: str) -> None:
        super().__init__(data, *arguments, fresh=True)
        self._environment = environment

    def _exec(self, arguments: list[str], log: object) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [self._environment.command("hpwsn"), *arguments],
            stdout=subprocess.PIPE,
            stderr=log,  # type: ignore[call-overload]
            env={**clean_environment(), "PYTHONUNBUFFERED": "1"},
            cwd=self.data.parent,
        )
