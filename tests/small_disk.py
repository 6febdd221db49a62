"""A file system of its own, small enough to fill, for tests of a disk without space."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.user_namespace import NEEDS_ROOT

SIZE = 8 << 20


@contextmanager
def mounted(folder: Path) -> Iterator[Path]:
    """The folder, made anew with 8 MiB of memory behind it; skips where mounting is not permitted.

    A test that uses it has the mark `needs_root`, so that it may mount in a namespace of its own.
    """
    folder.mkdir()
    command = ("mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder))
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"needs the command mount: {error}")
    if done.returncode:
        pytest.skip(f"{NEEDS_ROOT} ({done.stderr.strip()})")
    try:
        yield folder
    finally:
        subprocess.run(("umount", "--lazy", str(folder)), check=True)
