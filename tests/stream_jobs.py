"""`hpwsn streams run` as a process, and a checkpoint as a killed job leaves it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from tests.harness import NodeProcess, environment
from tests.patience import PATIENCE

POLL_INTERVAL = 0.5
"""Seconds between two looks at whether a job still runs."""


class JobProcess:
    """`hpwsn streams run` in a session of its own, so that its Java can be killed; ends with the block."""

    def __init__(self, folder: Path, spark: dict[str, str], node: NodeProcess, *arguments: str) -> None:
        self.log = folder / "job.log"
        command = [sys.executable, "-m", "hpwsn", "streams", "run", *arguments]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--url", node.url, "--checkpoint", str(folder / "checkpoints"), "--every", "1"],
                stdout=log,
                stderr=log,
                env=environment() | spark,
                cwd=folder,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def wait(self) -> int:
        """The exit status of a job that ends by itself."""
        return self.process.wait(PATIENCE)

    def __exit__(self, *error: object) -> None:
        with suppress(ProcessLookupError):
            self.kill()

    async def brings(self, arrival: Coroutine[Any, Any, None]) -> None:
        """Wait for something that only this job can bring, while it runs."""
        coming = asyncio.create_task(arrival)
        try:
            while not (await asyncio.wait([coming], timeout=POLL_INTERVAL))[0]:
                assert self.process.poll() is None, self.log.read_text()
            await coming
        finally:
            coming.cancel()

    def kill(self) -> None:
        """kill -9, for the job and all that it has started."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)

    def terminate(self) -> int:
        """SIGTERM, and the exit status."""
        self.process.terminate()
        return self.process.wait(PATIENCE)


def undo_last_commit(checkpoints: Path) -> None:
    """Have the last epoch run again, as if the job had died right before it was noted as done."""
    for commits in checkpoints.glob("*/query/commits"):
        done = [file for file in commits.iterdir() if file.name.isdecimal()]
        last = max(done, key=lambda file: int(file.name), default=None)
        if last is not None:
            last.unlink()
            (commits / f".{last.name}.crc").unlink(missing_ok=True)
