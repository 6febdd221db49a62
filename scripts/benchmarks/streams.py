"""Stream services as their paper measures them: latency by requests, four methods, and Spark in the path.

    scripts/bench streams [--part latency|methods|held|spark …] [--quick] [--page]

- latency: the broker's own part, from the intake of an event to its consumer, for 100 to 1,000 requests.
- methods: the same for four ways to serve requests, with CPU, memory and network.
- held: how many requests stay under 30 ms, by this method and by one service per request.
- spark: from the intake of raw records through the operators on Spark to the consumer.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from benchmarks.frame import Check, Options, Row, Table, progress
from benchmarks.page import update_page
from benchmarks.report import as_text, with_pictures, write
from benchmarks.services import methods
from benchmarks.services.held_search import Held, search
from benchmarks.services.methods import ALONE, METHODS, SEED, THIS
from benchmarks.services.outcomes import Outcome, busy_note
from benchmarks.services.random_requests import SERVICES, kinds, random_requests, services_needed
from benchmarks.services.rate_steps import descend
from benchmarks.services.service_tables import (
    latency_picture,
    latency_table,
    memory_lines,
    method_pictures,
    method_tables,
    needed_table,
    rows_of,
    stopped_lines,
)
from benchmarks.services.spark_reading import SparkReading, running
from benchmarks.tools.cores import pinning_notes
from hpwsn_client.commands.completion import CommandParser, print_error

RATES = (10_000, 5000, 2500, 1000, 500)
"""The paper's rate, and lower ones for a machine that cannot sustain it."""
LOWER = 1000
"""The second rate of the four methods: that of the paper's section 5.3."""
REQUESTS = (100, 200, 400, 600, 800, 1000)
QUICK = (20, 50)
WITHIN = 30.0
PAPER_LATENCY, PAPER_HELD = 20.0, {THIS: 2697, ALONE: 950}
FIRST = {THIS: 400, ALONE: 8}
"""Where the search for the number of requests begins."""
MOST = 8000


def latency(options: Options) -> Table:
    """The broker's own part of the latency, down to a rate that is sustained."""
    found = list(
        descend(
            lambda count, rate: _measured(THIS, count, rate, options),
            _counts(options),
            (LOWER,) if options.quick else RATES,
            first_again=True,
        )
    )
    last = found[-1]
    checks = (
        Check(f"mean latency at {last.requests:,} requests and {last.rate:,.0f} events/s", (last.mean,),
              PAPER_LATENCY, "ms", at_most=True),
    )  # fmt: skip
    body = latency_table("requests, the broker's own part", found, ("node", "consumers"))
    pictures = latency_picture("the broker's own part of the latency", found)
    rows = [rows_of("broker", one) for one in found]
    return _table("latency", rows, checks, body, busy_note(found), pictures)


def four_methods(options: Options) -> Table:
    """Figure 8 of the paper, at its rate and at a lower one, and its tables 4 and 5."""
    every = [one for service in SERVICES for one in random_requests(service, 1000, SEED)]
    groups: list[tuple[Row, ...]] = []
    bodies, notes = [needed_table(kinds(every), services_needed(every))], list[str]()
    pictures: dict[str, str] = {}
    for rate in (LOWER,) if options.quick else (RATES[0], LOWER):
        found = {method: list(_until_stopped(method, rate, options)) for method in METHODS}
        groups += [rows_of(method, one) for method, each in found.items() for one in each]
        bodies.append(method_tables(rate, found, _counts(options)))
        notes += stopped_lines(rate, found)
        notes += memory_lines(rate, found[ALONE])
        notes += busy_note(one for each in found.values() for one in each)
        pictures |= method_pictures(rate, found)
    return _table("methods", groups, (), "\n\n".join(bodies), notes, pictures)


def _until_stopped(method: str, rate: float, options: Options) -> Iterator[Outcome]:
    for count in _counts(options):
        outcome = _measured(method, count, rate, options)
        yield outcome
        if not outcome.sustained:
            return


def held(options: Options) -> Table:
    """How many requests stay within the bound, each method by its own search."""
    rate = LOWER if options.quick else RATES[0]
    most = 20 if options.quick else MOST
    found = {
        method: search(
            lambda count, method=method: _fresh(method, count, rate, options),  # type: ignore[misc]
            WITHIN,
            first=min(FIRST[method], most),
            most=most,
        )
        for method in (THIS, ALONE)
    }
    groups = [
        (Row(f"{method} · requests within {WITHIN:g} ms", max(one.count, 0.01), one.reason), *(
            rows_of(method, one.best) if one.best else ()
        ))
        for method, one in found.items()
    ]  # fmt: skip
    ratio = found[THIS].count / max(1, found[ALONE].count)
    wanted = PAPER_HELD[THIS] / PAPER_HELD[ALONE]
    checks = (Check("requests held, against one service per request", (ratio,), wanted),)
    return _table(
        "held",
        groups,
        checks,
        _held_body(rate, found),
        busy_note(one.best for one in found.values() if one.best),
    )


def _held_body(rate: float, found: dict[str, Held]) -> str:
    lines = [
        f"| requests within {WITHIN:g} ms, at {rate:,.0f} events/s | requests | deliveries/s | mean, ms | "
        "CPU node, % | memory, MB | then | the paper |",
        "|---" * 8 + "|",
    ]
    for method, one in found.items():
        best = one.best
        cells = ["0", "", "", "", ""]
        if best:
            memory = best.memory["node"] + best.memory.get("services", 0.0)
            cells = [f"{best.requests:,}", f"{best.offered:,.0f}", f"{best.mean:.1f}"]
            cells += [f"{best.cpu['node']:.0f}", f"{memory:,.0f}"]
        lines.append(f"| {' | '.join([method, *cells, one.reason, f'{PAPER_HELD[method]:,}'])} |")
    return "\n".join(lines)


def spark(options: Options) -> Table:
    """The whole way, at the highest rate that is sustained for each number of requests."""
    rates: Sequence[float] = (100,) if options.quick else RATES
    counts = QUICK[:1] if options.quick else REQUESTS
    with running() as reading:
        found = list(descend(_through(reading, options), counts, rates, first_again=False))
    body = latency_table("requests, through Spark", found, ("node", "Spark", "consumers"))
    notes = ["micro-batches follow each other without a pause; one job runs both services on two cores"]
    if not found[-1].sustained:
        notes.append(f"from {found[-1].requests:,} requests on, none of the rates was sustained")
    notes += busy_note(found)
    pictures = latency_picture("latency through Spark", found)
    return _table("spark", [rows_of("Spark", one) for one in found], (), body, notes, pictures)


def _through(reading: SparkReading, options: Options) -> Callable[[int, float], Outcome]:
    def measure(count: int, rate: float) -> Outcome:
        progress(f"through Spark: {count:,} requests at {rate:,.0f} events/s")
        outcome = reading.measure(count, rate, 3 * _seconds(options))
        _tell(outcome)
        return outcome

    return measure


PARTS: dict[str, Callable[[Options], Table]] = {
    "latency": latency,
    "methods": four_methods,
    "held": held,
    "spark": spark,
}


def _table(
    part: str,
    groups: Sequence[tuple[Row, ...]],
    checks: Sequence[Check],
    body: str,
    notes: Sequence[str] = (),
    pictures: Mapping[str, str] | None = None,
) -> Table:
    pinned = () if part == "spark" else pinning_notes()
    title, drawn = f"streams-{part}", pictures or {}
    shown = [each for each in drawn if each.startswith(("curves", "latency", "node"))]
    return Table(
        title,
        "mixed units",
        tuple(groups),
        tuple(checks),
        (*pinned, *notes),
        body=with_pictures(body, title, shown),
        pictures=drawn,
    )


def _counts(options: Options) -> Sequence[int]:
    return QUICK if options.quick else REQUESTS


def _seconds(options: Options) -> float:
    return max(0.5, 4 * options.seconds)


@cache
def _measured(method: str, count: int, rate: float, options: Options) -> Outcome:
    """One measurement for all parts of a run; what is not sustained gets a second try."""
    outcome = _fresh(method, count, rate, options)
    return outcome if outcome.sustained or options.quick else _fresh(method, count, rate, options)


def _fresh(method: str, count: int, rate: float, options: Options) -> Outcome:
    progress(f"{method}: {count:,} requests at {rate:,.0f} events/s")
    outcome = methods.measure(method, count, rate, _seconds(options))
    _tell(outcome)
    return outcome


def _tell(outcome: Outcome) -> None:
    progress(f"  {outcome.problem or f'{outcome.mean:.1f} ms'}, {outcome.delivered:,.0f} deliveries/s")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the parts that were asked for; print and write each one's table."""
    asked = _parser().parse_args(arguments)
    usual = Options(0.25, 1, quick=True) if asked.quick else Options(rounds=1)
    options = Options(asked.seconds or usual.seconds, 1, asked.quick)
    parts = asked.part or [part for part in PARTS if part != "spark" or not asked.quick]
    for part in parts:
        try:
            table = PARTS[part](options)
        except RuntimeError as error:
            print_error(f"streams, {part}: {error}")
            return 1
        print(as_text(table), end="\n\n", flush=True)
        window = Options(round(_seconds(options), 2), 1, asked.quick)
        files = write(asked.output, table.title, table, window)
        files += update_page(table.title, table, window) if asked.page else []
        print("  wrote " + ", ".join(map(str, files)), file=sys.stderr)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        prog="scripts/bench streams",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--part", action="append", choices=list(PARTS), help="one part; may be repeated (default: all)"
    )
    parser.add_argument("--quick", action="store_true", help="short and small; without Spark unless named")
    parser.add_argument("--seconds", type=float, help="a quarter of each measurement's time (default: 0.8)")
    parser.add_argument("--rounds", type=int, help="accepted as for other benchmarks; each point has one")
    parser.add_argument("--output", type=Path, default=Path("build/bench"), help="folder for JSON and plots")
    parser.add_argument("--page", action="store_true", help="write docs/performance.md, too")
    return parser
