"""CPU time, memory, threads and open files of this process, as Linux tells them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

_STAT = Path("/proc/self/stat")
_FILES = Path("/proc/self/fd")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_THREADS, _RESIDENT = 17, 21
"""Places in /proc/self/stat after the name of the process; proc(5) calls them 20 and 24."""


class ProcessFigures:
    """The figures of this process; `sample` measures the CPU share since the last call."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._at = clock()
        self._used = time.process_time()
        self.cpu = 0.0
        """The share of one core that was used between the last two calls of `sample`."""

    def sample(self) -> dict[str, float]:
        """Measure the CPU share, and return the figures."""
        now, used = self._clock(), time.process_time()
        if now > self._at:
            self.cpu = (used - self._used) / (now - self._at)
        self._at, self._used = now, used
        return self.figures()

    def figures(self) -> dict[str, float]:
        """The figures now: `cpu` as a share of one core, `rss` in bytes, `threads`, open `files`.

        `cpu_seconds`, `memory_bytes` and `descriptors` are older names: CPU time since the start, `rss` and
        `files`.
        """
        fields = _STAT.read_bytes().rpartition(b")")[2].split()
        resident, files = int(fields[_RESIDENT]) * _PAGE, open_files()
        return {
            "cpu": round(self.cpu, 4),
            "rss": resident,
            "threads": int(fields[_THREADS]),
            "files": files,
            "cpu_seconds": round(time.process_time(), 3),
            "memory_bytes": resident,
            "descriptors": files,
        }


def open_files() -> int:
    """The number of open descriptors; since Linux 6.2 it is the size of a folder, before it is counted."""
    return _FILES.stat().st_size or sum(1 for _ in _FILES.iterdir()) - 1
