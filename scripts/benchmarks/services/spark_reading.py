"""Latency through Spark: from the intake of raw records, through the operators of a job, to the consumer.

The job is `hpwsn streams run` with the two services in local mode: getANPR passes records on, inteGPS merges
three sources, and both check their constraints. Spark works in micro-batches, one after another.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import uvloop

from benchmarks.frame import progress
from benchmarks.services.feed import Feed
from benchmarks.services.load_processes import Consumers, Part, memory_of
from benchmarks.services.methods import SEED, THIS, Setting, connections, observe
from benchmarks.services.outcomes import Outcome
from benchmarks.services.random_requests import DAY, GET_ANPR, INTE_GPS, SERVICES, Service, mixed_requests
from benchmarks.tools.nodes import start, stop
from benchmarks.tools.pipeline_job import JobProcess, tree_of, tree_seconds

MASTER = "local[2]"
GRACE = 5.0
"""Seconds after the load in which a sustained one has delivered everything: a few batches."""
STARTED = 240.0
"""Seconds that Spark may take to deliver its first event, or to clear a backlog."""
_CONSTRAINTS = {
    "getANPR": f'time = ">= {DAY}"',
    "inteGPS": f"""\
longitude = "115.25 < longitude < 117.30"
latitude = "39.26 < latitude < 41.03"
speed = "> 0"
time = ">= {DAY}\"""",
}


def definition(service: Service) -> str:
    """The definition of a service, whose events keep the time at which they were sent."""
    types = ", ".join(f"{a.name} {'DOUBLE' if a.digits else 'BIGINT'}" for a in service.attributes)
    lines = [f'uri = "urn:bench:{service.name}"', f'topic = "{service.topic}"']
    names = [topic.partition(":")[2] for topic in service.sources]
    for name, topic in zip(names, service.sources, strict=True):
        lines += [f"[inputs.{name}]", 'source = "topic"', f'topic = "{topic}"']
        lines += [f'schema = "{types}, sent BIGINT"']
    merged = [f'op = "merge"\ninput = "{names[0]}"\nwith = {names[1:]}']
    lines += ["[[ops]]", *(merged if len(names) > 1 else ['op = "filter"', 'where = "vid >= 0"'])]
    return "\n".join([*lines, "[constraints]", _CONSTRAINTS[service.name], ""])


class SparkReading:
    """A node and a job that runs both services, while the block of `running` lasts."""

    def __init__(self, base: str, node: int, job: JobProcess, runner: asyncio.Runner) -> None:
        self._base, self._node, self._job, self._runner = base, node, job, runner
        self._port = urlsplit(base).port or 0

    def wait_ready(self) -> None:
        """Wait until an event of each service has come through."""
        for service in SERVICES:
            with Consumers([(self._port, f"/topics/{service.topic}/events")]) as consumer:
                end = time.time() + STARTED
                while not consumer.wait_for(1, time.time() + 1):
                    if not self._job.is_running() or time.time() > end:
                        raise RuntimeError(f"{service.name} gave nothing within {STARTED:g} s")
                    self._runner.run(Feed(self._base, 100, [], raw=True).send(0.2))

    def measure(self, count: int, rate: float, seconds: float) -> Outcome:
        """So many requests at so many records a second; returns once Spark has nothing left to do."""
        requests = mixed_requests(count, SEED)
        with Consumers(connections(THIS, self._port, requests)) as consumers:
            spark = Part(lambda: tree_seconds(self._job.pid), lambda: memory_of(tree_of(self._job.pid)))
            found = Setting(self._base, self._node, consumers, spark=spark)
            feed = Feed(self._base, rate, requests, raw=True)
            # The first batches of another size are slower.
            warm = self._runner.run(feed.send(min(2.0, seconds)))
            self._drain(consumers, warm.deliveries)
            consumers.clear()
            outcome = observe(self._runner, found, feed, count, seconds, grace=GRACE)
            if not outcome.sustained:
                self._drain(consumers, round(outcome.offered * seconds))
            return outcome

    def _drain(self, consumers: Consumers, deliveries: int) -> None:
        if not consumers.wait_for(deliveries, time.time() + STARTED):
            raise RuntimeError(f"Spark did not clear its backlog within {STARTED:g} s")


@contextmanager
def running() -> Iterator[SparkReading]:
    """A node with a job that is ready."""
    with (
        tempfile.TemporaryDirectory(prefix="hpwsn-bench-") as name,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        folder = Path(name)
        node, base = start(folder / "data", ["log.level=error"])
        try:
            with JobProcess(_command(folder, base), dict(os.environ), folder, "job") as job:
                progress("Spark starts")
                reading = SparkReading(base, node.pid, job, runner)
                reading.wait_ready()
                yield reading
        finally:
            stop(node, kill=True)


def _command(folder: Path, base: str) -> list[str]:
    files = []
    for service in (GET_ANPR, INTE_GPS):
        file = folder / f"{service.name}.toml"
        file.write_text(definition(service), "utf-8")
        files.append(str(file))
    command = [sys.executable, "-P", "-m", "hpwsn", "streams", "run", *files, "--url", f"{base}/wsn"]
    return [*command, "--master", MASTER, "--checkpoint", str(folder / "checkpoint")]
