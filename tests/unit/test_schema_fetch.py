"""How scripts/lib/schemas.sh keeps the OASIS schemas, tried in a checkout of its own.

The test's own `mvn` brings a jar of the test's making, so that it can be a wrong one, and so that no network
is needed. What the real one brings is what the other tests validate with.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.oasis import FOLDER, ROOT
from tests.patience import PATIENCE

FILES = (
    *("b-2.xsd", "bf-2.xsd", "br-2.xsd", "r-2.xsd", "rp-2.xsd", "t-1.xsd", "ws-addr.xsd", "xml.xsd"),
    *("brw-2.wsdl", "bw-2.wsdl", "rpw-2.wsdl", "rw-2.wsdl"),
)
SCRIPT = """
set -euo pipefail
source "$1/scripts/lib/environment.sh"
source "$1/scripts/lib/schemas.sh"
SCHEMAS_SHA256="$2"
schemas
"""
MAVEN = """#!/usr/bin/env bash
echo run >>"$RUNS"
[ -e "$JAR" ] || { echo "no such artifact"; exit 1; }
for argument in "$@"; do
    case "$argument" in -DoutputDirectory=*) cp "$JAR" "${argument#*=}/cxf-services-wsn-api-4.1.5.jar" ;; esac
done
"""


class Checkout:
    """A folder with blanks in its name, the two scripts, and a Maven that counts its runs."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "a checkout"
        self.schemas = self.root / FOLDER.relative_to(ROOT)
        self.jar, self.runs = folder / "made.jar", folder / "runs"
        shutil.copytree(ROOT / "scripts" / "lib", self.root / "scripts" / "lib")
        (self.root / ".venv" / "bin").mkdir(parents=True)
        (self.root / ".venv" / "bin" / "python").symlink_to(sys.executable)
        (folder / "bin").mkdir()
        (folder / "bin" / "mvn").write_text(MAVEN)
        (folder / "bin" / "mvn").chmod(0o755)
        self.path = f"{folder / 'bin'}:{os.environ['PATH']}"
        with zipfile.ZipFile(self.jar, "w") as archive:
            for name in FILES:
                archive.writestr(f"org/apache/cxf/wsn/wsdl/{name}", f"<{name}/>")
        self.checksum = hashlib.sha256(self.jar.read_bytes()).hexdigest()

    def fetch(self, checksum: str = "") -> subprocess.CompletedProcess[str]:
        """Call `schemas`, with this checksum pinned, else with the made jar's own."""
        command = ["bash", "-c", SCRIPT, "test", str(self.root), checksum or self.checksum]
        environ = {**os.environ, "PATH": self.path, "JAR": str(self.jar), "RUNS": str(self.runs)}
        return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=PATIENCE)

    def found(self) -> set[str]:
        return {file.name for file in self.schemas.glob("*")}


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_the_twelve_files_are_fetched_once(checkout: Checkout) -> None:
    assert checkout.fetch().returncode == 0
    assert checkout.found() == {*FILES, "fetched"}
    assert (checkout.schemas / "t-1.xsd").read_text() == "<t-1.xsd/>"
    checkout.jar.unlink()
    again = checkout.fetch()
    assert (again.returncode, again.stderr) == (0, "")
    assert checkout.runs.read_text() == "run\n"


def test_a_jar_with_another_checksum_is_refused_and_not_kept(checkout: Checkout) -> None:
    refused = checkout.fetch("0123")
    assert refused.returncode == 1
    assert f"has the SHA-256 {checkout.checksum}, not 0123" in refused.stderr
    assert checkout.found() == set()


def test_a_fetch_that_was_broken_off_is_done_again(checkout: Checkout) -> None:
    assert checkout.fetch().returncode == 0
    (checkout.schemas / "fetched").unlink()
    (checkout.schemas / "b-2.xsd").write_text("<half")
    assert checkout.fetch().returncode == 0
    assert (checkout.schemas / "b-2.xsd").read_text() == "<b-2.xsd/>"


def test_another_version_is_fetched_in_place_of_the_old_one(checkout: Checkout) -> None:
    assert checkout.fetch().returncode == 0
    with zipfile.ZipFile(checkout.jar, "a") as archive:
        archive.writestr("NOTICE", "another version")
    assert checkout.fetch(hashlib.sha256(checkout.jar.read_bytes()).hexdigest()).returncode == 0
    assert checkout.runs.read_text() == "run\nrun\n"


def test_what_maven_says_of_a_failure_is_shown(checkout: Checkout) -> None:
    checkout.jar.unlink()
    failed = checkout.fetch()
    assert failed.returncode == 1
    assert "no such artifact" in failed.stderr
    assert "run this again to retry" in failed.stderr
