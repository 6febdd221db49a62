"""How long one event takes through a job of the pipeline benchmark, and Spark's own time for a batch.

Events are published one at a time: the next one a moment after the output of the one before. Through the
filter an event is an output. Through the count an event closes the window of the one before, whose count is
the output: Spark moves the watermark at the end of a batch, so this takes two batches.
"""

import random
import statistics
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.frame import progress
from benchmarks.tools import rate_job
from benchmarks.tools.checkouts import Checkout
from benchmarks.tools.pipeline_job import PARTS, Batch, JobProcess
from benchmarks.tools.pipeline_receipts import wait_for
from benchmarks.tools.pipeline_records import COUNT, Record
from benchmarks.tools.pipeline_systems import ROOT, System

WARM_UP, EVENTS = 20, 30
RATE_BATCHES = 30
WITHIN = 120.0
PAUSES = (0.05, 0.25)
"""Seconds between an output and the next event: not in step with anything."""
START = datetime(2024, 3, 4, 6, 0, tzinfo=UTC)


@dataclass(frozen=True)
class Latency:
    """Milliseconds of each event, and the mean of each part of the batches meanwhile."""

    events: tuple[float, ...]
    parts: dict[str, float]

    @property
    def mean(self) -> float:
        """The mean over all events."""
        return statistics.mean(self.events)

    @property
    def p50(self) -> float:
        """The median of all events."""
        return statistics.median(self.events)


def one_at_a_time(system: System, job: str, folder: Path, events: int = EVENTS) -> Latency:
    """Send single events through a running job, after a warm-up."""
    progress(f"{system.name}, {job}: {events} events, one at a time")
    chance, taken = random.Random(7), []
    with (
        system.session(job, folder, once=False) as session,
        JobProcess(session.command, session.environment, folder, "job") as process,
    ):
        before, batches = 0, 0
        for number in range(WARM_UP + events + 1):
            minutes = 2 * number if job == COUNT else 0
            time_text = (START + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")
            if number == WARM_UP + 1:
                batches = len(process.batches())
            began = time.time()
            system.send(Record("cam-000", f"A{number:05}", time_text))
            if job == COUNT and number == 0:
                continue
            before += 1
            wait_for(session.receipts, before, process.log, WITHIN)
            process.is_running()
            if number > WARM_UP:
                taken.append(1e3 * (session.receipts.last - began))
            time.sleep(chance.uniform(*PAUSES))
        return Latency(tuple(taken), means(process.batches()[batches:]))


def means(batches: list[Batch]) -> dict[str, float]:
    """The mean of each part of some batches, in milliseconds."""
    return {
        part: statistics.mean([batch.parts.get(part, 0) for batch in batches]) if batches else 0.0
        for part in PARTS
    }


def rate_to_noop(folder: Path, batches: int = RATE_BATCHES) -> Latency:
    """Spark's own time for a batch of one row, after a warm-up."""
    progress(f"Spark, rate to noop: {batches} batches")
    environment = Checkout("after", ROOT).environment()
    environment["PYTHONPATH"] += f":{ROOT / 'scripts'}"
    command = [sys.executable, rate_job.__file__, str(folder / "checkpoint")]
    with JobProcess(command, environment, folder, "rate") as process:
        end = time.monotonic() + 2 * WITHIN
        while len(found := [batch for batch in process.batches() if batch.rows]) < WARM_UP // 2 + batches:
            process.is_running()
            if time.monotonic() > end:
                raise RuntimeError(f"Spark ran only {len(found)} batches within {2 * WITHIN:g} s")
            time.sleep(0.5)
    measured = found[WARM_UP // 2 :]
    return Latency(tuple(batch.parts["triggerExecution"] for batch in measured), means(measured))
