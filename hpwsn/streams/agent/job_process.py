"""The process of a job: started in a session of its own, recognised after a restart of the node, and ended.

A process is identified by its id, its start time and the boot of the machine, so that a reused id is never
taken for it. It works in the folder of its service, as do Spark's Java and Python processes, which are in the
same session; so what a killed job leaves behind is found and ended too. After a restart of the node the
process is not a child any more, so its end is looked for in /proc (Linux).
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)

POLL = 0.2
"""Seconds between two looks at a process that is to end."""
LEFT_BEHIND = 5.0
"""Seconds that Spark's processes may take to end after the job has ended in good order."""
_PROC = Path("/proc")
_RUN = b"\0streams\0run\0"
"""What the command line of every job contains."""


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process of one boot; `started` is in clock ticks since the boot."""

    pid: int
    started: int
    boot: str

    def document(self) -> dict[str, Any]:
        """The identity in the form that `identity_of` reads."""
        return asdict(self)


def identity_of(document: Any) -> ProcessIdentity | None:
    """The identity in a saved document; None if it has none."""
    try:
        return ProcessIdentity(int(document["pid"]), int(document["started"]), str(document["boot"]))
    except (LookupError, TypeError, ValueError):
        return None


@dataclass(frozen=True, slots=True)
class _Status:
    """The fields of /proc/PID/stat that are used here."""

    state: str
    session: int
    started: int


def _status(pid: int) -> _Status | None:
    try:
        fields = (_PROC / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return None
    return _Status(fields[0], int(fields[3]), int(fields[19]))


def _boot() -> str:
    """The id of the machine's boot; empty in a sandbox that hides it, where the start time must do."""
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


class JobProcess:
    """A job's process; `child` is given if this process has started it."""

    def __init__(
        self, identity: ProcessIdentity, folder: Path, child: subprocess.Popen[bytes] | None = None
    ) -> None:
        self.identity = identity
        self._folder = folder
        self._child = child

    @classmethod
    def start(cls, command: Sequence[str], folder: Path, log_file: Path) -> JobProcess:
        """Start a command in a session of its own, with its output at the end of a file."""
        with log_file.open("ab") as output:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=folder,
                start_new_session=True,
            )
        found = _status(child.pid)
        return cls(ProcessIdentity(child.pid, found.started if found else 0, _boot()), folder, child)

    @classmethod
    def adopt(cls, identity: ProcessIdentity | None, folder: Path) -> JobProcess | None:
        """The process that an earlier run of the node has started in a folder; None if it has ended.

        A process is found by its folder if the node was killed before it could note its identity.
        """
        if identity is not None:
            known = cls(identity, folder)
            if identity.boot == _boot() and known.alive():
                return known
        for pid in _processes():
            found = _status(pid)
            if found and found.session == pid and _works_in(pid, folder) and _RUN in _command_line(pid):
                return cls(ProcessIdentity(pid, found.started, _boot()), folder)
        return None

    @property
    def pid(self) -> int:
        """The process id."""
        return self.identity.pid

    def alive(self) -> bool:
        """Whether the process runs; a child that has ended is reaped."""
        if self._child is not None:
            return self._child.poll() is None
        found = _status(self.pid)
        return found is not None and found.state not in "ZX" and found.started == self.identity.started

    def _signal(self, number: int) -> None:
        if self.alive():
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    async def stop(self, grace: float) -> None:
        """End the process: SIGTERM, and SIGKILL after `grace` seconds; then end what it leaves behind."""
        self._signal(signal.SIGTERM)
        if not await _becomes(lambda: not self.alive(), grace):
            log.warning("process %d did not end within %g s; it is killed", self.pid, grace)
            self._signal(signal.SIGKILL)
            await _becomes(lambda: not self.alive(), LEFT_BEHIND)
        await self.clear(LEFT_BEHIND)

    async def clear(self, patience: float = 0.0) -> None:
        """End the processes that the job has left behind; they may end by themselves within `patience`."""
        deadline = asyncio.get_running_loop().time() + patience
        while left := await asyncio.to_thread(lambda: list(self._left_behind())):
            if asyncio.get_running_loop().time() >= deadline:
                for pid in left:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            await asyncio.sleep(POLL)

    def _left_behind(self) -> Iterator[int]:
        for pid in _processes():
            found = _status(pid)
            if found is None or found.session != self.pid or found.state in "ZX":
                continue
            if _works_in(pid, self._folder):
                yield pid


async def _becomes(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether a condition holds within some seconds."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while not condition():
        if loop.time() >= deadline:
            return False
        await asyncio.sleep(POLL)
    return True


def _processes() -> Iterator[int]:
    return (int(one.name) for one in _PROC.iterdir() if one.name.isdecimal())


def _works_in(pid: int, folder: Path) -> bool:
    try:
        return (_PROC / str(pid) / "cwd").samefile(folder)
    except OSError:
        return False


def _command_line(pid: int) -> bytes:
    try:
        return (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return b""
