"""The processes beside a node: its consumers, and services that are a process for each request.

Both are killed at the end of their block, with all that they have started.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from benchmarks.services.random_requests import Request
from benchmarks.tools.cores import unpin
from benchmarks.tools.raw_load import cpu_seconds

Connection = tuple[int, str]
"""The port and the path of a stream."""
LONGEST = 120.0
"""Seconds that a process may take to be ready or to answer."""


def stream_path(topics: Sequence[str], condition: str | None = None) -> str:
    """The path of a stream of topics, with a filter or all of it."""
    parts = [f"also={quote(topic)}" for topic in topics[1:]]
    parts += [f"filter={quote(condition)}"] if condition else []
    return f"/topics/{topics[0]}/events" + ("?" + "&".join(parts) if parts else "")


class ChildProcess:
    """A module of this folder, or of `folder`, in a session of its own; it answers lines with lines."""

    folder = "services"

    def __init__(self, module: str, given: object, *, spread: bool = False) -> None:
        self._module, self._given, self._spread = module, given, spread

    def __enter__(self) -> Self:
        name = f"benchmarks.{self.folder}.{self._module}"
        self._process = subprocess.Popen(
            [sys.executable, "-m", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            start_new_session=True,
            preexec_fn=unpin if self._spread else None,
        )
        try:
            self.first = self.ask(json.dumps(self._given))
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._kill()

    def ask(self, line: str) -> str:
        """The answer to a line."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(LONGEST):
                raise RuntimeError(f"{self._module} gave no answer within {LONGEST:g} s")
        answer = self._process.stdout.readline().decode()
        if not answer:
            raise RuntimeError(f"{self._module} ended; the lines above say why")
        return answer.strip()

    @property
    def pid(self) -> int:
        """The id of the first process."""
        return self._process.pid

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        # Closes the pipes, too.
        self._process.communicate()


class Consumers(ChildProcess):
    """A consumer for each connection, in one process."""

    def __init__(self, connections: Sequence[Connection]) -> None:
        super().__init__("consumer_process", connections)

    @classmethod
    def by_mode(cls, mode: str, port: int, topic: str, consumers: int, interval: float) -> Self:
        """Consumers of a topic that get its events in one of the delivery modes."""
        found = cls([])
        found._module = "mode_process"
        names = {"mode": mode, "port": port, "topic": topic}
        found._given = {**names, "consumers": consumers, "interval": interval}
        return found

    def count(self) -> int:
        """Deliveries up to now."""
        return int(self.ask("count"))

    def wait_for(self, deliveries: int, until: float) -> bool:
        """Wait for so many deliveries, at most until a time; whether they have come."""
        while self.count() < deliveries:
            if time.time() > until:
                return False
            time.sleep(0.02)
        return True

    def clear(self) -> None:
        """Forget what came."""
        self.ask("clear")

    def stats(self, first: int, last: int) -> dict[str, Any]:
        """Latencies of the events that were sent between two times, in microseconds."""
        found: dict[str, Any] = json.loads(self.ask(f"stats {first} {last}"))
        return found


class ServiceProcesses(ChildProcess):
    """A process for each request, which reads all of its service's sources from a broker."""

    def __init__(self, port: int, requests: Sequence[Request], topics: Sequence[Sequence[str]]) -> None:
        self._file = tempfile.NamedTemporaryFile(prefix="hpwsn-bench-")  # noqa: SIM115
        self._file.write(bytes(8 * len(requests)))
        self._file.flush()
        services = [
            {"path": stream_path(each), "predicates": request.predicates}
            for request, each in zip(requests, topics, strict=True)
        ]
        given = {"port": port, "received": self._file.name, "services": services}
        super().__init__("service_process", given, spread=True)

    def __enter__(self) -> Self:
        super().__enter__()
        answer = json.loads(self.first)
        self._pids: list[int] = answer["pids"]
        self.connections: list[Connection] = [(port, "/") for port in answer["ports"]]
        return self

    def _kill(self) -> None:
        super()._kill()
        self._file.close()

    def pids(self) -> list[int]:
        """The processes of the services."""
        return self._pids

    def received(self) -> int:
        """Bytes that all services have read from the broker."""
        return sum(array("q", Path(self._file.name).read_bytes()))


@dataclass(frozen=True, slots=True)
class Part:
    """Processes that are measured together: CPU seconds up to now, and megabytes."""

    cpu: Callable[[], float]
    memory: Callable[[], float]

    @classmethod
    def of(cls, pids: Sequence[int]) -> Self:
        """The part of these processes."""
        return cls(lambda: sum(map(cpu_seconds, pids)), lambda: memory_of(pids))


def memory_of(pids: Iterable[int]) -> float:
    """Megabytes of several processes, each with its share of the memory that they have in common."""
    return sum(map(_proportional, pids)) / 1e6


def _proportional(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0  # it has ended in the meantime
    return 1024 * sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))


def waiting_seconds(pid: int) -> float:
    """How long the main thread of a process was ready and had no core, up to now."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
