"""A job of the pipeline benchmark as a process: its batches as Spark reports them, its CPU time by part.

Spark is given a folder of settings of its own, so that it writes the progress of each batch to a file. That
holds for any program that starts Spark, of this checkout or another.
"""

import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_TICK = os.sysconf("SC_CLK_TCK")
SAMPLING = 0.1
"""Seconds between two looks at CPU times: what a process uses after the last one is not seen."""
PARTS = ("latestOffset", "queryPlanning", "walCommit", "addBatch", "commitOffsets", "triggerExecution")
"""What Spark's durationMs has for a batch; the last is the whole."""
DRIVER, JVM, WORKERS = "driver", "JVM", "Python workers"
_LOGGING = """\
rootLogger.level = error
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{{HH:mm:ss}} %p %c{{1}}: %m%n%ex
appender.progress.type = File
appender.progress.name = progress
appender.progress.fileName = {file}
appender.progress.layout.type = PatternLayout
appender.progress.layout.pattern = %m%n
logger.progress.name = org.apache.spark.sql.execution.streaming.runtime.ProgressReporter
logger.progress.level = info
logger.progress.appenderRef.progress.ref = progress
logger.progress.additivity = false
"""


@dataclass(frozen=True)
class Batch:
    """One batch with rows, as Spark reports it; `began` is of time.time, parts are in milliseconds."""

    number: int
    began: float
    rows: int
    parts: Mapping[str, float]


class JobProcess:
    """A program that runs a streaming query, in a session of its own; killed at the end of the block."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], folder: Path, name: str
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.log, self._progress = folder / f"{name}.log", folder / f"{name}.progress"
        settings = folder / f"{name}.conf"
        settings.mkdir(exist_ok=True)
        (settings / "log4j2.properties").write_text(_LOGGING.format(file=self._progress))
        self._command = command
        self._environment = {
            **environment,
            "SPARK_CONF_DIR": str(settings),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYTHONWARNINGS": "ignore",
            "PYTHONUNBUFFERED": "1",
        }
        self._folder = folder
        self.cpu: dict[str, float] = {}

    def __enter__(self) -> Self:
        self.began = time.time()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
                cwd=self._folder,
                start_new_session=True,
            )
        self._ended = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()

    def kill(self) -> None:
        """kill -9, for the program and all that it has started."""
        self._ended.set()
        self._watcher.join()
        # Spark's Python workers leave the group of the program.
        started = tree_of(self._process.pid) if self._process.poll() is None else []
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        for pid in started:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()

    @property
    def pid(self) -> int:
        """The id of the program's process."""
        return self._process.pid

    def is_running(self) -> bool:
        """Whether the program has not ended; RuntimeError if it has failed."""
        status = self._process.poll()
        if status:
            words = self.log.read_text("utf-8", "replace")[-3000:]
            raise RuntimeError(f"{' '.join(self._command)} ended with {status}:\n{words}")
        return status is None

    def _watch(self) -> None:
        while not self._ended.wait(SAMPLING):
            found = cpu_by_part(self._process.pid)
            # A part that has ended keeps what it had used.
            self.cpu = {part: max(self.cpu.get(part, 0.0), used) for part, used in found.items()}

    def batches(self) -> list[Batch]:
        """The batches with rows up to now, in order."""
        return list(_batches(self._progress)) if self._progress.exists() else []


def _batches(file: Path) -> Iterator[Batch]:
    text = file.read_text("utf-8", "replace")
    decoder = json.JSONDecoder()
    for found in re.finditer(r"Streaming query made progress: (?=\{)", text):
        with suppress(ValueError):
            progress: dict[str, Any] = decoder.raw_decode(text, found.end())[0]
            rows, parts = progress.get("numInputRows", 0), progress.get("durationMs", {})
            if parts.get("addBatch"):
                began = datetime.fromisoformat(progress["timestamp"]).timestamp()
                yield Batch(progress["batchId"], began, rows, parts)


@dataclass(frozen=True, slots=True)
class _Process:
    """A process of this machine: CPU seconds of its own, and of its children that have ended."""

    name: str
    parent: int
    own: float
    ended: float


def _processes() -> dict[int, _Process]:
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(FileNotFoundError, ProcessLookupError):
                found[int(folder.name)] = _parse((folder / "stat").read_text("utf-8", "replace"))
    return found


def _parse(text: str) -> _Process:
    name, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    own, ended = (sum(map(int, fields[first : first + 2])) / _TICK for first in (11, 13))
    return _Process(name, int(fields[1]), own, ended)


def _ancestors(number: int, processes: Mapping[int, _Process]) -> Iterator[int]:
    while number in processes and (number := processes[number].parent) > 1:
        yield number


def cpu_by_part(pid: int) -> dict[str, float]:
    """CPU seconds of a driver, its JVM, and everything that the JVM has started, up to now."""
    processes = _processes()
    found = {DRIVER: processes[pid].own if pid in processes else 0.0, JVM: 0.0, WORKERS: 0.0}
    for number, one in processes.items():
        above = list(_ancestors(number, processes))
        if pid not in above:
            continue
        if one.name == "java":
            found[JVM] += one.own
            found[WORKERS] += one.ended
        elif any(processes[each].name == "java" for each in above if each in processes):
            found[WORKERS] += one.own + one.ended
    return found


def tree_seconds(pid: int) -> float:
    """CPU seconds of a process and of all that it has started, up to now."""
    processes = _processes()
    return sum(processes[number].own + processes[number].ended for number in tree_of(pid, processes))


def tree_of(pid: int, processes: Mapping[int, _Process] | None = None) -> list[int]:
    """A process and all that it has started and that still run."""
    found = _processes() if processes is None else processes
    return [number for number in found if number == pid or pid in _ancestors(number, found)]
