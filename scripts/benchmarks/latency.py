"""Latency: from the time at which a notification was due to be sent to its receipt, at fixed rates."""

import asyncio
import itertools
import math
import time
from collections.abc import Iterable, Sequence

from benchmarks.frame import Options, Row, Table, take_turns
from benchmarks.report import as_tables, cell
from benchmarks.tools.arena import COMMIT, FLOOR, LIMIT, NONE, SPYNE, Arena, Candidate
from benchmarks.tools.cores import pinning_notes, settle
from benchmarks.tools.load import CONNECTIONS, Flow, connect
from benchmarks.tools.messages import envelope, request
from benchmarks.tools.sink import Arrivals

RATES = (500, 4_000)
PERCENTILES = (50.0, 99.0, 99.9, 100.0)
NAMES = (LIMIT, NONE, COMMIT, FLOOR, SPYNE)
PATIENCE = 5.0
"""Seconds to wait for late notifications; a missing one counts as received at the end of them."""
WARM = 0.1
"""Seconds at the start that are not counted: connections are opened in them."""
DIGITS = 9

_runs = itertools.count(1)


def run(options: Options) -> Table:
    """Every candidate at every rate, in turns; a percentile is the median of its rounds."""
    with Arena(options) as arena:
        candidates = arena.start(*NAMES, consumers=1, tally=lambda: Arrivals(time.perf_counter))
        groups = [group for rate in RATES for group in _measure(arena, candidates, rate, options)]
    rows = [row for group in groups for row in group]
    return Table("latency", "ms", tuple(groups), (), pinning_notes(), body=body_of(rows))


def body_of(rows: Iterable[Row]) -> str:
    """A table for each rate, with a line for each candidate and a column for each percentile but p99.9."""
    return as_tables(
        (f"ms at {rate}/s", name, place, cell(row))
        for row in rows
        for place, _, rest in (row.name.partition(" at "),)
        for rate, _, name in (rest.partition("/s, "),)
        if place != "p99.9"
    )


def _measure(
    arena: Arena, candidates: Sequence[Candidate], rate: int, options: Options
) -> list[tuple[Row, ...]]:
    found: dict[str, list[list[float]]] = {each.name: [] for each in candidates}

    def sample(each: Candidate) -> float:
        times = arena.load.run(_at_rate(each, rate, options.seconds))
        settle(each.pid)
        found[each.name].append([_percentile(times, percent) for percent in PERCENTILES])
        return times[0]

    take_turns(
        {each.name: lambda each=each: sample(each) for each in candidates},  # type: ignore[misc]
        options.rounds,
        f"{rate:,} a second",
    )
    return [
        tuple(
            Row.of(f"{_place(percent)} at {rate:,}/s, {name}", [seen[index] for seen in taken])
            for name, taken in found.items()
        )
        for index, percent in enumerate(PERCENTILES)
    ]


def _place(percent: float) -> str:
    return "max" if percent == 100 else f"p{percent:g}"


def _percentile(times: Sequence[float], percent: float) -> float:
    return times[max(0, math.ceil(len(times) * percent / 100) - 1)]


async def _at_rate(candidate: Candidate, rate: int, seconds: float) -> list[float]:
    """Milliseconds of each notification, sorted; each is due at its time whatever became of those before."""
    arrivals = candidate.tallies[0]
    assert isinstance(arrivals, Arrivals)
    arrivals.times.clear()
    flow = Flow([b""], 1, ())
    flow.hold()
    await connect(candidate.url, flow)
    warm, count = int(rate * WARM), int(rate * (WARM + seconds)) + 1
    # Numbers are never used again, so that a straggler cannot be taken for a later one.
    first = next(_runs) * 10 ** (DIGITS - 3)
    began = await _send(flow, candidate.url, rate, first, count)
    end = time.perf_counter() + PATIENCE
    while len(arrivals.times) < count and time.perf_counter() < end and not flow.failure:  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    late = time.perf_counter()
    flow.finish()
    return sorted(1e3 * (arrivals.times.get(first + n, late) - began - n / rate) for n in range(warm, count))


async def _send(flow: Flow, url: str, rate: int, first: int, count: int) -> float:
    """Send each at its time; the time that the first was due."""
    before, after = _request(url)
    began = time.perf_counter() + 0.01
    sent = 0
    while sent < count:
        due = min(count, int((time.perf_counter() - began) * rate) + 1)
        for number in range(sent, due):
            data = b"%s%0*d%s" % (before, DIGITS, first + number, after)
            flow.publishers[number % CONNECTIONS].transport.write(data)
        sent = max(sent, due)
        await asyncio.sleep(max(0.0, began + sent / rate - time.perf_counter()))
    return began


def _request(url: str) -> tuple[bytes, bytes]:
    """What is sent before and after the number."""
    mark = b"n" * DIGITS
    content = b'<m:event xmlns:m="urn:example:sensors"><m:n>%s</m:n><m:value>21.5</m:value></m:event>' % mark
    before, after = request(url, envelope(content=content)).split(mark)
    return before, after
