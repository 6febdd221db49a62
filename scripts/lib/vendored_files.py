"""Vendored files: released files of others that the page at /ui/ loads, unchanged, from npm packages.

A node serves them itself, so that the page needs no network but the node's. To take a new version, change it
here and run `scripts/vendor`. A released file whose bytes change under the same version is refused.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VENDOR = Path(__file__).resolve().parents[2] / "hpwsn" / "page" / "static" / "vendor"
LIST = "vendor.json"


@dataclass(frozen=True, slots=True)
class Package:
    """A package of npm; `files` maps the name in the package to the name in the vendor folder."""

    name: str
    version: str
    files: dict[str, str]

    @property
    def release(self) -> str:
        """Name and version."""
        return f"{self.name} {self.version}"


PACKAGES = (
    Package(
        "preact",
        "11.2.0",
        {
            "dist/preact.mjs": "preact.module.js",
            "hooks/dist/hooks.mjs": "hooks.module.js",
            "LICENSE": "licenses/preact.txt",
        },
    ),
    Package("htm", "3.1.1", {"dist/htm.module.js": "htm.module.js", "LICENSE": "licenses/htm.txt"}),
    Package(
        "uplot",
        "1.6.32",
        {
            "dist/uPlot.esm.js": "uPlot.esm.js",
            "dist/uPlot.min.css": "uPlot.min.css",
            "LICENSE": "licenses/uplot.txt",
        },
    ),
    Package(
        "@fontsource-variable/inter",
        "5.3.0",
        {
            "files/inter-latin-wght-normal.woff2": "inter-latin.woff2",
            "LICENSE": "licenses/inter.txt",
        },
    ),
)


def fetch(package: Package, folder: Path) -> dict[str, bytes]:
    """Its `package.json`, and its files by their names in the vendor folder; npm checks the hash."""
    command = ["npm", "pack", "--json", "--ignore-scripts", f"{package.name}@{package.version}"]
    answer = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, check=True)
    wanted = {"package.json": "package.json", **package.files}
    with tarfile.open(folder / _archive(json.loads(answer.stdout))) as archive:
        # A package's files are all in one folder, which is mostly called `package`.
        inside = {name.partition("/")[2]: name for name in archive.getnames()}
        contents = {}
        for released, name in wanted.items():
            member = archive.extractfile(inside[released]) if released in inside else None
            if member is None:
                raise SystemExit(f"{package.release} has no file {released}; find its new name")
            contents[name] = member.read()
    return contents


def _archive(answer: Any) -> str:
    """The archive's name as `npm pack --json` tells it: in a list, or since npm 12 by the package's name."""
    entries = answer if isinstance(answer, list) else list(answer.values())
    return Path(entries[0]["filename"]).name


def describe(package: Package, contents: dict[str, bytes]) -> dict[str, Any]:
    """The package's entry in vendor.json."""
    return {
        "package": package.name,
        "version": package.version,
        "licence": json.loads(contents["package.json"])["license"],
        "files": [
            {"file": name, "released": released, "sha256": hashlib.sha256(contents[name]).hexdigest()}
            for released, name in package.files.items()
        ],
    }


def recorded(folder: Path) -> dict[tuple[str, str], str]:
    """The SHA-256 by version and file, as vendor.json has them; nothing where there is none yet."""
    if not (folder / LIST).exists():
        return {}
    packages = json.loads((folder / LIST).read_text("utf-8"))["packages"]
    return {
        (f"{package['package']} {package['version']}", file["file"]): file["sha256"]
        for package in packages
        for file in package["files"]
    }


def write(folder: Path) -> None:
    """Fetch everything, then replace the folder."""
    known = recorded(folder)
    files: dict[str, bytes] = {}
    entries = []
    for package in PACKAGES:
        with tempfile.TemporaryDirectory() as place:
            contents = fetch(package, Path(place))
        entries.append(describe(package, contents))
        for file in entries[-1]["files"]:
            name = file["file"]
            if known.get((package.release, name), file["sha256"]) != file["sha256"]:
                raise SystemExit(f"{package.release} has another {name} than {LIST} records; find out why")
            files[name] = contents[name]
    if folder.exists():
        shutil.rmtree(folder)
    (folder / "licenses").mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    (folder / LIST).write_text(json.dumps({"packages": entries}, indent=2) + "\n", "utf-8")


def differences(folder: Path) -> list[str]:
    """What distinguishes the folder from vendor.json and from the versions here; empty: nothing."""
    known = recorded(folder)
    expected = {(package.release, name) for package in PACKAGES for name in package.files.values()}
    found = [f"{LIST} lacks {name} of {release}" for release, name in sorted(expected - set(known))]
    found += [f"{LIST} has {name} of {release}" for release, name in sorted(set(known) - expected)]
    for (_, name), digest in known.items():
        path = folder / name
        if not path.is_file():
            found.append(f"{name} is missing")
        elif hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            found.append(f"{name} is not the released file")
    listed = {LIST, *(name for _, name in known)}
    present = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return found + [f"{name} is not in {LIST}" for name in sorted(present - listed)]


def main() -> None:
    """Write the files, or check them."""
    parser = argparse.ArgumentParser(prog="scripts/vendor", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="only compare with vendor.json, offline")
    arguments = parser.parse_args()
    if not arguments.check:
        if shutil.which("npm") is None:
            sys.exit("scripts/vendor needs npm; on Debian: apt-get install npm")
        write(VENDOR)
    if found := differences(VENDOR):
        sys.exit("\n".join([*found, "run scripts/vendor"]))


if __name__ == "__main__":
    main()
