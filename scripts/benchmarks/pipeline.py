"""Pipeline: a backlog through Spark, broker to push consumer, beside Kafka in and out on the same Spark.

    scripts/bench pipeline [--rows 1000000] [--rounds 2] [--kill] [--before DIR]
    scripts/bench pipeline --latency

Two jobs, a filter that keeps half, and a count by camera and minute, read records {cid, vid, time} and
publish. The node's jobs are `hpwsn streams run --once`; those of Kafka are plain PySpark
(tools/kafka_job.py). Every run is a process of its own, systems take turns, and every second round goes
backwards. Every output of every run is compared with the reference.

- rows/s: all rows, from the start of the first batch to the receipt of the last output.
- with start: the same, from the start of the job's process.
- `--kill` kills the job and its Java (-9) once a third of the outputs has come, and starts it again.
- `--latency` sends single events through running jobs instead, beside Spark's own `rate` to `noop`.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.frame import Check, Options, Row, Table, figure, progress
from benchmarks.page import update_page
from benchmarks.report import as_tables, as_text, write
from benchmarks.tools.checkouts import Checkout, CompareError
from benchmarks.tools.kafka_job import described
from benchmarks.tools.pipeline_job import DRIVER, JVM, PARTS, WORKERS, Batch, JobProcess, tree_seconds
from benchmarks.tools.pipeline_latency import Latency, means, one_at_a_time, rate_to_noop
from benchmarks.tools.pipeline_receipts import Receipts, wait_for
from benchmarks.tools.pipeline_records import COUNT, FILTER, JOBS, Records, Verdict, judge, output
from benchmarks.tools.pipeline_systems import MASTER, PARTITIONS, ROOT, ROWS, Kafka, Node, System
from hpwsn_client.commands.completion import CommandParser

SERVER = "server"
CPU_PARTS = (SERVER, JVM, WORKERS, DRIVER)
LONGEST = 400.0
"""Seconds that one run may take."""
SETTLE = 0.5
"""Seconds after the last output in which a repeated one would come."""
FACTORS = {FILTER: 1.5, COUNT: 2.5}
"""The most that one event may take, in Spark's own batches."""
AFTER, BEFORE, KAFKA, SPARK = "HPwsn, after", "HPwsn, before", "Kafka", "Spark, rate to noop"


@dataclass(frozen=True)
class Run:
    """One run of a job; times are of time.time."""

    rows: int
    began: float
    first_batch: float
    first_output: float
    last_output: float
    cpu: dict[str, float]
    batches: list[Batch]
    verdict: Verdict

    @property
    def rate(self) -> float:
        """Rows a second from the first batch to the last output."""
        return self.rows / (self.last_output - self.first_batch)

    @property
    def rate_with_start(self) -> float:
        """Rows a second from the start of the process to the last output."""
        return self.rows / (self.last_output - self.began)

    @property
    def wait(self) -> float:
        """Seconds from the start of the process to the first output."""
        return self.first_output - self.began


def run_job(system: System, job: str, records: Records, folder: Path, kill: bool) -> Run:
    """Run a job over the whole backlog."""
    wanted = records.outputs(job)
    with system.session(job, folder, once=True) as session:
        used, cpu, batches = tree_seconds(session.pid), dict.fromkeys(CPU_PARTS, 0.0), list[Batch]()
        began = 0.0
        for number in range(2 if kill else 1):
            name = f"job-{number}"
            with JobProcess(session.command, session.environment, folder, name) as process:
                began = began or process.began
                enough = wanted // 3 if kill and number == 0 else sys.maxsize
                _follow(process, session.receipts, enough)
                if enough == sys.maxsize:
                    wait_for(session.receipts, wanted, process.log, SETTLE * 20)
            batches += process.batches()
            cpu |= {part: cpu[part] + used for part, used in process.cpu.items()}
        _quiet(session.receipts)
        cpu[SERVER] = tree_seconds(session.pid) - used
        receipts = session.receipts
        first = batches[0].began if batches else began
        came = (output(job, fields) for fields in receipts.outputs())
        verdict = judge(records.wanted[job], came)
    return Run(len(records.all), began, first, receipts.first, receipts.last, cpu, batches, verdict)


def _follow(process: JobProcess, receipts: Receipts, enough: int) -> None:
    """Wait until the job has ended, or so many outputs have come."""
    end = time.monotonic() + LONGEST
    while process.is_running() and receipts.count < enough:
        if time.monotonic() > end:
            raise RuntimeError(f"a job took more than {LONGEST:g} s; see {process.log}")
        time.sleep(0.02)


def _quiet(receipts: Receipts) -> None:
    """Wait until nothing comes any more."""
    while time.time() < receipts.last + SETTLE:
        time.sleep(SETTLE / 5)


def throughput(asked: argparse.Namespace) -> tuple[Table, bool]:
    """The table of all runs, and whether all outputs of this checkout equal the reference."""
    progress(f"making {asked.rows:,} records")
    records = Records(asked.rows)
    runs: dict[tuple[str, str], list[Run]] = {}
    with _systems(asked) as systems:
        for system in systems:
            progress(f"{system.name}: storing {asked.rows:,} records")
            system.fill(records.all)
        for number in range(asked.rounds):
            for job in asked.jobs:
                for system in systems if number % 2 == 0 else reversed(systems):
                    progress(f"round {number + 1} of {asked.rounds}: {job}, {system.name}")
                    folder = Path(tempfile.mkdtemp(prefix="run-", dir=asked.work))
                    run = run_job(system, job, records, folder, asked.kill)
                    progress(f"{run.rate:,.0f} rows/s, first output after {run.wait:.1f} s; {run.verdict}")
                    runs.setdefault((job, system.name), []).append(run)
    good = all(run.verdict.is_equal for (_, name), each in runs.items() if name == AFTER for run in each)
    return _table(asked, runs), good


@contextmanager
def _systems(asked: argparse.Namespace) -> Iterator[list[System]]:
    """All systems that are asked for, with Kafka running; files are below `asked.work`."""
    found: list[System] = [Node(Checkout("after", ROOT), asked.work / "after", asked.input, asked.run)]
    if asked.before is not None:
        before = Checkout("before", asked.before.resolve())
        before.check()
        found.append(Node(before, asked.work / "before"))
    if asked.no_kafka:
        yield found
        return
    with Kafka(asked.work / "kafka").running() as kafka:
        yield [kafka, *found]


def _table(asked: argparse.Namespace, runs: dict[tuple[str, str], list[Run]]) -> Table:
    groups, checks = [], list[Check]()
    for job in asked.jobs:
        named = {name: each for (which, name), each in runs.items() if which == job}
        groups += [
            tuple(
                Row.of(f"{job}, rows/s · {name}", [run.rate for run in each], str(worst(each)))
                for name, each in named.items()
            ),
            tuple(
                Row.of(f"{job}, rows/s with start · {name}", [run.rate_with_start for run in each])
                for name, each in named.items()
            ),
            tuple(
                Row.of(f"{job}, s to the first output · {name}", [run.wait for run in each])
                for name, each in named.items()
            ),
            *(_cpu_rows(job, named)),
            *(_batch_rows(job, named)),
        ]
        checks += _checks(job, named)
    rows = [row for group in groups for row in group]
    return Table("pipeline", "mixed units", tuple(groups), tuple(checks), notes(asked), body=body_of(rows))


def worst(runs: Sequence[Run]) -> Verdict:
    """The verdict of the run that differs most from the reference."""
    return max(
        (run.verdict for run in runs),
        key=lambda one: (one.missing + one.wrong, one.repeated, one.unordered),
    )


def _cpu_rows(job: str, named: dict[str, list[Run]]) -> Iterator[tuple[Row, ...]]:
    for part in CPU_PARTS:
        rows = [
            Row.of(f"{job}, CPU µs a row, {part} · {name}", [1e6 * run.cpu[part] / run.rows for run in each])
            for name, each in named.items()
        ]
        yield tuple(rows)


def _batch_rows(job: str, named: dict[str, list[Run]]) -> Iterator[tuple[Row, ...]]:
    found = {name: [means(run.batches) for run in each] for name, each in named.items()}
    for part in PARTS:
        yield tuple(
            Row.of(f"{job}, ms of a batch, {part} · {name}", [one[part] for one in each])
            for name, each in found.items()
        )


def _checks(job: str, named: dict[str, list[Run]]) -> Iterator[Check]:
    if AFTER not in named:
        return
    equal = tuple(float(run.verdict.is_equal) for run in named[AFTER])
    yield Check(f"{job}: outputs equal to the reference, in order, once", equal, 1.0, "of 1")
    for other, target in ((KAFKA, 1.0), (BEFORE, 1.0)):
        if other in named:
            pairs = list(zip(named[AFTER], named[other], strict=True))
            rates = tuple(one.rate / two.rate for one, two in pairs)
            yield Check(f"{job}: rows/s, against {other}", rates, target)
    if KAFKA in named:
        waits = tuple(one.wait / two.wait for one, two in zip(named[AFTER], named[KAFKA], strict=True))
        yield Check(f"{job}: time to the first output, against {KAFKA}", waits, 1.0, at_most=True)


def notes(asked: argparse.Namespace) -> tuple[str, ...]:
    """How all was set up."""
    found = [
        f"{asked.rows:,} rows; Spark {MASTER}, 1 GB, 2 shuffle partitions, at most {ROWS:,} rows a batch",
        f"Kafka: one process (KRaft), heap 1 GB, topics of {PARTITIONS} partitions by camera; {described()};"
        " Spark's own state store in memory; its consumer is librdkafka with fetch.wait.max.ms=10",
        "Kafka's sink may repeat rows after a failure; that of HPwsn does not",
    ]
    if asked.kill:
        found.append("each job was killed (-9) after a third of its outputs, and started again")
    return tuple(found)


def latencies(asked: argparse.Namespace) -> Table:
    """One event at a time, beside Spark's own time for a batch."""
    found: dict[tuple[str, str], Latency] = {}
    floors = [rate_to_noop(_folder(asked))]
    with _systems(asked) as systems:
        for system in systems:
            system.fill([])
        for job in asked.jobs:
            for system in systems:
                latency = one_at_a_time(system, job, _folder(asked), asked.events)
                progress(
                    f"{latency.mean:,.0f} ms, of which a batch takes {latency.parts['triggerExecution']:,.0f}"
                )
                found[job, system.name] = latency
    floors.append(rate_to_noop(_folder(asked)))
    floor = Latency(
        (*floors[0].events, *floors[1].events),
        {part: statistics.mean([one.parts[part] for one in floors]) for part in PARTS},
    )
    groups = [_latency_rows(job, found, floor) for job in asked.jobs]
    groups += [
        tuple(
            Row(f"{job}, ms of a batch, {part} · {name}", latency.parts[part])
            for name, latency in [
                (SPARK, floor),
                *((name, latency) for (which, name), latency in found.items() if which == job),
            ]
        )
        for job in asked.jobs
        for part in PARTS
    ]
    checks = tuple(
        Check(
            f"{job}: one event, against Spark's own batch",
            (found[job, AFTER].mean / floor.mean,),
            FACTORS[job],
            at_most=True,
        )
        for job in asked.jobs
    )
    rows = [row for group in groups for row in group]
    return Table("pipeline-latency", "ms", tuple(groups), checks, latency_notes(asked), body=body_of(rows))


def _folder(asked: argparse.Namespace) -> Path:
    return Path(tempfile.mkdtemp(prefix="latency-", dir=asked.work))


def _latency_rows(job: str, found: dict[tuple[str, str], Latency], floor: Latency) -> tuple[Row, ...]:
    rows = [Row(f"{job}, ms, mean · {SPARK}", floor.mean, f"p50 {floor.p50:,.0f}")]
    for (which, name), latency in found.items():
        if which == job:
            note = f"p50 {latency.p50:,.0f}, {latency.mean / floor.mean:.2f} × {SPARK}"
            rows.append(Row(f"{job}, ms, mean · {name}", latency.mean, note))
    return tuple(rows)


def latency_notes(asked: argparse.Namespace) -> tuple[str, ...]:
    """How latencies were measured."""
    return (
        f"{asked.events} events of each, one at a time, after a warm-up; published to received",
        "filter: the event itself; count: an event that closes a window, until the window's count",
        f"{SPARK}: triggerExecution of batches of one row, before and after all others",
    )


def body_of(rows: Sequence[Row]) -> str:
    """A table for each job, with a column for each system."""
    cells = []
    for row in rows:
        what, _, name = row.name.partition(" · ")
        job, _, line = what.partition(", ")
        spread = f" ({row.spread})" if row.spread else ""
        cells.append((job, line, name, figure(row.value) + spread))
    return as_tables(cells)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write; 1 if an output of this checkout differs from the reference."""
    asked = _parser().parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory(prefix="hpwsn-pipeline-") as folder:
            asked.work = Path(folder)
            table, good = (latencies(asked), True) if asked.latency else throughput(asked)
    except (CompareError, RuntimeError) as error:
        print(f"scripts/bench: {error}", file=sys.stderr)
        return 1
    options = Options(rounds=asked.rounds)
    print(as_text(table), end="\n\n", flush=True)
    files = write(asked.output, table.title, table, options)
    if asked.page:
        files += update_page(table.title, table, options)
    print("  wrote " + ", ".join(map(str, files)), file=sys.stderr)
    return 0 if good else 1


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        prog="scripts/bench pipeline",
        description=(__doc__ or "").partition("\n")[0],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--rows", type=int, default=1_000_000, help="records in the backlog (default: 1000000)"
    )
    parser.add_argument("--rounds", type=int, default=2, help="runs of each job on each system (default: 2)")
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=JOBS, help="the jobs (default: both)")
    parser.add_argument("--kill", action="store_true", help="kill each job in the middle, and start it again")
    parser.add_argument("--latency", action="store_true", help="send single events instead of a backlog")
    parser.add_argument("--events", type=int, default=30, help="with --latency: single events (default: 30)")
    parser.add_argument("--before", type=Path, metavar="DIR", help="another checkout to run beside this one")
    parser.add_argument("--no-kafka", action="store_true", help="leave Kafka out")
    parser.add_argument(
        "--input", action="append", default=[], metavar="LINE",
        help="a line for the input of this checkout's definitions, such as 'key = \"cid\"'; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--run", action="append", default=[], metavar="ARGUMENT",
        help="an argument for this checkout's `streams run`, such as --run=--conf; may be repeated",
    )  # fmt: skip
    parser.add_argument("--output", type=Path, default=Path("build/bench"), help="folder for JSON and plots")
    parser.add_argument("--page", action="store_true", help="write its tables in docs too")
    return parser
