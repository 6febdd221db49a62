"""Contents of large notifications: a file each in the directory `large`, beside the database.

SQLite would hold the only writer for half a second for 100 MB, and every other publisher would wait for it.
So a large content is written to a file first, and its row in the log has the name of the file. A file without
a row is left over from a crash or from retention; `collect` removes it. All methods block: use a thread.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from hpwsn.durable_files import sync_folder
from hpwsn.errors import JournalUnavailable

NAME_BYTES = 32
"""The length of a file's name, which is what its row has in place of the content."""
_PIECE = 4 << 20


class LargeContents:
    """The files of one data directory; `limit` is the most bytes of all of them, None without a limit."""

    def __init__(self, directory: Path, *, sync: bool = False, limit: int | None = None) -> None:
        self._directory = directory
        self._sync = sync
        self._limit = limit
        self._unstored: set[str] = set()
        self.bytes = 0

    def write(self, content: bytes) -> str:
        """Write a content to a new file, and return the file's name; JournalUnavailable without space."""
        if self._limit is not None and self.bytes + len(content) > self._limit:
            raise JournalUnavailable(
                f"a notification of {len(content)} bytes does not fit into the journal's limit of"
                f" {self._limit} bytes (journal.max_bytes), of which large notifications use {self.bytes}"
            )
        name = secrets.token_hex(NAME_BYTES // 2)
        self._unstored.add(name)
        try:
            self._write(self._directory / name, content)
        except OSError as error:
            self.drop((name,))
            raise JournalUnavailable(
                f"a notification of {len(content)} bytes cannot be written to {self._directory}:"
                f" {error.strerror}; free space there"
            ) from error
        self.bytes += len(content)
        return name

    def _write(self, path: Path, content: bytes) -> None:
        self._directory.mkdir(mode=0o755, exist_ok=True)
        with path.open("xb", buffering=0) as file, memoryview(content) as left:
            for at in range(0, len(content), _PIECE):
                piece = left[at : at + _PIECE]
                while piece:
                    piece = piece[file.write(piece) or 0 :]
            if self._sync:
                os.fsync(file.fileno())
        if self._sync:
            sync_folder(self._directory)

    def read(self, name: str) -> bytes | None:
        """The content in a file; None if the file is gone."""
        try:
            return (self._directory / name).read_bytes()
        except FileNotFoundError:
            return None

    def stored(self, names: Iterable[str]) -> None:
        """Leave it to the log from now on which of these files are needed."""
        self._unstored.difference_update(names)

    def drop(self, names: Iterable[str]) -> None:
        """Remove the files of notifications that were not stored."""
        for name in names:
            self._remove(name)
            self._unstored.discard(name)

    def names(self) -> set[str]:
        """The files whose rows are committed, or that have none; files of appends under way are left out."""
        try:
            return {file.name for file in self._directory.iterdir()} - self._unstored
        except FileNotFoundError:
            return set()

    def collect(self, names: set[str], needed: set[str]) -> None:
        """Remove the files of `names` that the log does not need; it must have been asked after `names`."""
        for name in names - needed:
            self._remove(name)
        with contextlib.suppress(FileNotFoundError):
            self.bytes = sum(file.stat().st_size for file in self._directory.iterdir())

    def _remove(self, name: str) -> None:
        (self._directory / name).unlink(missing_ok=True)
