"""Delivery modes: polling, long connections and push over the event rate, and which of them pays where.

A topic has a few consumers. The node's CPU time for one delivery is what the node uses with consumers, less
what it uses for the same events without any, divided by the deliveries. Consumers poll once a second. Push is
WS-Notification's: the node keeps its connection to a consumer, unless the consumer closes it after each
answer, so that every POST opens a new one. While a POST is under way, the events that follow wait, and the
next POST takes them together.
"""

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import uvloop

from benchmarks.frame import Options, Row, Table, figure, progress
from benchmarks.report import as_tables, with_pictures
from benchmarks.services.feed import Feed
from benchmarks.services.load_processes import Consumers
from benchmarks.services.mode_process import MODES
from benchmarks.services.outcomes import problem_of
from benchmarks.services.random_requests import GET_ANPR
from benchmarks.tools.cores import on_load_core, pinning_notes, settle
from benchmarks.tools.curves import Series, as_curves
from benchmarks.tools.nodes import start, stop
from benchmarks.tools.raw_load import cpu_seconds

RATES = (1, 10, 100, 1000, 10_000)
QUICK_RATES = (200,)
CONSUMERS = 4
INTERVAL = 1.0
GRACE = 1.0
LEAST = 20
"""Events of a measurement, if they come within its longest time."""
SHORTEST, LONGEST = 4.0, 12.0
DRAIN = 60.0
"""Seconds that a backlog may take to be delivered."""
IDLE = "no consumers"
NOISE = 0.01
"""Stands for a value that is not above that without consumers."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """CPU µs of the node for a delivery, and the mean latency in ms; `problem` if it was not sustained."""

    cpu: float
    mean: float
    problem: str = ""


QUANTITIES: dict[str, Callable[[Delivered], float]] = {
    "CPU µs of the node for a delivery": lambda one: one.cpu,
    "mean latency, ms": lambda one: one.mean,
}


def run(options: Options) -> Table:
    """All modes at all rates."""
    rates = QUICK_RATES if options.quick else RATES
    idle = dict(_used(IDLE, rates, options))
    found: dict[int, dict[str, Delivered]] = {rate: {} for rate in rates}
    for mode in MODES:
        for rate, used in _used(mode, rates, options):
            each = 1e6 * (used.cpu - idle[rate].cpu) / (CONSUMERS * rate)
            found[rate][mode] = Delivered(max(each, NOISE), max(used.mean, NOISE), used.problem)
    groups = tuple(
        tuple(row for mode, one in modes.items() for row in _rows(rate, mode, one))
        for rate, modes in found.items()
    )
    about = f"{CONSUMERS} consumers; polls every {INTERVAL:g} s, each of up to 1,000 events"
    notes = (*pinning_notes(), about, *verdicts(found))
    pictures = pictures_of(found)
    body = with_pictures(body_of(found), "delivery-modes", pictures)
    return Table("delivery-modes", "mixed units", groups, (), notes, body=body, pictures=pictures)


def pictures_of(found: Mapping[int, Mapping[str, Delivered]]) -> dict[str, str]:
    """The CPU time over the rate, a curve for each mode; rates that a mode does not sustain are left out."""
    series: Series = {}
    for rate, modes in found.items():
        for mode, one in modes.items():
            if not one.problem:
                series.setdefault(mode, []).append((rate, one.cpu))
    return {"cpu": as_curves("CPU of the node for a delivery", series, "µs", "events/s")} if series else {}


def _used(mode: str, rates: Sequence[int], options: Options) -> Iterator[tuple[int, Delivered]]:
    """For each rate the node's CPU time, here in seconds a second, and what the consumers got."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="hpwsn-bench-"))
        node, base = start(Path(folder) / "data", ["log.level=error"], pinned=True)
        stack.callback(stop, node, kill=True)
        stack.enter_context(on_load_core())
        runner = stack.enter_context(asyncio.Runner(loop_factory=uvloop.new_event_loop))
        runner.run(Feed(base, 100, [], raw=False).send(0.2))
        consumers = None
        if mode != IDLE:
            port = urlsplit(base).port or 0
            given = Consumers.by_mode(mode, port, GET_ANPR.topic, CONSUMERS, INTERVAL)
            consumers = stack.enter_context(given)
        for rate in rates:
            progress(f"{mode}: {rate:,} events/s")
            settle(node.pid)
            # The feed serves two topics in turn, and consumers follow one of them.
            feed = Feed(base, 2 * rate, [], raw=False)
            yield rate, _observed(runner, feed, node.pid, consumers, _seconds(rate, options))


def _seconds(rate: int, options: Options) -> float:
    return max(0.2, 2 * options.seconds) if options.quick else min(LONGEST, max(SHORTEST, LEAST / rate))


def _observed(
    runner: asyncio.Runner, feed: Feed, node: int, consumers: Consumers | None, seconds: float
) -> Delivered:
    if consumers:
        consumers.clear()
    before, began = cpu_seconds(node), time.perf_counter()
    sent = runner.run(feed.send(seconds))
    cpu = (cpu_seconds(node) - before) / (time.perf_counter() - began)
    if not consumers:
        return Delivered(cpu, 0.0)
    posts = (sent.events // feed.together + 1) // 2
    wanted = CONSUMERS * posts * feed.together
    consumers.wait_for(wanted, sent.last / 1e6 + INTERVAL + GRACE)
    stats = consumers.stats(sent.first, sent.last)
    problem = problem_of(stats, wanted=wanted, sent=sent.events, accepted=feed.accepted)
    if problem:
        # The next rate begins without a backlog.
        consumers.wait_for(wanted, time.time() + DRAIN)
    return Delivered(cpu, stats["mean"], problem)


def _rows(rate: int, mode: str, one: Delivered) -> Iterator[Row]:
    name = f"{rate} events/s · {mode}"
    yield Row(f"{name} · CPU µs of the node for a delivery", one.cpu, one.problem)
    yield Row(f"{name} · mean latency, ms", one.mean, one.problem)


def body_of(found: Mapping[int, Mapping[str, Delivered]]) -> str:
    """A table of the CPU time and one of the latency, with a line for each mode."""
    cells = []
    for title, value in QUANTITIES.items():
        for rate, modes in found.items():
            for mode, one in modes.items():
                text = f"not sustained: {one.problem}" if one.problem else _shown(value(one))
                cells.append((title, mode, f"{rate:,} events/s", text))
    return as_tables(cells)


def _shown(value: float) -> str:
    return figure(value) if value > NOISE else "less than the noise"


def verdicts(found: Mapping[int, Mapping[str, Delivered]]) -> Iterator[str]:
    """The mode with the least of each quantity, by rate; a mode that does not sustain a rate is none."""
    for title, value in QUANTITIES.items():
        rates: dict[str, list[str]] = {}
        for rate, modes in found.items():
            held = {mode: value(one) for mode, one in modes.items() if not one.problem}
            if held:
                rates.setdefault(min(held, key=held.__getitem__), []).append(f"{rate:,}")
        each = "; ".join(f"{mode} at {', '.join(some)} events/s" for mode, some in rates.items())
        yield f"least {title}: {each}"
