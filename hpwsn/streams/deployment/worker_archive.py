"""The archive that Spark unpacks in the working directory of each executor: the environment of its Python.

It is a folder of modules that `PYTHONPATH` names, not a relocated interpreter: each worker uses its own
`python3.N`, of the minor version that the archive was packed with, because compiled modules work with that
version only. The first member is a manifest, so that a job can check the archive before Spark starts.
"""

from __future__ import annotations

import json
import platform
import sys
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from io import BytesIO
from pathlib import Path

from hpwsn.errors import HpwsnError
from hpwsn.streams.deployment.packed_files import Packed
from hpwsn_client import __version__

FOLDER = "hpwsn-environment"
"""The folder that Spark unpacks the archive to."""
SUFFIXES = (".tar.gz", ".tgz")
"""Spark unpacks an archive by the end of its name, and only copies other files."""
_MANIFEST = "hpwsn-environment.json"
_COMPRESSION = 1
"""The lowest level: a tenth larger than the usual level 6, in a fifth of the time."""
_UNREADABLE = "is not an archive of `hpwsn streams pack`; pack it again"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an archive is for: Python as MAJOR.MINOR, the processor, and the version of HPwsn."""

    python: str
    machine: str
    hpwsn: str
    packages: Mapping[str, str] = field(default_factory=dict)


def python_version() -> str:
    """The MAJOR.MINOR version of this Python."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def write_archive(out: Path, packed: Packed, progress: Callable[[int], None] = lambda done: None) -> Manifest:
    """Write an archive; `progress` gets the number of bytes packed so far. The file appears when complete."""
    if not out.name.endswith(SUFFIXES):
        raise HpwsnError(f"{out}: Spark does not unpack such a file; choose a name that ends in .tar.gz")
    manifest = Manifest(python_version(), platform.machine(), __version__, packed.packages)
    fresh = out.with_name(f".{out.name}.new")
    try:
        with tarfile.open(fresh, "w:gz", compresslevel=_COMPRESSION) as archive:
            _add_manifest(archive, manifest)
            done = 0
            for name, file in sorted(packed.files.items()):
                archive.add(file.resolve(), name, recursive=False, filter=_anonymous)
                done += file.stat().st_size
                progress(done)
        fresh.replace(out)
    except OSError as error:
        raise HpwsnError(f"{out} cannot be written: {error.strerror}; choose another file") from None
    finally:
        fresh.unlink(missing_ok=True)
    return manifest


def read_manifest(archive: Path) -> Manifest:
    """The manifest of an archive; HpwsnError if the file is not an archive of HPwsn."""
    try:
        with tarfile.open(archive, "r:gz") as members:
            first = members.next()
            content = members.extractfile(first) if first is not None and first.name == _MANIFEST else None
            if content is None:
                raise HpwsnError(f"{archive} {_UNREADABLE}")
            return Manifest(**json.load(content))
    except (tarfile.TarError, EOFError, ValueError, TypeError):
        raise HpwsnError(f"{archive} {_UNREADABLE}") from None
    except OSError as error:
        raise HpwsnError(f"{archive} cannot be read: {error.strerror or error}") from None


def check_archive(archive: Path) -> Manifest:
    """The manifest; HpwsnError if the archive was packed with another Python or version than this job's."""
    manifest = read_manifest(archive)
    if not archive.name.endswith(SUFFIXES):
        raise HpwsnError(f"{archive}: Spark does not unpack such a file; rename it to end in .tar.gz")
    if manifest.python != python_version():
        raise HpwsnError(
            f"{archive} is for Python {manifest.python}, but this job runs on Python {python_version()};"
            f" pack it again with Python {python_version()}"
        )
    if manifest.hpwsn != __version__:
        raise HpwsnError(f"{archive} has HPwsn {manifest.hpwsn}, but this is {__version__}; pack it again")
    return manifest


def _add_manifest(archive: tarfile.TarFile, manifest: Manifest) -> None:
    content = json.dumps(asdict(manifest), indent=2).encode()
    member = tarfile.TarInfo(_MANIFEST)
    member.size, member.mode = len(content), 0o644
    archive.addfile(member, BytesIO(content))


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """The member without its owner, readable for all: workers run as other users."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o755 if member.mode & 0o100 else 0o644
    return member
