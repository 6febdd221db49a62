"""A node whose wall clock a test sets, with libfaketime; the monotonic clock runs on, as in a real jump.

The library reads the offset from a file at every look at the clock, so a jump takes effect in the running
process.
"""

from __future__ import annotations

import glob
from pathlib import Path

from tests.harness import NodeProcess
from tests.needs import FAKETIME, need

MINUTE, HOUR, DAY = 60, 3600, 86400


class WallClock:
    """The clock of one node; `set` moves it against that of the machine."""

    def __init__(self, folder: Path) -> None:
        need("libfaketime")
        self._file = folder / "clock"
        self._library = glob.glob(FAKETIME)[0]  # noqa: PTH207
        self.set(0)

    def set(self, seconds: int) -> None:
        """Be so many seconds ahead, or behind if negative."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{seconds:+d}\n")
        new.replace(self._file)

    def close(self) -> None:
        """Remove the shared memory that the library leaves behind for a process that was killed."""
        for left in Path("/dev/shm").glob("*faketime_s*_*"):
            process = Path("/proc") / left.name.rpartition("_")[2]
            if not process.exists():
                left.unlink(missing_ok=True)

    def node(self, data: Path, *settings: str) -> NodeProcess:
        """A node, not yet started, that lives by this clock."""
        variables = (
            f"LD_PRELOAD={self._library}",
            f"FAKETIME_TIMESTAMP_FILE={self._file}",
            "FAKETIME_NO_CACHE=1",
            "FAKETIME_DONT_FAKE_MONOTONIC=1",
        )
        return NodeProcess(data, *settings, prefix=("env", *variables))
