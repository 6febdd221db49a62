"""Processes that obey permission bits, and directories that nobody can write, whoever runs the tests.

Root may read and write every file. So a process of root's gets no capability to do so; that of an ordinary
user needs nothing.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

_IGNORES = "-dac_override,-dac_read_search"


def obeying() -> tuple[str, ...]:
    """What stands before a command so that permission bits hold for it."""
    if os.geteuid() != 0:
        return ()
    return ("setpriv", "--bounding-set", _IGNORES, "--inh-caps", _IGNORES)


def with_read_only(folder: Path) -> tuple[str, ...]:
    """What stands before a command so that a folder is read-only for it, and for nothing else."""
    quoted = shlex.quote(str(folder))
    mounts = f'mount --bind {quoted} {quoted} && mount -o remount,bind,ro {quoted} && exec "$@"'
    own = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    return ("unshare", *own, "--mount", "sh", "-c", mounts, "sh")
