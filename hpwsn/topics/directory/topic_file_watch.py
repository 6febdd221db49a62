"""Follows a topic file: reads it again when `hpwsn topics` or an editor has written or replaced it.

It polls the file's modification time, size and inode, which is cheap and works on every file system. A
missing or invalid file is reported as a problem, and the previous topics stay.
"""

import threading
from collections.abc import Callable
from pathlib import Path

from hpwsn.errors import HpwsnError
from hpwsn.topics.tree.declarations import Change, Declaration, Report

INTERVAL = 0.5
"""Seconds between two polls."""

Stamp = tuple[int, int, int] | None


class FileWatch(threading.Thread):
    """The thread that polls the file."""

    def __init__(
        self, path: Path, load: Callable[[], list[Declaration]], report: Callable[[Report], None]
    ) -> None:
        super().__init__(name="topic-file", daemon=True)
        self._path = path
        self._load = load
        self._report = report
        self._wake = threading.Event()
        self._closing = False
        self._requests = 0

    def reload(self) -> int:
        """Read the file now, even if it has not changed."""
        self._requests += 1
        self._wake.set()
        return self._requests

    def close(self) -> None:
        """Stop the thread and wait for it."""
        self._closing = True
        self._wake.set()
        if self.is_alive():
            self.join()

    def run(self) -> None:
        """Poll until closed."""
        seen: Stamp = None
        first = True
        while not self._closing:
            stamp = stamp_of(self._path)
            if first or stamp != seen:
                self._read()
            first, seen = False, stamp
            if self._wake.wait(INTERVAL):
                self._wake.clear()
                first = True

    def _read(self) -> None:
        request = self._requests
        try:
            report = Report(Change(tuple(self._load())), whole=True, request=request)
        except HpwsnError as error:
            report = Report(problem=str(error), request=request)
        if not self._closing:
            self._report(report)


def stamp_of(path: Path) -> Stamp:
    """Return what changes when a file is written or replaced; None if it does not exist."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
