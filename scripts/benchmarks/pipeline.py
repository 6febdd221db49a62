"""Pipeline: a backlog through Spark, broker to push consumer, beside Kafka in and out on the same Spark.

    scripts/bench pipeline [--rows 1000000] [--rounds 2] [--kill] [--before DIR]
    scripts/bench pipeline --latency

Two jobs, a filter that keeps half, and a count by camera and minute, read records {cid, vid, time} and
publish. The node's jobs are `hpwsn streams run --once`; those of Kafka are plain PySpark
(tools/kafka_job.py). Every run is a process of its own, systems take turns, and every second round goes
backwards. Every output of every run is compared with the reference.

- rows/s: all rows, from the start of the first batch to the receipt of the last output.
- with start: the same, from the start of the job's process.
- `--kill` kills the job and its Java (-9) once a third of the outputs has come, and starts it again; rows/s
  then count from the start of the process, too.
- `--latency` sends single events through running jobs instead, beside Spark's own `rate` to `noop`.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.frame import Options, Table, progress
from benchmarks.page import update_page
from benchmarks.report import as_text, write
from benchmarks.tools.checkouts import Checkout, CompareError
from benchmarks.tools.pipeline_job import Batch, JobProcess, tree_seconds
from benchmarks.tools.pipeline_latency import EVENTS, Latency, one_at_a_time, rate_to_noop
from benchmarks.tools.pipeline_receipts import Receipts, wait_for
from benchmarks.tools.pipeline_records import JOBS, Records, judge, output
from benchmarks.tools.pipeline_systems import ROOT, Kafka, Node, System
from benchmarks.tools.pipeline_tables import (
    AFTER,
    CPU_PARTS,
    SERVER,
    Run,
    latency_table,
    setup_notes,
    throughput_table,
)
from hpwsn_client.commands.completion import CommandParser

LONGEST = 400.0
"""Seconds that one run may take."""
SETTLE = 0.5
"""Seconds after the last output in which a repeated one would come."""


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
        # What a killed process has not reported yet is not known.
        first = began if kill or not batches else batches[0].began
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
    return throughput_table(asked.jobs, runs, setup_notes(asked.rows, asked.kill)), good


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
    return latency_table(asked.jobs, found, floors, asked.events)


def _folder(asked: argparse.Namespace) -> Path:
    return Path(tempfile.mkdtemp(prefix="latency-", dir=asked.work))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write; 1 if an output of this checkout differs from the reference."""
    asked = _parser().parse_args(arguments)
    began = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="hpwsn-pipeline-") as folder:
            asked.work = Path(folder)
            table, good = (latencies(asked), True) if asked.latency else throughput(asked)
    except (CompareError, RuntimeError) as error:
        print(f"scripts/bench: {error}", file=sys.stderr)
        return 1
    rounds = 1 if asked.latency else asked.rounds
    options = Options(round((time.monotonic() - began) / rounds), rounds)
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
    parser.add_argument(
        "--events", type=int, default=EVENTS, help="with --latency: single events (default: 30)"
    )
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
