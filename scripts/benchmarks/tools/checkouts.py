"""Processes of another checkout: its node or its admin node, run by this script's own Python."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.tools.cores import pin_server, unpin

READY = 60.0
"""Seconds that a process may take to become ready."""
STOP = 20.0
"""Seconds that a process may take to stop before it is killed."""
_SECRET = "of-the-comparison"


class CompareError(Exception):
    """A comparison cannot be made; the text says why."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """One of the two checkouts that are compared."""

    name: str
    folder: Path

    def environment(self) -> dict[str, str]:
        """What its processes get: its own code, and none of the caller's settings for HPwsn or Python."""
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("HPWSN_", "PYTHON"))
        }
        paths = (self.folder, self.folder / "client", self.folder / "admin")
        return {**kept, "PYTHONPATH": os.pathsep.join(map(str, paths)), "HPWSN_CLUSTER_SECRET": _SECRET}

    def check(self) -> None:
        """Raise a CompareError unless Python finds the packages of a node in this checkout."""
        code = "import hpwsn, hpwsn_client; print(hpwsn.__file__, hpwsn_client.__file__, sep='\\n')"
        # -P: else Python looks into the folder of the caller first.
        command = [sys.executable, "-P", "-c", code]
        done = subprocess.run(command, env=self.environment(), capture_output=True, text=True)
        if done.returncode:
            reason = done.stderr.strip().rpartition("\n")[2]
            raise CompareError(f"--{self.name} {self.folder} is not a checkout that can run: {reason}")
        for file in done.stdout.splitlines():
            if not Path(file).resolve().is_relative_to(self.folder):
                raise CompareError(
                    f"--{self.name} {self.folder} is not a checkout: Python finds {file} instead"
                )

    def version(self) -> str:
        """The commit, with `-dirty` where files differ from it; empty where git does not know."""
        command = ["git", "-C", str(self.folder), "describe", "--always", "--dirty", "--exclude=*"]
        with suppress(OSError):
            return subprocess.run(command, capture_output=True, text=True).stdout.strip()
        return ""


@dataclass(frozen=True, slots=True)
class Process:
    """A node or an admin node that is ready."""

    pid: int
    port: int
    log: Path

    def last_words(self) -> str:
        """The end of its log, for an error."""
        return _last_words(self.log)


def _last_words(log: Path) -> str:
    lines = log.read_text("utf-8", "replace").splitlines()[-8:] if log.exists() else []
    return "\n  ".join(["\nthe end of its log:", *lines]) if lines else ""


@asynccontextmanager
async def running(checkout: Checkout, folder: Path, command: str, *arguments: str) -> AsyncIterator[Process]:
    """A process of a checkout while the block runs, with its data and its log in a folder that exists."""
    data, log = folder / command, folder / f"{command}.log"
    with log.open("wb") as stderr:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "hpwsn", command, "--port", "0", "--data", str(data),
            "--set", "log.level=error", *arguments,
            env=checkout.environment(), cwd=folder, preexec_fn=unpin, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr,
        )  # fmt: skip
    try:
        port = await _ready_port(process)
        if port is None:
            raise CompareError(
                f"`hpwsn {command}` of {checkout.folder} was not ready within {READY:g} s, or ended"
                f"{_last_words(log)}"
            )
        pin_server(process.pid)
        yield Process(process.pid, port, log)
    finally:
        await _stop(process)


async def _ready_port(process: asyncio.subprocess.Process) -> int | None:
    """The port that the process says; None where it ends or says nothing in time."""
    assert process.stdout is not None
    with suppress(TimeoutError):
        async with asyncio.timeout(READY):
            async for line in process.stdout:
                if line.startswith(b"ready "):
                    return urlsplit(line.split()[1].decode()).port
    return None


async def _stop(process: asyncio.subprocess.Process) -> None:
    """End a process cleanly, or kill it where that takes too long or the caller has no time."""
    try:
        with suppress(ProcessLookupError):
            process.terminate()
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), STOP)
    finally:
        if process.returncode is None:
            process.kill()
