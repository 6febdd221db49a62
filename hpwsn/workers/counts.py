"""How many connections each process has, in memory that all of them see.

Each writes its own number and reads the sum of all, so that server.connections holds for the node and not for
a door. A number is eight bytes at their natural place, which no processor writes in halves.
"""

from __future__ import annotations

import mmap
import os


class Counts:
    """One number for the core, at 0, and one for each door."""

    def __init__(self, file: int, doors: int) -> None:
        self.file = file
        self._memory = mmap.mmap(file, 8 * (doors + 1))
        self._numbers = memoryview(self._memory).cast("Q")

    @classmethod
    def create(cls, doors: int) -> Counts:
        """New memory, for the core; its file is to be inherited."""
        file = os.memfd_create("hpwsn-connections")
        os.truncate(file, 8 * (doors + 1))
        return cls(file, doors)

    def __getitem__(self, process: int) -> int:
        return self._numbers[process]

    def __setitem__(self, process: int, number: int) -> None:
        self._numbers[process] = number

    def total(self) -> int:
        """The connections of the node."""
        return sum(self._numbers)

    def close(self) -> None:
        """Let go of the memory."""
        self._numbers.release()
        self._memory.close()
        os.close(self.file)
