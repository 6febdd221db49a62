"""The tables of the pipeline benchmark: a column for each system, targets against Kafka and Spark itself."""

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.frame import Check, Row, Table, figure
from benchmarks.report import as_svg, as_tables
from benchmarks.tools.kafka_job import described
from benchmarks.tools.pipeline_job import DRIVER, JVM, PARTS, WORKERS, Batch
from benchmarks.tools.pipeline_latency import Latency, means
from benchmarks.tools.pipeline_records import COUNT, FILTER, Verdict
from benchmarks.tools.pipeline_systems import MASTER, PARTITIONS, ROWS

SERVER = "server"
CPU_PARTS = (SERVER, JVM, WORKERS, DRIVER)
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


def throughput_table(
    jobs: Iterable[str], runs: Mapping[tuple[str, str], Sequence[Run]], notes: tuple[str, ...]
) -> Table:
    """All runs by job and system."""
    groups: list[tuple[Row, ...]] = []
    checks: list[Check] = []
    for job in jobs:
        named = {name: each for (which, name), each in runs.items() if which == job}
        rates = {name: [run.rate for run in each] for name, each in named.items()}
        whole = {name: [run.rate_with_start for run in each] for name, each in named.items()}
        waits = {name: [run.wait for run in each] for name, each in named.items()}
        groups += [
            tuple(
                Row.of(f"{job}, rows/s · {name}", each, str(_worst(named[name])))
                for name, each in rates.items()
            ),
            _rows(f"{job}, rows/s with start", whole),
            _rows(f"{job}, s to the first output", waits),
            *_cpu_rows(job, named),
            *_batch_rows(job, named),
        ]
        checks += _checks(job, named)
    picture = as_svg(Table("pipeline", "rows/s", tuple(g for g in groups if ", rows/s · " in g[0].name)))
    return _table("pipeline", "mixed units", groups, checks, notes, {"rates": picture})


def latency_table(
    jobs: Iterable[str],
    found: Mapping[tuple[str, str], Latency],
    floors: Sequence[Latency],
    events: int,
) -> Table:
    """One event at a time by job and system, beside Spark's own time for a batch."""
    parts = {part: statistics.mean([one.parts[part] for one in floors]) for part in PARTS}
    floor = Latency(tuple(time for one in floors for time in one.events), parts)
    groups: list[tuple[Row, ...]] = []
    checks: list[Check] = []
    for job in jobs:
        named = {SPARK: floor, **{name: one for (which, name), one in found.items() if which == job}}
        groups += [_latency_rows(job, named), *_part_rows(job, named)]
        ratio = named[AFTER].mean / floor.mean
        checks.append(
            Check(f"{job}: one event, against Spark's own batch", (ratio,), FACTORS[job], at_most=True)
        )
    notes = (
        f"{events} events of each, one at a time, after a warm-up; from published to received",
        "filter: the event itself; count: an event that closes a window, until the window's count",
        f"{SPARK}: triggerExecution of batches of one row, before and after all others",
    )
    return _table("pipeline-latency", "ms", groups, checks, notes, {})


def setup_notes(rows: int, kill: bool) -> tuple[str, ...]:
    """How all was set up."""
    found = [
        f"{rows:,} rows; Spark {MASTER}, 1 GB, 1 shuffle partition, at most {ROWS:,} rows a batch",
        f"Kafka: one process (KRaft), heap 1 GB, topics of {PARTITIONS} partitions by camera; {described()};"
        " Spark's own state store in memory; its consumer is librdkafka with fetch.wait.max.ms=10",
        "Kafka's sink may repeat rows after a failure; that of HPwsn does not",
    ]
    if kill:
        found.append("each job was killed (-9) after a third of its outputs, and started again")
    return tuple(found)


def _table(
    title: str,
    unit: str,
    groups: Sequence[tuple[Row, ...]],
    checks: Sequence[Check],
    notes: tuple[str, ...],
    pictures: Mapping[str, str],
) -> Table:
    body = as_tables([*_cells(row for group in groups for row in group), *_check_cells(checks)])
    return Table(title, unit, tuple(groups), tuple(checks), notes, body=body, pictures=pictures)


def _cells(rows: Iterable[Row]) -> Iterator[tuple[str, str, str, str]]:
    """A table for each job, with a column for each system."""
    for row in rows:
        what, _, name = row.name.partition(" · ")
        job, _, line = what.partition(", ")
        is_detail = line.startswith(("CPU", "ms of a batch"))
        spread = f" ({row.spread})" if row.spread and not is_detail else ""
        yield job, line, name, figure(row.value) + spread
        if row.note:
            yield job, "outputs" if line == "rows/s" else "ms, median", name, row.note


def _check_cells(checks: Iterable[Check]) -> Iterator[tuple[str, str, str, str]]:
    for check in checks:
        yield "target", check.what, "result", check.reached
        yield "target", check.what, "wanted", check.wanted + ("" if check.met else ", **missed**")


def _rows(what: str, named: Mapping[str, Iterable[float]]) -> tuple[Row, ...]:
    return tuple(Row.of(f"{what} · {name}", samples) for name, samples in named.items())


def _worst(runs: Sequence[Run]) -> Verdict:
    """The verdict of the run that differs most from the reference."""
    return max(
        (run.verdict for run in runs),
        key=lambda one: (one.missing + one.wrong, one.repeated, one.unordered),
    )


def _cpu_rows(job: str, named: Mapping[str, Sequence[Run]]) -> Iterator[tuple[Row, ...]]:
    for part in CPU_PARTS:
        costs = {name: [1e6 * run.cpu[part] / run.rows for run in each] for name, each in named.items()}
        yield _rows(f"{job}, CPU µs a row, {part}", costs)


def _batch_rows(job: str, named: Mapping[str, Sequence[Run]]) -> Iterator[tuple[Row, ...]]:
    found = {name: [means(run.batches) for run in each] for name, each in named.items()}
    for part in PARTS:
        taken = {name: [one[part] for one in each] for name, each in found.items()}
        yield _rows(f"{job}, ms of a batch, {part}", taken)


def _part_rows(job: str, named: Mapping[str, Latency]) -> Iterator[tuple[Row, ...]]:
    for part in PARTS:
        yield _rows(f"{job}, ms of a batch, {part}", {name: [one.parts[part]] for name, one in named.items()})


def _latency_rows(job: str, named: Mapping[str, Latency]) -> tuple[Row, ...]:
    return tuple(
        Row(f"{job}, ms, mean · {name}", latency.mean, f"{latency.p50:,.0f}")
        for name, latency in named.items()
    )


def _checks(job: str, named: Mapping[str, Sequence[Run]]) -> Iterator[Check]:
    ours = named[AFTER]
    equal = tuple(float(run.verdict.is_equal) for run in ours)
    yield Check(f"{job}: runs with outputs equal to the reference, in order, once", equal, 1.0, "of 1")
    for other in (BEFORE, KAFKA):
        if other in named:
            pairs = list(zip(ours, named[other], strict=True))
            yield Check(
                f"{job}: rows/s, against {other}", tuple(one.rate / two.rate for one, two in pairs), 1.0
            )
            waits = tuple(one.wait / two.wait for one, two in pairs)
            yield Check(f"{job}: time to the first output, against {other}", waits, 1.0, at_most=True)
