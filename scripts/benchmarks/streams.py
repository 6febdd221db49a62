"""Stream services: latency and cost by number of requests at 10,000 events/s, and with Spark in the path."""

from collections.abc import Iterable, Iterator, Sequence

from benchmarks.frame import Check, Options, Row, Table, figure, progress
from benchmarks.report import as_tables
from benchmarks.tools.cores import pinning_notes
from benchmarks.tools.requests import ALONE, KINDS, TOGETHER, WANTED, Measured, RequestLoad
from benchmarks.tools.spark_path import spark_rows

RATES = (10_000, 7500, 5000, 2500, 1000)
"""The paper's rate, and lower ones for a machine that cannot sustain it."""
REQUESTS = (100, 200, 400, 600, 800, 1000)
LEFT_OUT = ("requests 200", "requests 600", "requests 800")
"""Points that the page does not show."""
QUICK = (20, 50)
LADDER = (5, 10, 20, 40, 70, 100, 200, 400, 700, 1000, 1500, 2000, 2700, 4000)
NONE_HELD = 1
"""Stands for fewer requests than the first step."""
WITHIN = 30.0
PAPER = {"service latency": 20.0, "requests, against one service per request": 2697 / 950}


def run(options: Options) -> Table:
    """All of the paper's measurements of a service, and what Spark adds."""
    rate = options.sized(RATES[0], 1000)
    latencies = {count: _measured("content", count, rate, options) for count in _counts(options)}
    groups = [_figures(count, found) for count, found in latencies.items()]
    most = max(latencies)
    if latencies[most].mean > WITHIN and not options.quick:
        rate = _highest_rate(most, options)
    held = {kind: _held(kind, rate, options) for kind in KINDS}
    groups.append(
        tuple(
            Row(f"requests within {WITHIN:g} ms · {rate:,} events/s · {kind}", value, _note(kind, value))
            for kind, value in held.items()
        )
    )
    spark = [] if options.quick else spark_rows(options)
    checks = (
        Check(
            f"mean latency at {most:,} requests",
            (latencies[most].mean,),
            PAPER["service latency"],
            "ms",
            True,
        ),
        *(
            Check(
                f"requests by {kind}, against one service per request",
                (held[kind] / held[kind + ALONE],),
                PAPER["requests, against one service per request"],
            )
            for kind in ("content", "topic")
        ),
    )
    notes = (
        *pinning_notes(),
        f"one event in {WANTED} matches a request; a Notify has {TOGETHER} events",
        *(("a quick run leaves Spark out",) if options.quick else ()),
    )
    groups += spark
    body = body_of(row for group in groups for row in group)
    return Table("streams", "mixed units", tuple(groups), checks, notes, body=body)


def body_of(rows: Iterable[Row]) -> str:
    """A table by the number of requests, one of the requests within the bound, and one of Spark."""
    return as_tables(_cells(row for row in rows if row.name.split(" · ")[1] not in LEFT_OUT))


def _cells(rows: Iterable[Row]) -> Iterator[tuple[str, str, str, str]]:
    for row in rows:
        what, x, series = row.name.split(" · ")
        if what.startswith("Spark, "):
            line = f"{x}, {series}, {what.removeprefix('Spark, ')}"
            yield "Spark", line, "", figure(row.value) + (f" ({row.note})" if row.note else "")
        elif x.startswith("requests "):
            column = f"{series} {what}" if what.startswith("latency") else what
            yield "requests", x.removeprefix("requests "), column, figure(row.value)
        else:
            yield f"{what}, {x}", series, "requests", figure(row.value)
            yield f"{what}, {x}", series, "each request", row.note


def _counts(options: Options) -> Sequence[int]:
    return QUICK if options.quick else REQUESTS


def _measured(kind: str, count: int, rate: int, options: Options) -> Measured:
    progress(f"{kind}: {count:,} requests at {rate:,} events/s")
    with RequestLoad(kind, count, options) as load:
        return load.at_rate(rate)


def _highest_rate(count: int, options: Options) -> int:
    """The highest rate below the paper's whose mean latency is within the bound."""
    for rate in RATES[1:-1]:
        if _measured("content", count, rate, options).mean <= WITHIN:
            return rate
    return RATES[-1]


def _figures(count: int, found: Measured) -> tuple[Row, ...]:
    x = f"requests {count}"
    return (
        Row(f"latency, ms · {x} · mean", found.mean, f"{found.delivered:,.0f} delivered/s"),
        Row(f"latency, ms · {x} · p99", found.p99),
        Row(f"CPU, % of a core · {x} · node", found.cpu),
        Row(f"memory, MB · {x} · node", found.memory),
        Row(f"network, MB/s · {x} · to consumers", found.network),
    )


def _held(kind: str, rate: int, options: Options) -> float:
    """The greatest number on the ladder whose mean latency stays within the bound.

    Tries every second step, then the one between the last success and the first failure.
    """
    ladder: Sequence[int] = LADDER[:2] if options.quick else LADDER
    held = -1
    for step in range(1, len(ladder), 2):
        if not _is_within(kind, ladder[step], rate, options):
            break
        held = step
    if held + 1 < len(ladder) and _is_within(kind, ladder[held + 1], rate, options):
        held += 1
    return ladder[held] if held >= 0 else NONE_HELD


def _note(kind: str, value: float) -> str:
    return f"fewer than {LADDER[0]}; {KINDS[kind]}" if value == NONE_HELD else KINDS[kind]


def _is_within(kind: str, count: int, rate: int, options: Options) -> bool:
    """Tried twice, since a short disturbance of the machine would end the search."""
    tries = 1 if options.quick else 2
    return any(_measured(kind, count, rate, options).mean <= WITHIN for _ in range(tries))
