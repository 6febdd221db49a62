"""A push consumer in a process of its own, for tests that stop processes: it prints each key that it took.

Standard output has its address in the first line, then a line for each notification, written before the
answer.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from types import TracebackType
from typing import Self

from tests.faults.load import Inbox, Key
from tests.harness import ROOT, environment
from tests.patience import patience


async def main() -> None:
    """Serve until the end of standard input."""
    printed = 0
    async with Inbox() as inbox:
        print(inbox.url, flush=True)

        def report(_: int) -> int:
            nonlocal printed
            keys = inbox.keys()
            lines = [f"{k.publisher} {k.topic} {k.number}\n" for k in keys[printed:]]
            sys.stdout.write("".join(lines))
            sys.stdout.flush()
            printed = len(keys)
            return 202

        inbox.answer = report
        await asyncio.to_thread(sys.stdin.read)


class ConsumerProcess:
    """The parent's side of it."""

    def __init__(self) -> None:
        self.keys: list[Key] = []
        self.url = ""
        self._arrived = asyncio.Condition()

    async def __aenter__(self) -> Self:
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.faults.consumer_process"),
            stdin=pipe, stdout=pipe, cwd=ROOT, env=environment(),
        )  # fmt: skip
        assert self._process.stdout is not None
        self.url = (await self._process.stdout.readline()).decode().strip()
        self._reading = asyncio.create_task(self._read(self._process.stdout))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.kill()
        await self._reading
        self._process.stdin.close()
        await self._process.wait()

    async def _read(self, lines: asyncio.StreamReader) -> None:
        async for line in lines:
            async with self._arrived:
                self.keys.append(Key(*map(int, line.split())))
                self._arrived.notify_all()

    def stop(self) -> None:
        """SIGSTOP."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """SIGCONT."""
        self._process.send_signal(signal.SIGCONT)

    async def wait_for(self, keys: list[Key]) -> None:
        """Wait until all of these have arrived."""
        async with patience(), self._arrived:
            await self._arrived.wait_for(lambda: set(keys) <= set(self.keys))


if __name__ == "__main__":
    asyncio.run(main())
