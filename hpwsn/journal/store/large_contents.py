"""Contents of large notifications: a file each in the directory `large`, beside the database.

SQLite would hold the only writer for half a second for 100 MB, and every other publisher would wait for it.
So a large content is written to a file first, and its row in the log has the name of the file. A file without
a row is left over from a crash or from retention; `collect` removes it. A row without a file comes from an
incomplete backup, and is noted in `missing`. Methods that use files block: use a thread.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from hpwsn.durable_files import sync_folder
from hpwsn.errors import JournalUnavailable

log = logging.getLogger(__name__)

NAME_BYTES = 32
"""The length of a file's name, which is what its row has in place of the content."""
_PIECE = 4 << 20
_NAMED = 3


class LargeContents:
    """The files of one data directory; `limit` is the most bytes of all of them, None without a limit."""

    def __init__(self, directory: Path, *, sync: bool = False, limit: int | None = None) -> None:
        self._directory = directory
        self._sync = sync
        self._limit = limit
        self._unstored: set[str] = set()
        self.bytes = 0
        self.missing: set[str] = set()
        """Files that the log needs and that are not there."""

    def new_name(self) -> str:
        """The name of a file to be written; `stored` or `drop` must be told of it. Does not block."""
        name = secrets.token_hex(NAME_BYTES // 2)
        self._unstored.add(name)
        return name

    def write(self, name: str, content: bytes, mark: bytes = b"") -> None:
        """Write a content, with a mark before it, to a new file; JournalUnavailable without space."""
        if self._limit is not None and self.bytes + len(content) > self._limit:
            raise JournalUnavailable(
                f"a notification of {len(content)} bytes does not fit into the journal's limit of"
                f" {self._limit} bytes (journal.max_bytes), of which large notifications use {self.bytes}"
            )
        try:
            self._write(self._directory / name, content, mark)
        except OSError as error:
            raise JournalUnavailable(
                f"a notification of {len(content)} bytes cannot be written to {self._directory}:"
                f" {error.strerror}; free space there"
            ) from error
        self.bytes += len(mark) + len(content)

    def _write(self, path: Path, content: bytes, mark: bytes) -> None:
        self._make_directory()
        with open(path, "xb", buffering=0, opener=_open_private) as file, memoryview(content) as left:
            pieces = (left[at : at + _PIECE] for at in range(0, len(content), _PIECE))
            for piece in chain((memoryview(mark),), pieces):
                while piece:
                    piece = piece[file.write(piece) or 0 :]
            if self._sync:
                os.fsync(file.fileno())
        if self._sync:
            sync_folder(self._directory)

    def _make_directory(self) -> None:
        try:
            self._directory.mkdir(mode=0o700)
        except FileExistsError:
            return
        if self._sync:
            sync_folder(self._directory.parent)

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

    def collect(self, names: set[str], needed: set[str]) -> int:
        """Remove the files of `names` that the log does not need; it must have been asked after `names`.

        Returns how many were removed. What the log no longer needs, or is there again, is not missing.
        """
        unneeded = names - needed
        for name in unneeded:
            self._remove(name)
        self.missing.intersection_update(needed - names)
        with contextlib.suppress(FileNotFoundError):
            self.bytes = sum(file.stat().st_size for file in self._directory.iterdir())
        return len(unneeded)

    def collect_at_start(self, needed: set[str]) -> None:
        """Remove what no append has under way, note what is missing, and log both."""
        names = self.names()
        removed = self.collect(names, needed)
        if removed:
            log.warning(
                "removed %d files from %s that the journal does not name: they are left over from a crash,"
                " or newer than a restored journal",
                removed,
                self._directory,
            )
        self.note_missing(needed - names)

    def note_missing(self, names: set[str]) -> None:
        """Note files that the log needs and that are not there; each is logged once."""
        new = names - self.missing
        self.missing |= new
        if new:
            log.error(
                "%d large notifications have no content and are left out: %s has no file %s",
                len(new),
                self._directory,
                ", ".join(sorted(new)[:_NAMED]) + (" and others" if len(new) > _NAMED else ""),
            )

    @property
    def problem(self) -> str | None:
        """What is missing, for the operator; None if nothing is."""
        if not self.missing:
            return None
        return (
            f"{len(self.missing)} large notifications have no content, because files in {self._directory} are"
            " missing; copy them there from the backup"
        )

    def _remove(self, name: str) -> None:
        (self._directory / name).unlink(missing_ok=True)


def _open_private(path: str, flags: int) -> int:
    """Create a file that only the node's user can read."""
    return os.open(path, flags, 0o600)
