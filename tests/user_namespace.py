"""Tests with the mark `needs_root` run in namespaces of their own where the user is not root.

They mount file systems or lay networks. In a user namespace anybody may do so, if the system permits it: each
such test then runs in a pytest of its own, as the root of a user, a mount and a network namespace. Elsewhere
the test itself finds that it may not, and skips. tests/conftest.py takes the hooks from here.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

NEEDS_ROOT = "needs root, or user namespaces (unshare --user) and iproute2: run the tests as root"
"""Why a test is skipped that could not be given what it needs."""
UNSHARE = ("unshare", "--user", "--map-root-user", "--mount", "--net", "sh", "-c")
# Named network namespaces are files in /run, which belongs to the real root.
PREPARE = "mount -t tmpfs tmpfs /run && ip link set lo up"
SKIPPED = re.compile(r"^SKIPPED \[\d+\] \S+: (.*)$", re.MULTILINE)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark."""
    config.addinivalue_line(
        "markers", "needs_root: mounts or lays networks; in a user namespace if not as root"
    )


@functools.cache
def permitted() -> bool:
    """Whether this user may make the namespaces."""
    try:
        return subprocess.run((*UNSHARE, PREPARE), capture_output=True).returncode == 0
    except OSError:
        return False


class InNamespaces(pytest.Item):
    """A test that runs in a pytest of its own."""

    def runtest(self) -> None:
        """Pass, fail or skip as the test does there."""
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rs", self.nodeid]
        prepared = f'{PREPARE} && exec "$@"'
        run = subprocess.run(
            (*UNSHARE, prepared, "sh", *command), cwd=self.config.rootpath, capture_output=True, text=True
        )
        if run.returncode:
            pytest.fail(f"in namespaces of its own:\n{run.stdout}{run.stderr}", pytrace=False)
        if found := SKIPPED.search(run.stdout):
            pytest.skip(found[1])

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the test is."""
        return self.path, None, self.name


def in_namespaces(items: list[pytest.Item]) -> None:
    """Put such an item in the place of each test that needs root, unless this is root."""
    for place, item in enumerate(items):
        if item.get_closest_marker("needs_root") is None or os.geteuid() == 0 or not permitted():
            continue
        assert item.parent is not None
        items[place] = other = InNamespaces.from_parent(item.parent, name=item.name)
        other.own_markers = item.own_markers
