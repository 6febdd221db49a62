"""One node with sensors, and loads of readings on it, each with what became of it.

A load is right if the node counts each reading that it answered for, every window has a result with all of
its readings, and neither lag nor the latency of answers grew. After the last load, the node is stopped, and
the rows of its history are counted.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import psutil
import pyarrow.dataset as ds

from benchmarks.field.latencies import Latencies
from benchmarks.field.schedule import LATENESS, Schedule, virtual_name
from benchmarks.services.load_processes import ChildProcess, waiting_seconds
from benchmarks.tools.cores import on_load_core
from benchmarks.tools.levels import ProcessSample
from benchmarks.tools.nodes import start, stop
from benchmarks.tools.probed_node import longest_stall
from benchmarks.tools.raw_load import cpu_seconds

REGISTERED_AT_ONCE = 1000
PATIENCE = 60.0
"""Seconds after a load in which what is on its way may still arrive."""
QUIET = 3.0
"""Seconds without a further result, after which none is expected."""
EVERY = 1.0
"""Seconds between two samples of the node."""


@dataclass(frozen=True, slots=True)
class Load:
    """What one load did; latencies in milliseconds, CPU in seconds."""

    name: str
    schedule: Schedule
    seconds: float
    """From its first post until everything had come."""
    sent: int
    """Readings that were sent."""
    accepted: int
    """Readings that the node, or the MQTT broker, answered for."""
    counted: int
    """Readings that the node counts as accepted."""
    rejected: int
    logged: int
    """Entries of the log, without results."""
    commits: int
    posts: int
    answers: Latencies
    has_answers: bool
    """Whether the latencies are those of the node's answers, and not just those of the sending."""
    judged: dict[str, Any]
    cpu: float
    waited: float
    """Seconds in which the node was ready to run and had no core."""
    stall: float
    failure: str
    samples: Sequence[ProcessSample] = field(repr=False)

    @property
    def lag(self) -> Latencies:
        """From the due closing of a window until its result came."""
        return Latencies(**self.judged["lag"])

    @property
    def lost(self) -> int:
        """Readings that were answered for, and that the node did not count or not log."""
        return self.accepted - min(self.counted, self.logged)

    @property
    def cost(self) -> float:
        """CPU microseconds of the node for a reading, with its share of the results."""
        return 1e6 * self.cpu / max(1, self.counted)

    @property
    def is_whole(self) -> bool:
        """Whether nothing was lost, rejected or counted twice."""
        twice = self.judged["repeated"] or self.judged["foreign"]
        return self.accepted == self.sent == self.counted == self.logged and not (self.rejected or twice)

    @property
    def problem(self) -> str:
        """Why the load was not sustained; empty if it was."""
        wanted = self.schedule.posts * self.schedule.together
        if self.failure:
            return self.failure
        if self.sent < wanted:
            return f"{self.sent / wanted:.0%} of the readings sent in time"
        if not self.is_whole:
            twice = self.judged["repeated"] + self.judged["foreign"]
            return f"{self.lost} readings lost, {self.rejected} rejected, {twice} results twice"
        if self.answers.grew:
            late = self.answers
            return (
                f"{'answers' if self.has_answers else 'posts'}: {late.first:,.0f}, later {late.last:,.0f} ms"
            )
        if self.lag.grew:
            return f"lag: {self.lag.first:,.0f}, later {self.lag.last:,.0f} ms"
        if self.judged["right"] < self.judged["expected"]:
            return f"{self.judged['right']:,} of {self.judged['expected']:,} results have all readings"
        return ""


class Reader(ChildProcess):
    """The process that reads all results."""

    folder = "field"

    def __init__(self, port: int) -> None:
        super().__init__("result_reader", port)

    def count(self) -> int:
        """The results up to now."""
        return int(self.ask("count"))

    def judge(self, schedule: Schedule, sent: int) -> dict[str, Any]:
        """What the results of a schedule are worth."""
        given = {"schedule": asdict(schedule), "sent": sent}
        found: dict[str, Any] = json.loads(self.ask(f"judge {json.dumps(given)}"))
        return found


class Kept(NamedTuple):
    """What the history has of all loads: rows, and different keys of rows."""

    readings: int
    keys: int
    results: int


class Trial:
    """A node with registered sensors, all of whose virtual sensors run."""

    def __init__(self, process: subprocess.Popen[str], base: str, data: Path, like: Schedule) -> None:
        self._process, self._base, self.data = process, base, data
        self.port = urlsplit(base).port or 0
        self.pid = process.pid
        self._like = like
        self._reader: Reader | None = None
        self.start = 0.0, 0.0
        """Seconds from the first subscriber until all virtual sensors had members, and the longest stall."""

    def prepare(self) -> None:
        """Register all sensors, and define the virtual ones."""
        found = list(self._like.registrations())
        for at in range(0, len(found), REGISTERED_AT_ONCE):
            self._request("POST", "/sensors", found[at : at + REGISTERED_AT_ONCE])
        for number in range(self._like.virtual):
            self._request("PUT", f"/virtual/{virtual_name(number)}", self._like.definition(number))

    @contextmanager
    def watched(self) -> Iterator[None]:
        """All virtual sensors have a subscriber while the block runs, and run when it begins."""
        began = time.time()
        with Reader(self.port) as self._reader:
            while self._members() < self._like.sensors:
                if time.time() > began + PATIENCE:
                    raise RuntimeError(f"not all virtual sensors had members within {PATIENCE:g} s")
                time.sleep(0.05)
            self.start = time.time() - began, longest_stall(self.data, began)
            yield

    def _members(self) -> int:
        """The members of all virtual sensors together."""
        found = 0
        after: str | None = ""
        while after is not None:
            page = self._get(f"/virtual?limit=1000&after={after}" if after else "/virtual?limit=1000")
            found += sum(each["members"] or 0 for each in page["items"])
            after = page["next"]
        return found

    def load(self, name: str, rate: float, seconds: float, module: str, **given: Any) -> Load:
        """Send readings at a rate, by a module of this folder."""
        assert self._reader is not None
        every = self._like.every
        began = (int(time.time() * 1000) // every + 1) * every + max(every, 1000)
        began -= began % every
        schedule = replace(self._like, rate=rate, began=began, seconds=seconds)
        given["schedule"] = asdict(schedule)
        before = self.status()
        watch = _Watch(self, began / 1000)
        with _sending(module, given) as sender:
            watch.until(lambda: sender.poll() is not None)
            assert sender.stdout is not None
            text = sender.stdout.read()
        if not text:
            raise RuntimeError(f"{module} ended; the lines above say why")
        told = json.loads(text)
        self._drain(schedule, told, before, watch)
        after = self.status()
        judged = self._reader.judge(schedule, told["sent"])
        counted = after["sensors"]["readings"] - before["sensors"]["readings"]
        results = after["sensors"]["results"] - before["sensors"]["results"]
        offsets = after["journal"]["last_offset"] - before["journal"]["last_offset"]
        rejected = [sum(each["sensors"]["rejected"].values()) for each in (before, after)]
        return Load(
            name,
            schedule,
            watch.seconds,
            told["readings"],
            told["accepted"],
            counted,
            rejected[1] - rejected[0],
            offsets - results,
            after["journal"]["commits"] - before["journal"]["commits"],
            told["sent"],
            Latencies(**told["latencies"]),
            told["answered"],
            judged,
            watch.cpu,
            watch.waited,
            longest_stall(self.data, began / 1000),
            told["failure"],
            watch.samples,
        )

    def _drain(self, schedule: Schedule, told: dict[str, Any], before: dict[str, Any], watch: _Watch) -> None:
        """Wait until the node has all readings, and no further result comes."""
        assert self._reader is not None
        readings = before["sensors"]["readings"] + told["accepted"]
        windows = schedule.windows(told["sent"])
        last = (max(windows, default=0) + LATENESS) / 1000
        end = max(time.time(), last) + PATIENCE
        count, changed = -1, time.time()
        wanted = len(windows) * schedule.virtual

        def done() -> bool:
            nonlocal count, changed
            assert self._reader is not None
            now, found = time.time(), self._reader.count()
            if found != count:
                count, changed = found, now
            if now > end:
                return True
            has_all = self.status()["sensors"]["readings"] >= readings
            return has_all and now > last and (count >= wanted or now > max(changed, last) + QUIET)

        watch.until(done)

    def kept(self) -> Kept:
        """Stop the node, and count what its history has then."""
        stop(self._process)
        if self._process.returncode:
            raise RuntimeError(f"the node ended with status {self._process.returncode}")
        readings, keys = _count(self.data / "readings")
        return Kept(readings, keys, _count(self.data / "virtual")[0])

    def status(self) -> dict[str, Any]:
        """The node's /status."""
        return self._get("/status")

    def _get(self, path: str) -> dict[str, Any]:
        with urlopen(f"{self._base}{path}", timeout=PATIENCE) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def _request(self, method: str, path: str, document: object) -> None:
        headers = {"Content-Type": "application/json"}
        request = Request(f"{self._base}{path}", json.dumps(document).encode(), headers, method=method)
        urlopen(request, timeout=PATIENCE).close()


class _Watch:
    """Samples of the node's process from a time on."""

    def __init__(self, trial: Trial, began: float) -> None:
        self._trial = trial
        self._node = psutil.Process(trial.pid)
        self._began = began
        self._first = self._cpu = cpu_seconds(trial.pid)
        self._waited = waiting_seconds(trial.pid)
        self._at = time.time()
        self._readings = trial.status()["sensors"]["readings"]
        self.samples: list[ProcessSample] = []

    def until(self, is_over: Callable[[], bool]) -> None:
        """Take samples until something is so."""
        while not is_over():
            time.sleep(0.05)
            if time.time() >= self._at + EVERY:
                self._sample()

    def _sample(self) -> None:
        readings, now, cpu = self._trial.status()["sensors"]["readings"], time.time(), self._now()
        taken = now - self._at
        with self._node.oneshot():
            self.samples.append(
                ProcessSample(
                    (now - self._began) / 60,
                    (readings - self._readings) / taken,
                    100 * (cpu - self._cpu) / taken,
                    self._node.memory_info().rss / 1e6,
                    self._node.num_threads(),
                    self._node.num_fds(),
                )
            )
        self._at, self._readings, self._cpu = now, readings, cpu

    def _now(self) -> float:
        return cpu_seconds(self._trial.pid)

    @property
    def seconds(self) -> float:
        """Seconds up to now."""
        return time.time() - self._began

    @property
    def cpu(self) -> float:
        """CPU seconds up to now."""
        return self._now() - self._first

    @property
    def waited(self) -> float:
        """Seconds up to now in which the node was ready and had no core."""
        return waiting_seconds(self._trial.pid) - self._waited


@contextmanager
def trial(like: Schedule, settings: Sequence[str] = ()) -> Iterator[Trial]:
    """A prepared node, pinned to the server's core, while the block runs."""
    with tempfile.TemporaryDirectory(prefix="hpwsn-bench-") as folder, on_load_core():
        data = Path(folder) / "data"
        process, base = start(data, ["log.level=error", *settings], "probed", pinned=True)
        try:
            found = Trial(process, base, data, like)
            found.prepare()
            yield found
        finally:
            if process.poll() is None:
                stop(process)


@contextmanager
def _sending(module: str, given: dict[str, Any]) -> Iterator[subprocess.Popen[str]]:
    """A process that sends; its answer is at its standard output once it has ended."""
    process = subprocess.Popen(
        [sys.executable, "-m", f"benchmarks.field.{module}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        assert process.stdin is not None
        process.stdin.write(json.dumps(given) + "\n")
        process.stdin.close()
        yield process
    finally:
        process.kill()
        process.wait()


def _count(folder: Path) -> tuple[int, int]:
    """The rows of the files below a folder, and how many different sensors and times they have."""
    if not folder.is_dir():
        return 0, 0
    table = ds.dataset(folder, format="parquet").to_table(columns=["sensor", "time"])
    return table.num_rows, table.group_by(["sensor", "time"]).aggregate([]).num_rows
