"""Whether a journal can be kept in a directory, as far as that shows without making or changing anything.

For a node that is about to start, and for an operator who asks beforehand, perhaps while a node runs there.
So a lock is not looked at, nor the pages of a file that was not closed: that is for the opening itself.
"""

import os
import sqlite3
from pathlib import Path

from hpwsn.errors import HpwsnError
from hpwsn.journal.schema import check_closed

JOURNAL = "journal.db"
_WRITTEN = ("lock", JOURNAL, f"{JOURNAL}-wal", f"{JOURNAL}-shm")


def why_unusable(directory: Path) -> str | None:
    """Why no journal can be kept there; None where one can. A missing directory must be possible to make."""
    directory = directory.absolute()
    nearest = next(each for each in (directory, *directory.parents) if os.path.lexists(each))
    if not nearest.is_dir():
        return f"cannot be used: {_shown(nearest, directory)} is not a directory; {_ANOTHER}"
    if not os.access(nearest, os.W_OK | os.X_OK):
        return f"cannot be written: {_shown(nearest, directory)} {_obstacle(nearest)}; {_ANOTHER}"
    for name in _WRITTEN:
        if reason := _why_not_written(directory / name):
            return f"cannot be used: {reason}"
    return _why_not_a_journal(directory / JOURNAL)


_ANOTHER = "make it writable, or name another directory with --data"


def _shown(path: Path, directory: Path) -> str:
    return "it" if path == directory else str(path)


def _obstacle(path: Path) -> str:
    if os.statvfs(path).f_flag & os.ST_RDONLY:
        return "is on a read-only file system"
    return f"may not be written by this user (uid {os.geteuid()})"


def _why_not_written(path: Path) -> str | None:
    if not os.path.lexists(path):
        return None
    if not path.is_file():
        return f"{path} is not a file; move it away"
    if not os.access(path, os.R_OK | os.W_OK):
        return f"{path} {_obstacle(path)}; give it to the user of the node (chown, chmod u+rw)"
    return None


def _why_not_a_journal(path: Path) -> str | None:
    left = path.with_name(f"{path.name}-wal")
    if not path.exists() or not path.stat().st_size or (left.exists() and left.stat().st_size):
        return None
    try:
        check_closed(path)
    except (HpwsnError, sqlite3.Error) as error:
        return f"cannot be used: {error}"
    return None
