"""A file system of its own, small enough to fill, for tests of a disk without space."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SIZE = 8 << 20


@contextmanager
def mounted(folder: Path) -> Iterator[Path]:
    """The folder, made anew with 8 MiB of memory behind it; skips where mounting is not permitted."""
    folder.mkdir()
    command = ("mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder))
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"no mount command: {error}")
    if done.returncode:
        pytest.skip(f"mounting a tmpfs is not permitted here: {done.stderr.strip()}")
    yield folder
    subprocess.run(("umount", "--lazy", str(folder)), check=True)
