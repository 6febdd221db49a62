"""One process for one data directory: a lock that the operating system takes back when its holder dies."""

import fcntl
import os
from pathlib import Path

from hpwsn.errors import DataDirectoryInUse


class DirectoryLock:
    """Holds `lock` in a directory, with the holder's process number in it for people."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock at once, or say who has it."""
        self._directory.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._directory / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(descriptor, 32).decode("ascii", "replace").strip()
            os.close(descriptor)
            raise DataDirectoryInUse(self._directory, holder) from error
        self._descriptor = descriptor
        self._sign()

    def release(self) -> None:
        """Give the directory free; the file stays, since removing it would race with the next holder."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _sign(self) -> None:
        assert self._descriptor is not None
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
        except OSError:
            pass  # a full disk must not keep a node from starting: the number is only for people
