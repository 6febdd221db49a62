"""An installation as the documents describe it, in a folder that stands for the root of a machine.

The commands are those of the documents, run by bash, with the folder before each absolute path. What only
root or a network can do is done by stand-ins for these commands: packages and users are noted, and a virtual
environment gets a `hpwsn` that runs this checkout. `scripts/deploy-test` runs the same commands unchanged,
under a real systemd.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from tests.documents import ROOT, Block, blocks_of
from tests.patience import PATIENCE

ADMIN, ACTIVEMQ, CLUSTER = (ROOT / "docs" / name for name in ("admin.md", "activemq.md", "cluster.md"))
PLACES = re.compile(r"(?<![\w./])/(etc|opt|usr/local/src|var/lib)(?=/)")

STAND_INS = {
    "apt-get": 'echo apt-get "$@" >>"$NOTES"',
    "systemctl": 'echo systemctl "$@" >>"$NOTES"',
    "useradd": 'echo useradd "$@" >>"$NOTES"',
    "git": 'test "$1" = clone && mkdir -p "$(dirname "$3")" && ln -s "$CHECKOUT" "$3"',
    "python3": 'test "$1 $2" = "-m venv" && mkdir -p "$3/bin" && cp "$TOOLS/pip" "$TOOLS/hpwsn" "$3/bin/"',
    # Maven gets some of the jars; tests/system/test_deploy.py starts ActiveMQ with them.
    "jars": 'echo jars "$@" >>"$NOTES"',
    "pip": """
test "$1" = install && shift
for word in "$@"; do
    case "$word" in
        --require-hashes | --no-build-isolation | --no-deps | --requirement) ;;
        *.txt) test -f "$word" ;;
        *) test -f "$word/setup.cfg" ;;
    esac
done
echo pip "$@" >>"$NOTES"
""",
    # Names of users and groups are those of the machine that the folder stands for.
    "install": """
echo install "$@" >>"$NOTES"
words=()
while [ $# -gt 0 ]; do
    case "$1" in
        --owner | --group) shift ;;
        *) words+=("$1") ;;
    esac
    shift
done
exec /usr/bin/install "${words[@]}"
""",
}


def installation_blocks(document: Path) -> list[Block]:
    """The blocks of a document that root follows on a machine with systemd."""
    return [
        block
        for block in blocks_of(document)
        if re.search(r"^(systemctl|install) ", block.text, re.MULTILINE)
    ]


def split_uses(document: Path) -> tuple[list[str], list[str]]:
    """The lines of a document that install and start a service, and those that use it once it is ready."""
    lines = "".join(block.text for block in installation_blocks(document)).splitlines()
    uses = [line for line in lines if line.startswith("/opt/hpwsn/bin/hpwsn ")]
    return [line for line in lines if line not in uses], uses


class Installation:
    """A machine's root, as far as the documents fill it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.notes_file = folder / "notes"
        self._tools = folder / "tools"
        for each in (self._tools, self.root / "etc/systemd/system", self.root / "var/lib"):
            each.mkdir(parents=True)
        for name, body in STAND_INS.items():
            self._program(self._tools / name, body)
        self._program(self._tools / "hpwsn", f'exec {shlex.quote(sys.executable)} -m hpwsn "$@"')
        self._packages_of_debian()

    @staticmethod
    def _program(path: Path, body: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/bash\nset -euo pipefail\n{body}\n")
        path.chmod(0o755)

    def _packages_of_debian(self) -> None:
        """What packages bring that the units speak of: systemd's own units, and Java."""
        units = next(
            path for path in map(Path, ("/usr/lib/systemd/system", "/lib/systemd/system")) if path.is_dir()
        )
        shutil.copytree(units, self.root / "usr/lib/systemd/system", symlinks=True)
        for program in ("usr/bin/java", "bin/sh"):
            self._program(self.root / program, "exit 0")

    def follow(self, document: Path) -> None:
        """Run the commands of a document, block by block, as one reader would."""
        lines, _ = split_uses(document)
        script = PLACES.sub(lambda found: f"{self.root}{found[0]}", "\n".join(lines))
        script = re.sub(r"^scripts/activemq --jars", "jars", script, flags=re.MULTILINE)
        ended = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            env={
                "PATH": f"{self._tools}:/usr/bin:/bin",
                "TOOLS": str(self._tools),
                "NOTES": str(self.notes_file),
                "CHECKOUT": str(ROOT),
            },
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert ended.returncode == 0, f"{document.name}: {ended.stderr}"

    @property
    def notes(self) -> list[str]:
        """The commands that stand-ins were given, with the machine's own paths."""
        return self.notes_file.read_text().replace(str(self.root), "").splitlines()

    def path(self, name: str) -> Path:
        """Where a path of the machine is."""
        return self.root / name.lstrip("/")

    def units(self) -> list[Path]:
        """The units that the documents installed."""
        return sorted((self.root / "etc/systemd/system").glob("*.service"))

    def command(self, unit: str, key: str) -> list[str]:
        """A command of an installed unit, with the folder before its paths."""
        (line,) = values_of(self.path(f"/etc/systemd/system/{unit}"), key)
        return [PLACES.sub(lambda found: f"{self.root}{found[0]}", word) for word in shlex.split(line)]

    def settle(self, name: str, **changes: str) -> None:
        """Put the folder, and other values, into an installed settings file."""
        file = self.path(name)
        text = PLACES.sub(lambda found: f"{self.root}{found[0]}", file.read_text())
        for old, new in changes.items():
            text = re.sub(rf"^{old} = .*$", f"{old} = {new}", text, flags=re.MULTILINE)
        file.write_text(text)


def values_of(unit: Path, key: str) -> list[str]:
    """The values of a key in a unit, with continued lines joined."""
    text = unit.read_text().replace("\\\n", " ")
    return [line.partition("=")[2] for line in text.splitlines() if line.startswith(f"{key}=")]


def verify(root: Path, *units: str) -> str:
    """What systemd-analyze has against units below a root; nothing is right."""
    command = ["systemd-analyze", "verify", f"--root={root}", "--man=no", *units]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, env={"PATH": os.environ["PATH"]}
    )
    return f"{ended.stdout}{ended.stderr}" or ("" if ended.returncode == 0 else f"status {ended.returncode}")
