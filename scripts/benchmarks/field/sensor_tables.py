"""What the loads of sensors gave, as rows, checks, a table for a page, and lines for a person."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.field.trial import Kept, Load
from benchmarks.frame import Check, Row, figure

BUSY = 0.2
"""The share of the time without a core from which on a load is marked."""
LAG, ANSWER = 500.0, 250.0
"""Milliseconds at the wanted rate: the p95 of lag, and of answers."""


def rows_of(load: Load) -> tuple[Row, ...]:
    """The figures of a load, each as a row."""
    values = {
        "readings/s": load.counted / load.schedule.seconds,
        "CPU µs per reading": load.cost,
        "CPU of the node, %": 100 * load.cpu / load.seconds,
        "lag of results, p50, ms": load.lag.p50,
        "lag of results, p95, ms": load.lag.p95,
        "lag of results, max, ms": load.lag.longest,
        "memory at the end, MB": load.samples[-1].memory if load.samples else 0.0,
        "commits per 100 readings": 100 * load.commits / max(1, load.counted),
        "longest stall, ms": 1000 * load.stall,
    }
    if load.has_answers:
        values["answer, p95, ms"] = load.answers.p95
    return tuple(Row(f"{load.name} · {name}", value) for name, value in values.items())


def checks_of(steady: Sequence[Load], kept: Sequence[tuple[Sequence[Load], Kept]]) -> tuple[Check, ...]:
    """Nothing is lost, each result is right, and lag stays small at the wanted rate."""
    judged = [load.judged for load in steady]
    lost = [float(abs(load.lost) + load.sent - load.accepted) for load in steady]
    missing = [
        float(abs(sum(load.counted for load in loads) - each.readings) + each.readings - each.keys)
        for loads, each in kept
    ]
    right = tuple(100 * each["right"] / max(1, each["expected"]) for each in judged)
    return (
        Check("readings lost between answer, counter and log", tuple(lost), 0, "", at_most=True),
        Check("readings that the history lacks or has twice", tuple(missing), 0, "", at_most=True),
        Check("results with all readings of their window", right, 100, "%"),
        Check("lag of results, p95", tuple(load.lag.p95 for load in steady), LAG, "ms", at_most=True),
    )


def body_of(loads: Sequence[Load]) -> str:
    """A line for each load."""
    head = ("", "readings/s", "results", "lag p50 / p95 / max, ms", "answer p50 / p95 / max, ms",
            "CPU µs per reading", "CPU, %", "memory, MB", "longest stall, ms", "")  # fmt: skip
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(_cells(load))} |" for load in loads)])


def _cells(load: Load) -> tuple[str, ...]:
    judged, samples = load.judged, load.samples
    memory = f"{samples[0].memory:,.0f} → {samples[-1].memory:,.0f}" if samples else ""
    lags, answers = (
        f"{each.p50:,.0f} / {each.p95:,.0f} / {each.longest:,.0f}" for each in (load.lag, load.answers)
    )
    return (
        load.name,
        f"{load.counted / load.schedule.seconds:,.0f}",
        f"{judged['right']:,} of {judged['expected']:,}",
        lags,
        answers if load.has_answers else "",
        figure(load.cost),
        f"{100 * load.cpu / load.seconds:.0f}",
        memory,
        f"{1000 * load.stall:.0f}",
        load.problem,
    )


def told(load: Load) -> str:
    """One load for a person, while others go on."""
    judged = load.judged
    return (
        f"{load.name}: {load.counted:,} of {load.sent:,} readings, lost {load.lost};"
        f" {judged['right']:,} of {judged['expected']:,} results right, lag {load.lag};"
        f" answers {load.answers}; {load.cost:.1f} µs CPU per reading; {load.problem or 'sustained'}"
    )


def notes_of(loads: Sequence[Load]) -> tuple[str, ...]:
    """What a reader must know of the machine."""
    most = max((load.waited / load.seconds for load in loads), default=0.0)
    if most < BUSY:
        return ()
    return (f"busy machine: the node waited up to {most:.0%} of the time for a core; compare CPU times",)
