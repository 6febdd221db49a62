"""A real node in a process of its own, on a free port, for tests that a user could have written."""

from __future__ import annotations

import functools
import os
import random
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from tests.forks import Fork, Mother
from tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parent.parent


def environment() -> dict[str, str]:
    """The environment of a child process that finds the packages of this checkout and no settings of ours."""
    path = os.pathsep.join(str(ROOT / part) for part in ("", "client", "admin"))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HPWSN_")}
    return {**kept, "PYTHONPATH": path, "PYTHONWARNINGS": "default", "PYTHONUNBUFFERED": "1"}


@functools.cache
def mother() -> Mother:
    """The process that this one's nodes are copies of, started when it is first needed."""
    return Mother(environment(), ROOT)


def hpwsn(*arguments: str, stdin: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """The command as somebody types it, with these variables in its environment, run to its end."""
    settings = {**environment(), **variables}
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as errors:
        given.write(stdin.encode())
        given.seek(0)
        process = mother().fork(arguments, environment=settings, cwd=ROOT, stdin=given, stderr=errors)
        with process.stdout:
            output = process.stdout.read()
        status = process.wait(PATIENCE)
        errors.seek(0)
        return subprocess.CompletedProcess(arguments, status, output.decode(), errors.read().decode())


class NodeProcess:
    """`hpwsn serve` as a process; `url` is the broker's address once it is ready.

    It is a copy of a process that has imported all it needs, unless it is to be `fresh`, or behind a prefix.
    """

    command = "serve"

    def __init__(
        self, data: Path, *arguments: str, port: int = 0, prefix: tuple[str, ...] = (), fresh: bool = False
    ) -> None:
        self.data = data
        self.port = port
        self.arguments = arguments
        self.prefix = prefix
        self.fresh = fresh
        self.url = ""
        self.process: subprocess.Popen[bytes] | Fork | None = None
        self.log_file = data.parent / f"{data.name}.log"

    def start(self) -> Self:
        """Start it and wait for its ready line."""
        return self.launch().wait_ready()

    def launch(self) -> Self:
        """Start it, and do not wait."""
        arguments = [self.command, "--port", str(self.port), "--data", str(self.data), *self.arguments]
        own_program = self.fresh or bool(self.prefix)
        with self.log_file.open("ab") as log:
            self.process = self._exec(arguments, log) if own_program else self._fork(arguments, log)
        return self

    def _exec(self, arguments: list[str], log: IO[bytes]) -> subprocess.Popen[bytes]:
        command = [*self.prefix, sys.executable, "-m", "hpwsn", *arguments]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, env=environment(), cwd=self.data.parent
        )

    def _fork(self, arguments: list[str], log: IO[bytes]) -> Fork:
        return mother().fork(arguments, environment=environment(), cwd=self.data.parent, stderr=log)

    def wait_ready(self) -> Self:
        """Wait for the ready line."""
        self.url = self._ready_line().removeprefix("ready ").strip()
        self.port = int(self.url.split(":")[2].split("/")[0])
        return self

    def _ready_line(self) -> str:
        assert self.process is not None
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while selector.select(timeout=PATIENCE):
                line = self.process.stdout.readline().decode()
                if line.startswith("ready "):
                    return line
                if not line:
                    break
        self.kill()
        raise AssertionError(f"the node did not become ready; its log:\n{self.log()}")

    @property
    def base(self) -> str:
        """The node's address without the broker's path."""
        return self.url.removesuffix("/wsn")

    @property
    def pid(self) -> int:
        """The child's process id."""
        assert self.process is not None
        return self.process.pid

    def log(self) -> str:
        """All that it wrote to standard error so far."""
        return self.log_file.read_text() if self.log_file.exists() else ""

    def terminate(self) -> int:
        """SIGTERM, and its exit status."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self._reap()

    def kill(self) -> int:
        """SIGKILL, and its exit status."""
        assert self.process is not None
        self.process.kill()
        return self._reap()

    def _reap(self) -> int:
        assert self.process is not None
        status = self.process.wait(PATIENCE)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return status

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave nothing running."""
        if self.process is not None and self.process.poll() is None:
            self.kill()
        elif self.process is not None and self.process.stdout is not None:
            self.process.stdout.close()


def quiet_port() -> int:
    """A free port outside of the range that outgoing connections take theirs from.

    For a server that takes it later, or again: until then it could otherwise be given to whoever asks for any
    port, even to a client that knocks while the server is down, and is then connected to itself.
    """
    for port in random.sample(range(20_000, 30_000), 100):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no free port between 20000 and 30000")
