"""The outcomes of stream services as rows for JSON and as tables for the page.

A load that was not sustained has no latency: its row says why instead, and how much was delivered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from benchmarks.frame import Row, figure
from benchmarks.report import as_tables
from benchmarks.services.outcomes import Outcome
from benchmarks.tools.curves import Series, as_curves

Cell = tuple[str, str, str, str]
QUANTITIES: dict[str, Callable[[Outcome], float]] = {
    "mean latency, ms": lambda one: one.mean,
    "CPU of the node, %": lambda one: one.cpu["node"],
    "CPU of services and consumers, %": lambda one: sum(one.cpu.values()) - one.cpu["node"],
    "memory of node and services, MB": lambda one: one.memory["node"] + one.memory.get("services", 0.0),
    "network, MB/s": lambda one: one.network,
}
"""What the four methods are compared by: the paper's figure 8."""


def rows_of(prefix: str, outcome: Outcome) -> tuple[Row, ...]:
    """Rows of one outcome; values are positive, as a logarithmic plot needs them."""
    name = f"{prefix} · {outcome.requests} requests · {outcome.rate:,.0f} events/s"
    note = f"{outcome.delivered:,.0f} of {outcome.offered:,.0f} deliveries/s"
    if not outcome.sustained:
        return (Row(f"{name} · not sustained, deliveries/s", _positive(outcome.delivered), outcome.problem),)
    rows = [Row(f"{name} · mean latency, ms", _positive(outcome.mean), note)]
    rows.append(Row(f"{name} · p99 latency, ms", _positive(outcome.p99)))
    rows += [Row(f"{name} · CPU of {part}, %", _positive(used)) for part, used in outcome.cpu.items()]
    rows += [Row(f"{name} · memory of {part}, MB", _positive(used)) for part, used in outcome.memory.items()]
    return (*rows, Row(f"{name} · network, MB/s", _positive(outcome.network)))


def _positive(value: float) -> float:
    return max(value, 0.01)


def latency_picture(title: str, outcomes: Iterable[Outcome]) -> dict[str, str]:
    """Mean and p99 latency over the number of requests, a curve for each rate that was sustained."""
    series: Series = {}
    for one in outcomes:
        if one.sustained:
            for name, value in (("mean", one.mean), ("p99", one.p99)):
                line = series.setdefault(f"{name} at {one.rate:,.0f} events/s", [])
                line.append((one.requests, _positive(value)))
    return {"curves": as_curves(title, series, "ms", "requests")} if series else {}


def method_pictures(rate: float, outcomes: Mapping[str, Sequence[Outcome]]) -> dict[str, str]:
    """The paper's figure 8 at one rate: each quantity over the requests, with a curve for each method."""
    found = {}
    for quantity, value in QUANTITIES.items():
        series: Series = {
            method: points
            for method, each in outcomes.items()
            if (points := [(float(one.requests), _positive(value(one))) for one in each if one.sustained])
        }
        title, _, unit = quantity.rpartition(", ")
        name = f"{title.split()[-1]}-{rate:.0f}"
        if series:
            found[name] = as_curves(f"{title} at {rate:,.0f} events/s", series, unit, "requests")
    return found


def latency_table(title: str, outcomes: Iterable[Outcome], parts: Sequence[str]) -> str:
    """A line for each number of requests and each rate that was tried."""
    return as_tables(cell for outcome in outcomes for cell in _latency_line(title, outcome, parts))


def _latency_line(title: str, outcome: Outcome, parts: Sequence[str]) -> Iterator[Cell]:
    line = f"{outcome.requests:,} at {outcome.rate:,.0f} events/s"
    yield title, line, "deliveries/s", _deliveries(outcome)
    yield title, line, "mean, ms", _latency(outcome)
    yield title, line, "p99, ms", figure(outcome.p99) if outcome.sustained else ""
    for part in parts:
        yield title, line, f"CPU {part}, %", figure(outcome.cpu[part])
    for part in parts:
        yield title, line, f"MB {part}", figure(outcome.memory[part])
    yield title, line, "network, MB/s", figure(outcome.network)


def _deliveries(outcome: Outcome) -> str:
    if outcome.sustained:
        return f"{outcome.offered:,.0f}"
    return f"{outcome.delivered:,.0f} of {outcome.offered:,.0f}"


def _latency(outcome: Outcome) -> str:
    return figure(outcome.mean) if outcome.sustained else f"not sustained: {outcome.problem}"


def method_tables(rate: float, outcomes: Mapping[str, Sequence[Outcome]], counts: Sequence[int]) -> str:
    """The paper's figure 8 (a) to (d): a table for each quantity, with a line for each method.

    A method has no value for a number of requests that it does not sustain, and none beyond.
    """
    cells: list[Cell] = []
    for quantity, value in QUANTITIES.items():
        title = f"{quantity}, at {rate:,.0f} events/s"
        for method, found in outcomes.items():
            by_count = {one.requests: one for one in found}
            for count in counts:
                one = by_count.get(count)
                text = "–" if one is None or not one.sustained else figure(value(one))
                cells.append((title, method, f"{count:,}", text))
    return as_tables(cells)


def stopped_lines(rate: float, outcomes: Mapping[str, Sequence[Outcome]]) -> Iterator[str]:
    """Where each method stopped, and why."""
    for method, found in outcomes.items():
        if found and not found[-1].sustained:
            one = found[-1]
            yield (
                f"{method} at {rate:,.0f} events/s stopped at {one.requests:,} requests: {one.problem} "
                f"({one.delivered:,.0f} of {one.offered:,.0f} deliveries/s)"
            )


def memory_lines(rate: float, outcomes: Sequence[Outcome]) -> Iterator[str]:
    """What one process of a service takes, for the greatest number that was sustained."""
    for one in [each for each in outcomes if each.sustained][-1:]:
        each = one.memory["services"] / one.requests
        yield f"at {rate:,.0f} events/s and {one.requests:,} requests, a service's process has {each:.1f} MB"


def needed_table(kinds: Mapping[str, int], needed: Mapping[str, int]) -> str:
    """The paper's tables 4 and 5: kinds of request, and services that each method needs."""
    further = {"this": "no", "one service per request": "no", "by topic": "yes", "by content": "partly"}
    cells: list[Cell] = []
    for method, count in needed.items():
        cells.append(("method", method, "services or topics", f"{count}"))
        cells.append(("method", method, "consumers process further", further[method]))
    both = " and ".join(f"{count} of {name}" for name, count in kinds.items())
    return f"{as_tables(cells)}\n\nKinds of request, by their attributes: {both}."
