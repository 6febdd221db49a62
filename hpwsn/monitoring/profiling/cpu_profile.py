"""A sampling profiler: in which functions the threads of this process spend CPU time.

A thread looks at the stacks of all others about 100 times a second. The CPU time that a thread has used since
the last look counts for the function on top of its stack, and for each function below it. So a thread that
waits counts nothing. It needs no change of the code and costs a few percent of a core while it runs. It
reads the times from /proc: Linux only.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import defaultdict
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

INTERVAL = 0.01
"""Seconds between two samples."""
DEEPEST = 200
"""Functions of a stack that are looked at, from the top."""
MOST_FUNCTIONS = 50
_TASKS = Path("/proc/self/task")


class CpuProfile:
    """Samples until `seconds` have passed or `stop` is called from another thread."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._stop = threading.Event()
        self._own: defaultdict[CodeType, float] = defaultdict(float)
        self._total: defaultdict[CodeType, float] = defaultdict(float)
        self._by_thread: defaultdict[str, float] = defaultdict(float)
        self._used: dict[int, float] = {}
        self._threads: dict[int, threading.Thread] = {}
        self._samples = 0

    def stop(self) -> None:
        """End the sampling early."""
        self._stop.set()

    def run(self) -> dict[str, Any]:
        """Sample, and return the functions with the most CPU time; blocks, so call it in a thread."""
        began = time.monotonic()
        self._look()
        self._forget()
        while (left := began + self._seconds - time.monotonic()) > 0:
            if self._stop.wait(min(INTERVAL, left)):
                break
            self._look()
        return {
            "seconds": round(time.monotonic() - began, 3),
            "samples": self._samples,
            "cpu": round(sum(self._by_thread.values()), 4),
            "overhead": round(time.thread_time(), 4),
            "threads": [
                {"thread": name, "cpu": round(used, 4)}
                for name, used in sorted(self._by_thread.items(), key=lambda each: -each[1])
            ],
            "functions": [self._describe(code) for code in self._busiest()],
        }

    def _forget(self) -> None:
        """Drop what the first look has found: the CPU time from the start of each thread until then."""
        for found in (self._own, self._total, self._by_thread):
            found.clear()
        self._samples = 0

    def _busiest(self) -> list[CodeType]:
        return sorted(self._total, key=lambda code: (-self._own[code], -self._total[code]))[:MOST_FUNCTIONS]

    def _describe(self, code: CodeType) -> dict[str, Any]:
        return {
            "function": code.co_qualname,
            "file": _short(code.co_filename),
            "line": code.co_firstlineno,
            "self": round(self._own[code], 4),
            "total": round(self._total[code], 4),
        }

    def _look(self) -> None:
        self._samples += 1
        me = threading.get_ident()
        for ident, frame in sys._current_frames().items():
            thread = None if ident == me else self._thread(ident)
            if thread is not None and thread.native_id is not None:
                self._count(thread.name, thread.native_id, frame)

    def _thread(self, ident: int) -> threading.Thread | None:
        if ident not in self._threads:
            self._threads = {each.ident: each for each in threading.enumerate() if each.ident is not None}
        return self._threads.get(ident)

    def _count(self, name: str, task: int, frame: FrameType) -> None:
        now = cpu_seconds(task)
        if now is None:
            return
        used, self._used[task] = now - self._used.get(task, 0.0), now
        if used <= 0:
            return
        self._by_thread[name] += used
        self._own[frame.f_code] += used
        codes: set[CodeType] = set()
        below: FrameType | None = frame
        while below is not None and len(codes) < DEEPEST:
            codes.add(below.f_code)
            below = below.f_back
        for code in codes:
            self._total[code] += used


def cpu_seconds(task: int) -> float | None:
    """The CPU time of a thread of this process; None if it has ended."""
    try:
        return int((_TASKS / str(task) / "schedstat").read_text().split()[0]) / 1e9
    except (OSError, IndexError, ValueError):
        return None


def _short(file: str) -> str:
    """The file without what comes before the packages."""
    for root in sorted(sys.path, key=len, reverse=True):
        if root and file.startswith(f"{root}/"):
            return file[len(root) + 1 :]
    return file
