"""Stream services: latency and cost over requests at 10,000 events a second, and with Spark in the path."""

from collections.abc import Sequence

from benchmarks.frame import Check, Options, Row, Table, progress
from benchmarks.tools.cores import pinning
from benchmarks.tools.requests import KINDS, Measured, RequestLoad
from benchmarks.tools.spark_path import spark_rows

RATE = 10_000
REQUESTS = (100, 200, 400, 600, 800, 1000)
QUICK = (20, 50)
LADDER = (10, 25, 50, 100, 200, 400, 700, 1000, 1500, 2000, 2700, 4000)
NONE_HELD = 1
"""What stands for fewer than the first step, which is not looked into further."""
WITHIN = 30.0
PAPER = {"service latency": 20.0, "requests, against one service each": 2697 / 950}


def run(options: Options) -> Table:
    """All of the paper's measurements of a service, and what Spark adds."""
    counts = QUICK if options.quick else REQUESTS
    rate = options.sized(RATE, 1000)
    groups: list[tuple[Row, ...]] = []
    latencies: dict[int, Measured] = {}
    for count in counts:
        with RequestLoad("content", count, options) as load:
            progress(f"{count:,} requests at {rate:,} events a second")
            latencies[count] = load.at_rate(rate)
        groups.append(_figures(count, latencies[count]))
    held = {kind: _held(kind, rate, options) for kind in KINDS}
    rows = tuple(
        Row(f"requests held within {WITHIN:g} ms · {kind} · {rate:,} events/s", value, _note(kind, value))
        for kind, value in held.items()
    )
    groups.append(rows)
    spark = [] if options.quick else spark_rows(options)
    most = max(latencies)
    checks = (
        Check(
            f"mean latency at {most:,} requests",
            (latencies[most].mean,),
            PAPER["service latency"],
            "ms",
            True,
        ),
        Check(
            "requests held, against one evaluation each",
            (held["content"] / held["each by itself"],),
            PAPER["requests, against one service each"],
        ),
    )
    notes = (
        pinning(),
        "each request is six predicates on a place; one event in ten satisfies one; 20 events in a Notify",
        "CPU is what the events took of it, at their rate",
        *(("Spark is left out of a quick run",) if options.quick else ()),
    )
    return Table("streams", "by row", (*groups, *spark), checks, notes)


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
    """The greatest number on the ladder whose mean latency stays within the bound, and all before it too.

    A step is tried up to three times, since one disturbance of the machine would end it.
    """
    ladder: Sequence[int] = LADDER[:3] if options.quick else LADDER
    held = 0
    for count in ladder:
        progress(f"{kind}: {count:,} requests")
        if not any(_is_within(kind, count, rate, options) for _ in range(1 if options.quick else 3)):
            break
        held = count
    return held or NONE_HELD


def _note(kind: str, value: float) -> str:
    return f"not even {LADDER[0]}; {KINDS[kind]}" if value == NONE_HELD else KINDS[kind]


def _is_within(kind: str, count: int, rate: int, options: Options) -> bool:
    with RequestLoad(kind, count, options) as load:
        return load.at_rate(rate).mean <= WITHIN
