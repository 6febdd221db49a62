"""A node that measures how late its event loop is. For benchmarks only.

A callback is due every 5 ms. If it is at least 10 ms late, the time and the lateness in seconds go to the
file `stalls` in the data directory, as a line.
"""

import asyncio
import sys
import time
from pathlib import Path

from hpwsn.commands.main import main
from hpwsn.node import node

EVERY = 0.005
NOTED = 0.010
FILE = "stalls"


class ProbedNode(node.Node):
    """Starts the probe with the node."""

    async def start(self) -> None:
        """See Node."""
        await super().start()
        self._loop = asyncio.get_running_loop()
        self._due = self._loop.time()
        self._beat()

    def _beat(self) -> None:
        now = self._loop.time()
        if now - self._due >= NOTED:
            with (Path(self.config.data.dir) / FILE).open("a") as file:
                file.write(f"{time.time():.4f} {now - self._due:.4f}\n")
        self._due = now + EVERY
        self._loop.call_at(self._due, self._beat)


def longest_stall(data: Path, since: float) -> float:
    """The longest lateness of the loop since a time, in seconds; 0 if none was noted."""
    file = data / FILE
    lines = file.read_text().splitlines() if file.exists() else []
    times = (tuple(map(float, line.split())) for line in lines)
    return max((late for at, late in times if at >= since), default=0.0)


if __name__ == "__main__":
    node.Node = ProbedNode  # type: ignore[misc]
    sys.exit(main(["serve", *sys.argv[1:]]))
