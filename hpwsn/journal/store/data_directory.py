"""The data directory: its lock, and a check whether a journal can be kept in it.

The lock gives the directory to one process; the operating system releases it when the process dies.
`why_unusable` serves a node before its start, and an operator, perhaps while a node uses the directory. So
it takes no lock, and leaves the check of a journal that was not closed to the opening of the journal.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import tempfile
from pathlib import Path

from hpwsn.errors import DataDirectoryInUse, HpwsnError
from hpwsn.journal.store.tables import check_closed

JOURNAL = "journal.db"
_FULL = (errno.ENOSPC, errno.EDQUOT)
_WRITTEN = ("lock", JOURNAL, f"{JOURNAL}-wal", f"{JOURNAL}-shm")


class DirectoryLock:
    """The file `lock` in a directory; it has the holder's process id, for people."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock without waiting; DataDirectoryInUse names the process that holds it."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self._directory / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(descriptor, 32).decode("ascii", "replace").strip()
            os.close(descriptor)
            raise DataDirectoryInUse(self._directory, holder) from error
        self._descriptor = descriptor
        self._write_process_id()

    def release(self) -> None:
        """Release the lock; the file stays, since removing it would race with the next holder."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _write_process_id(self) -> None:
        assert self._descriptor is not None
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
        except OSError:
            pass  # a full disk must not prevent the start: the process id is only for people


def why_unusable(directory: Path) -> str | None:
    """Why a journal cannot be kept there; None if it can. A missing directory must be possible to create."""
    try:
        return _why_unusable(directory.absolute())
    except OSError as error:
        # The path is impossible: it is too long, or the current directory was removed.
        return f"cannot be used: {error.strerror}; name another with --data"


def _why_unusable(directory: Path) -> str | None:
    nearest = next(each for each in (directory, *directory.parents) if os.path.lexists(each))
    shown = "it" if nearest == directory else str(nearest)
    if not nearest.is_dir():
        return f"cannot be used: {shown} is not a directory; name another with --data"
    if reason := _why_not_writable(nearest):
        remedy = f"make it writable for this user (uid {os.geteuid()}), or name another with --data"
        return f"cannot be used: {shown} is not writable ({reason}); {remedy}"
    for name in _WRITTEN:
        if reason := _why_not_written(directory / name):
            return f"cannot be used: {reason}"
    return _why_not_a_journal(directory / JOURNAL)


def _why_not_writable(directory: Path) -> str | None:
    """Create a directory as a test, since mode and owner are not reliable; a full disk counts as writable."""
    try:
        Path(tempfile.mkdtemp(prefix=".hpwsn-", dir=directory)).rmdir()
    except OSError as error:
        return None if error.errno in _FULL else error.strerror
    return None


def _why_not_written(path: Path) -> str | None:
    if not os.path.lexists(path):
        return None
    if not path.is_file():
        return f"{path} is not a file; move it away"
    try:
        os.close(os.open(path, os.O_RDWR))
    except OSError as error:
        return (
            f"{path} is not writable ({error.strerror}); give it to the user of the node (chown, chmod u+rw)"
        )
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
