"""How many connections each process has, in memory that all of them see.

Each writes its own numbers and reads those of all, so that server.connections holds for the node and not for
a door, and the core knows which door has the fewest. A number is eight bytes at their natural place, which no
processor writes in halves.
"""

from __future__ import annotations

import mmap
import os


class Counts:
    """Numbers of the core, at 0, and of each door: connections now, and those ever taken."""

    def __init__(self, file: int, doors: int) -> None:
        self.file = file
        self._memory = mmap.mmap(file, 16 * (doors + 1))
        self._numbers = memoryview(self._memory).cast("Q")
        self.connections = self._numbers[: doors + 1]
        self.taken = self._numbers[doors + 1 :]

    @classmethod
    def create(cls, doors: int) -> Counts:
        """New memory, for the core; its file is to be inherited."""
        file = os.memfd_create("hpwsn-connections")
        os.truncate(file, 16 * (doors + 1))
        return cls(file, doors)

    def total(self) -> int:
        """The connections of the node."""
        return sum(self.connections)

    def close(self) -> None:
        """Let go of the memory."""
        for view in (self.connections, self.taken, self._numbers):
            view.release()
        self._memory.close()
        os.close(self.file)
