"""A node that measures how late its event loop is. For benchmarks only.

A callback is due every 5 ms. How late it is goes to the file LOOP_PROBE as a line, the time and the seconds,
if that is at least 10 ms. With LOOP_PROBE_STACKS, a thread writes where the loop is while it is late.
"""

import asyncio
import os
import sys
import threading
import time
import traceback
from pathlib import Path

from hpwsn.commands.main import main
from hpwsn.node import node

EVERY = 0.005
NOTED = 0.010
STACK_AFTER = 0.04


class ProbedNode(node.Node):
    """Starts the probe with the node."""

    async def start(self) -> None:
        """See Node."""
        await super().start()
        self._loop = asyncio.get_running_loop()
        self._file = Path(os.environ["LOOP_PROBE"]).open("a", buffering=1)  # noqa: SIM115
        self._due = self._loop.time() + EVERY
        self._loop.call_at(self._due, self._beat)
        if "LOOP_PROBE_STACKS" in os.environ:
            thread = threading.get_ident()
            threading.Thread(target=self._watch, args=(thread,), daemon=True).start()

    def _beat(self) -> None:
        now = self._loop.time()
        if now - self._due >= NOTED:
            self._file.write(f"{time.time():.4f} {now - self._due:.4f}\n")
        self._due = now + EVERY
        self._loop.call_at(self._due, self._beat)

    def _watch(self, thread: int) -> None:
        noted = 0.0
        while True:
            time.sleep(0.01)
            if time.monotonic() - self._due > STACK_AFTER and self._due != noted:
                noted = self._due
                stack = traceback.format_stack(sys._current_frames()[thread])[-6:]
                Path(os.environ["LOOP_PROBE"] + ".stacks").open("a").write("".join(stack) + "\n----\n")


if __name__ == "__main__":
    node.Node = ProbedNode  # type: ignore[misc]
    sys.exit(main(["serve", *sys.argv[1:]]))
