"""A reserve of disk space for the time when the disk is full.

SQLite needs space even for a DELETE: every change goes to the write-ahead log first, which shrinks only after
a complete checkpoint. So an empty file reserves the space of one write-ahead log and is removed when the disk
is full. The file stays when the node stops, so that a node can start on a full disk.
"""

import os
from pathlib import Path

CHECKPOINT_BYTES = 4000 * 4096
_SHARE = 8  # of a small disk, so that most of it is left for notifications
_LEAST = 1 << 20


class Reserve:
    """The file `reserve` in a directory; `held` is False after it was removed."""

    def __init__(self, directory: Path, wanted: int) -> None:
        self._path = directory / "reserve"
        self._wanted = wanted
        self.held = False

    @property
    def checkpoint_bytes(self) -> int:
        """The size of the write-ahead log that starts a checkpoint; smaller on a small disk."""
        return min(CHECKPOINT_BYTES, self._share())

    def take(self) -> bool:
        """Reserve the space if 125 % of it is free; with less, it would soon be released again."""
        size = min(self._wanted, self._share())
        try:
            if self._free() >= size + size // 4:
                self._allocate(size)
                self.held = True
        except OSError:
            self.release()
        return self.held

    def release(self) -> None:
        """Free the reserved space."""
        self._path.unlink(missing_ok=True)
        self.held = False

    def is_wanted(self) -> bool:
        """Whether the disk is full, as opposed to the size limit of the journal being reached."""
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
