"""Processes of the `hpwsn` command that begin as copies of one that has imported all it needs.

A node imports 700 modules, for which a core needs a second, and the suite starts hundreds of nodes. So one
process imports them once for each process of tests, and a node is a fork of it: with an id, a directory, an
environment, an output and an exit status of its own, and with the command run from its first line to its
last. What is said of the start itself, or with a program before the command, needs `python -m hpwsn` in its
own right: see `NodeProcess`.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import io
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading
import warnings
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from tests.patience import PATIENCE

IMPORTED = ("hpwsn.commands.main", "hpwsn.node", "hpwsn_admin.server", "hpwsn_client.commands.main")
LONGEST_REQUEST = 100_000
PID_LENGTH = 10


class Fork:
    """A running command, with what tests use of `subprocess.Popen`."""

    def __init__(self, pid: int, stdout: IO[bytes], status: int) -> None:
        self.pid = pid
        self.stdout = stdout
        self.returncode: int | None = None
        self._status = status
        self._reading = threading.Lock()
        weakref.finalize(self, os.close, status)

    def poll(self) -> int | None:
        """Its exit status, if it has ended."""
        return self._ended_within(0)

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status, once it has ended."""
        status = self._ended_within(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(f"fork {self.pid}", timeout or 0)
        return status

    def _ended_within(self, seconds: float | None) -> int | None:
        # After the status comes the end of the file, for which the next who asks need not wait either.
        readable = select.poll()
        readable.register(self._status, select.POLLIN)
        if readable.poll(None if seconds is None else seconds * 1000):
            with self._reading:
                if self.returncode is None:
                    self.returncode = int(os.read(self._status, 100))
        return self.returncode

    def send_signal(self, number: int) -> None:
        """A signal, unless it has ended."""
        # It can be gone a moment before its status is here.
        with contextlib.suppress(ProcessLookupError):
            if self.poll() is None:
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)


class Mother:
    """The process that the others are copies of, as those who ask for one see it."""

    def __init__(self, environment: Mapping[str, str], root: Path) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.forks", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env=dict(environment),
                cwd=root,
            )
        atexit.register(self.close)

    def fork(
        self,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        cwd: Path,
        stderr: IO[bytes],
        stdin: IO[bytes] | None = None,
    ) -> Fork:
        """Start `hpwsn` with these arguments, and with nothing to read unless it is given."""
        request = json.dumps(
            {"arguments": list(arguments), "environment": dict(environment), "cwd": str(cwd)}
        )
        output, their_output = os.pipe()
        status, their_status = os.pipe()
        with Path(os.devnull).open("rb") as nothing:
            files = [(stdin or nothing).fileno(), their_output, stderr.fileno(), their_status]
            try:
                socket.send_fds(self._control, [request.encode()], files)
            finally:
                os.close(their_output)
                os.close(their_status)
        pid = int(os.read(status, PID_LENGTH))
        return Fork(pid, os.fdopen(output, "rb"), status)

    def close(self) -> None:
        """Let it end, which it does when nobody can ask any more."""
        self._control.close()
        self._process.wait(PATIENCE)


class Child(NamedTuple):
    """What the mother keeps of a process until it has ended."""

    pid: int
    status: int


def main(control: socket.socket) -> int:
    """Fork for who asks, tell who has ended, and, in a copy, be the command."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with warnings.catch_warnings():
        # What others' packages warn of as they are imported.
        warnings.simplefilter("ignore")
        for module in IMPORTED:
            importlib.import_module(module)
    with control, selectors.DefaultSelector() as selector:
        selector.register(control, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if isinstance(key.data, Child):
                    _collect(selector, key.fd, key.data)
                    continue
                text, files, _, _ = socket.recv_fds(control, LONGEST_REQUEST, 4)
                if not text:
                    return 0
                pid = os.fork()
                if pid == 0:
                    _forget(selector, control)
                    return _become(json.loads(text), files)
                _keep(selector, Child(pid, files.pop()), files)


def _keep(selector: selectors.BaseSelector, child: Child, files: Sequence[int]) -> None:
    for file in files:
        os.close(file)
    _tell(child, f"{child.pid:{PID_LENGTH}}")
    selector.register(os.pidfd_open(child.pid), selectors.EVENT_READ, child)


def _collect(selector: selectors.BaseSelector, pidfd: int, child: Child) -> None:
    status = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
    _tell(child, str(status))
    selector.unregister(pidfd)
    os.close(pidfd)
    os.close(child.status)


def _tell(child: Child, text: str) -> None:
    # Who has forgotten it does not mind.
    with contextlib.suppress(BrokenPipeError):
        os.write(child.status, text.encode())


def _forget(selector: selectors.BaseSelector, control: socket.socket) -> None:
    """In a copy: nothing of the mother's stays open."""
    for key in list(selector.get_map().values()):
        if isinstance(key.data, Child):
            os.close(key.fd)
            os.close(key.data.status)
    selector.close()
    control.close()


def _become(request: dict[str, object], files: Sequence[int]) -> int:
    for standard, file in enumerate(files[:3]):
        os.dup2(file, standard)
    for file in files:
        os.close(file)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Tests may run under nohup, and a process keeps what it is born to ignore.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    os.chdir(str(request["cwd"]))
    os.environ.clear()
    os.environ.update(request["environment"])
    if encoding := os.environ.get("PYTHONIOENCODING"):
        sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), encoding, write_through=True)
    sys.argv = ["hpwsn", *request["arguments"]]
    return sys.modules["hpwsn.commands.main"].main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main(socket.socket(fileno=int(sys.argv[1]))))
