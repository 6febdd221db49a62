"""Locks: files of pinned packages with hashes, one for each purpose, made by uv from setup.cfg.

The first lines of a lock hold a hash of the requirements that it was made from, so that `--check` needs
neither uv nor a network. Comments and the order of requirements do not matter. One file serves every
supported Python and all platforms: uv adds a marker where they differ.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
from configparser import ConfigParser
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UV = "uv==0.13.8"
OLDEST_PYTHON = "3.11"
SELF = re.compile(r"hpwsn\[([^]]+)\]")
"""A requirement of one extra that stands for other extras."""
STAMP = "# requirements: sha256:"


@dataclass(frozen=True, slots=True)
class Lock:
    """One file: its name, who installs it, and the extras of hpwsn that it covers."""

    name: str
    purpose: str
    extras: tuple[str, ...] = ()


BUILD = Lock("build", "what builds hpwsn, and those packages that have no wheel; install it first")
CORE = Lock("core", "a node and the client, with the extras carriers and sensors", ("carriers", "sensors"))
NODE = Lock(
    "node",
    "a node with the extras activemq, carriers, fast, ldap and sensors",
    ("activemq", "carriers", "fast", "ldap", "sensors"),
)
DEV = Lock("dev", "development: tests, checks and benchmarks", ("dev",))
BUILD_OF_OTHERS = ("cffi >=1.17,<3",)
"""What builds python-qpid-proton, which has no wheel; beside it, as all others, setuptools."""
LOCKS = (DEV, BUILD, CORE, NODE)
"""The first is what the tests run with; all others take its versions."""


def requirements_of(lock: Lock, root: Path) -> list[str]:
    """The requirements that a lock must satisfy, sorted, each once."""
    if lock is BUILD:
        ours = {line for folder in (root, root / "client") for line in _build_requirements(folder)}
        return sorted(ours | set(BUILD_OF_OTHERS))
    node, client = _setup_cfg(root), _setup_cfg(root / "client")
    lines = {*_lines(node["options"]["install_requires"]), *_lines(client["options"]["install_requires"])}
    for extra in lock.extras:
        lines |= _of_extra(node, extra)
    return sorted(lines)


def _build_requirements(folder: Path) -> list[str]:
    return list(tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["build-system"]["requires"])


def _setup_cfg(folder: Path) -> ConfigParser:
    parsed = ConfigParser(interpolation=None)
    parsed.read_string((folder / "setup.cfg").read_text("utf-8"))
    return parsed


def _lines(value: str) -> list[str]:
    return [" ".join(line.split()) for line in value.splitlines() if line.strip()]


def _of_extra(node: ConfigParser, extra: str) -> set[str]:
    """The requirements of an extra, those of extras that it names included."""
    found: set[str] = set()
    for line in _lines(node["options.extras_require"][extra]):
        named = SELF.fullmatch(line)
        others = [_of_extra(node, other.strip()) for other in named[1].split(",")] if named else [{line}]
        found.update(*others)
    return found


def stamp_of(lock: Lock, root: Path) -> str:
    """The line of a lock that says which requirements it was made from."""
    text = "\n".join(requirements_of(lock, root))
    return STAMP + hashlib.sha256(text.encode()).hexdigest()


def path_of(lock: Lock, root: Path) -> Path:
    """Where a lock is kept."""
    return root / "scripts" / "locks" / f"{lock.name}.txt"


def stale_locks(root: Path) -> list[Path]:
    """The locks that are missing, or were made from other requirements."""
    return [path_of(lock, root) for lock in LOCKS if not _is_fresh(lock, root)]


def _is_fresh(lock: Lock, root: Path) -> bool:
    path = path_of(lock, root)
    return path.is_file() and stamp_of(lock, root) in path.read_text("utf-8").splitlines()


def write_locks(root: Path, upgrade: bool) -> None:
    """Resolve every lock anew; pinned versions stay where they still fit, unless `upgrade` is set."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        uv = _install_uv(work / "environment")
        for lock in LOCKS:
            print(f"lock: resolving {lock.name}", file=sys.stderr)
            _write(lock, root, uv, work, upgrade)


def _install_uv(folder: Path) -> Path:
    venv.create(folder, with_pip=True)
    subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "--quiet", UV], check=True)
    return folder / "bin" / "uv"


def _write(lock: Lock, root: Path, uv: Path, work: Path, upgrade: bool) -> None:
    """Run uv in a folder of its own, so that the lock names no path of this machine."""
    source, output, kept = work / f"{lock.name}.in", work / f"{lock.name}.txt", path_of(lock, root)
    source.write_text("\n".join([*requirements_of(lock, root), ""]), "utf-8")
    if kept.is_file() and not upgrade:
        shutil.copy(kept, output)
    options = ["--universal", "--generate-hashes", "--no-header", "--no-config", "--quiet"]
    names = ["--python-version", OLDEST_PYTHON, "--output-file", output.name, source.name]
    if lock is not DEV:
        options += ["--constraints", f"{DEV.name}.txt"]
    environment = {**os.environ, "VIRTUAL_ENV": str(work / "environment")}
    subprocess.run([uv, "pip", "compile", *options, *names], cwd=work, env=environment, check=True)
    kept.parent.mkdir(exist_ok=True)
    kept.write_text(_header(lock, root) + _without_header(output.read_text("utf-8")), "utf-8")


def _header(lock: Lock, root: Path) -> str:
    return (
        f"# {lock.purpose[0].upper()}{lock.purpose[1:]}.\n"
        f"# Made by scripts/lock from setup.cfg and pyproject.toml; do not edit.\n{stamp_of(lock, root)}\n"
    )


def _without_header(text: str) -> str:
    """The pins alone: uv keeps comments that stand at the top of an earlier output."""
    return re.sub(r"\A(#.*\n)+", "", text)


def main(arguments: list[str]) -> int:
    """The exit status: 1 where a lock is stale, or cannot be made."""
    parser = argparse.ArgumentParser(prog="scripts/lock", description="Pin all packages, with hashes.")
    parser.add_argument("--check", action="store_true", help="say which locks are stale; needs no network")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions allowed")
    chosen = parser.parse_args(arguments)
    if chosen.check:
        stale = [str(path.relative_to(ROOT)) for path in stale_locks(ROOT)]
        if stale:
            print(
                f"lock: {', '.join(stale)}: made from other requirements; run scripts/lock", file=sys.stderr
            )
        return 1 if stale else 0
    try:
        write_locks(ROOT, chosen.upgrade)
    except subprocess.CalledProcessError as error:
        print(f"lock: {error}; the lines above say why", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
