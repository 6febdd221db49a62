"""Stream services: latency and cost over requests at 10,000 events a second, and with Spark in the path."""

from collections.abc import Sequence

from benchmarks.frame import Check, Options, Row, Table, progress
from benchmarks.tools.cores import pinning
from benchmarks.tools.requests import ALONE, KINDS, TOGETHER, WANTED, Measured, RequestLoad
from benchmarks.tools.spark_path import spark_rows

RATES = (10_000, 7500, 5000, 2500, 1000)
"""The paper's rate, and those that are tried where a machine does not hold it."""
REQUESTS = (100, 200, 400, 600, 800, 1000)
QUICK = (20, 50)
LADDER = (5, 10, 20, 40, 70, 100, 200, 400, 700, 1000, 1500, 2000, 2700, 4000)
NONE_HELD = 1
"""What stands for fewer than the first step, which is not looked into further."""
WITHIN = 30.0
PAPER = {"service latency": 20.0, "requests, against one service each": 2697 / 950}


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
            Row(f"requests held within {WITHIN:g} ms · {rate:,} events/s · {kind}", value, _note(kind, value))
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
                f"requests held by {kind}, against one service each",
                (held[kind] / held[kind + ALONE],),
                PAPER["requests, against one service each"],
            )
            for kind in ("content", "topic")
        ),
    )
    notes = (
        pinning(),
        f"one event in {WANTED} satisfies a request, of six predicates; {TOGETHER} events in a Notify",
        "CPU is what the events took of it, at their rate",
        *(("Spark is left out of a quick run",) if options.quick else ()),
    )
    return Table("streams", "by row", (*groups, *spark), checks, notes)


def _counts(options: Options) -> Sequence[int]:
    return QUICK if options.quick else REQUESTS


def _measured(kind: str, count: int, rate: int, options: Options) -> Measured:
    progress(f"{kind}: {count:,} requests at {rate:,} events a second")
    with RequestLoad(kind, count, options) as load:
        return load.at_rate(rate)


def _highest_rate(count: int, options: Options) -> int:
    """The first rate that is held with so many requests, for a machine that does not hold the paper's."""
    for rate in RATES[1:-1]:
        if _measured("content", count, rate, options).mean <= WITHIN:
            return rate
    return RATES[-1]


def _figures(count: int, found: Measured) -> tuple[Row, ...]:
    x = f"requests {count}"
    return (
        Row(f"latency, ms · {x} · mean", found.mean, f"{found.delivered:,.0f} delivered a second"),
        Row(f"latency, ms · {x} · 99 %", found.p99),
        Row(f"CPU, % of a core · {x} · node", found.cpu),
        Row(f"memory, MB · {x} · node", found.memory),
        Row(f"network, MB/s · {x} · to consumers", found.network),
    )


def _held(kind: str, rate: int, options: Options) -> float:
    """The greatest number on the ladder whose mean latency stays within the bound.

    Every second step, and the one between the last that is held and the first that is not.
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
    return f"not even {LADDER[0]}; {KINDS[kind]}" if value == NONE_HELD else KINDS[kind]


def _is_within(kind: str, count: int, rate: int, options: Options) -> bool:
    """Tried twice, since one disturbance of the machine would end it."""
    tries = 1 if options.quick else 2
    return any(_measured(kind, count, rate, options).mean <= WITHIN for _ in range(tries))
