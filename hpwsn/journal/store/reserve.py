"""Space on the disk that is kept for the day when there is no other.

SQLite needs room to remove things too: every change goes to the write-ahead log first, and that shrinks only
once all of it is in the main file. So a file of nothing holds the room for one log's worth of changes, and is
given up when the disk is full. It stays when the node stops, so that a node can start on a full disk.
"""

import os
from pathlib import Path

CHECKPOINT_BYTES = 4000 * 4096
_SHARE = 8  # of a small disk, so that most of it is left for notifications
_LEAST = 1 << 20


class Reserve:
    """The file `reserve` in a directory; held or given up."""

    def __init__(self, directory: Path, wanted: int) -> None:
        self._path = directory / "reserve"
        self._wanted = wanted
        self.held = False

    @property
    def checkpoint_bytes(self) -> int:
        """How long the write-ahead log may get before it is folded in: less on a small disk."""
        return min(CHECKPOINT_BYTES, self._share())

    def take(self) -> bool:
        """Set the space aside, if there is a quarter more: it would be given up again at once otherwise."""
        size = min(self._wanted, self._share())
        try:
            if self._free() >= size + size // 4:
                self._allocate(size)
                self.held = True
        except OSError:
            self.release()
        return self.held

    def release(self) -> None:
        """Give the space to whoever needs it first."""
        self._path.unlink(missing_ok=True)
        self.held = False

    def is_wanted(self) -> bool:
        """Whether the disk itself is full, and not only a limit reached that has been set for the file."""
        return self._free() < max(self._wanted, _LEAST)

    def _allocate(self, size: int) -> None:
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if size:
                os.posix_fallocate(descriptor, 0, size)
        finally:
            os.close(descriptor)

    def _share(self) -> int:
        disk = os.statvfs(self._path.parent)
        return disk.f_blocks * disk.f_frsize // _SHARE

    def _free(self) -> int:
        disk = os.statvfs(self._path.parent)
        return disk.f_bavail * disk.f_frsize
