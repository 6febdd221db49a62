"""Matching: the default engine beside plain loops, scans and packages from PyPI; CPU time on one core."""

from __future__ import annotations

import gc
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import cycle, islice
from multiprocessing import get_context
from typing import Any

import psutil

from benchmarks.frame import Check, Options, Row, Table, progress, take_turns
from benchmarks.tools import content, rivals, topic_filters
from benchmarks.tools.content import PASSING, Workload
from benchmarks.tools.curves import pictures_of, tables_of
from benchmarks.tools.rivals import Match
from hpwsn.matching.engine.default_engine import DefaultEngine, fast_kernel
from hpwsn.matching.engine.kernels import match_numpy
from hpwsn_client.wsn.topics.topic_expressions import Topic

OURS = "HPwsn"
LOOP, SCAN = "Python loop", "numpy scan"
CHANGES = 2000
"""Removals and additions in a sample."""

KINDS: dict[str, Callable[[int], Workload]] = {
    "ranges": lambda size: content.ranges(size, PASSING["0 %"], events=1),
    "equalities": lambda size: content.equalities(size, events=1),
    "places and words": lambda size: content.places(size, events=1),
}
NAIVE_TARGETS = {"ranges": {10_000: 150, 100_000: 500}, "equalities": {10_000: 100, 100_000: 400}}
RULES_AT_MOST, R_TREE_AT_MOST = 1_000, 100_000
"""What takes minutes with more subscriptions is not asked to hold more."""


class Report:
    """The groups and checks so far."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.groups: list[tuple[Row, ...]] = []
        self.checks: list[Check] = []

    def contest(
        self, what: str, candidates: Mapping[str, Match], events: Sequence[Any], note: str = ""
    ) -> dict[str, Row]:
        """All candidates on the same events, after their answers were found to be the same."""
        for event in events[:3]:
            answers = {name: sorted(match(event)) for name, match in candidates.items()}
            if differing := [name for name in answers if answers[name] != answers[OURS]]:
                raise AssertionError(f"{what}: {differing[0]} and {OURS} differ on {event}")
        found = sum(len(candidates[OURS](event)) for event in events[:20]) / len(events[:20])
        seconds = self.options.seconds / 5
        samplers = {name: partial(_sample, match, events, seconds) for name, match in candidates.items()}
        # One pass of the Python loop over a million takes seconds, and says as much as five.
        rounds = min(self.options.rounds, 2) if what.startswith("1,000,000") else self.options.rounds
        samples = take_turns(samplers, rounds, what)
        notes = {OURS: "; ".join(filter(None, (f"{found:,.1f} matches", note)))}
        rows = {name: Row.of(f"{what}: {name}", samples[name], notes.get(name, "")) for name in candidates}
        self.groups.append(tuple(rows.values()))
        return rows

    def check(self, what: str, slow: Row, fast: Row, target: float) -> None:
        """How many times faster than the first the second is."""
        self.checks.append(Check.ratio(what, slow, fast, target))


def run(options: Options) -> Table:
    """Ranges, equalities, texts, places, topics and changes, over the number of subscriptions."""
    # The collector would walk over millions of subscriptions; it is called where they are done with.
    gc.disable()
    report = Report(options)
    sizes = (1_000, 10_000) if options.quick else (1_000, 10_000, 100_000, 1_000_000)
    for count in sizes:
        _ranges(report, count)
        _equalities(report, count)
        _places(report, count)
        if count <= 100_000:
            _topics(report, count)
            _changes(report, count)
    gc.enable()
    rows = [row for group in report.groups for row in group]
    notes = (
        f"CPU time on one core; candidates take turns and return the ids of all matches. {_adding(rows)}",
        *(() if options.quick else (_memory(100_000),)),
        "in brackets: matches per event, or updates per second",
        f"{OURS} runs with numba (the extra `fast`), {OURS} numpy without it",
        "STRtree is built once: it supports neither insertion nor removal",
    )
    return Table(
        "matching",
        "µs per event",
        tuple(report.groups),
        tuple(report.checks),
        notes,
        body=tables_of(rows),
        pictures=pictures_of(rows),
    )


def _adding(rows: Sequence[Row]) -> str:
    """A note of the CPU time to add one subscription, over all kinds and numbers."""
    taken = [int(found[1]) for row in rows if (found := re.search(r"(\d+) µs to add", row.note))]
    return f"To add a subscription takes {min(taken)} to {max(taken)} µs"


def _ranges(report: Report, count: int) -> None:
    """Ten of twenty attributes, at every ratio of matches."""
    for ratio, passing in PASSING.items():
        gc.collect()
        workload = content.ranges(count, passing)
        engine, taking = build(workload)
        candidates = {LOOP: rivals.range_loop(workload), SCAN: rivals.numpy_scan(workload)}
        candidates |= {OURS: engine.match, f"{OURS} numpy": with_numpy(engine)}
        if ratio == "0 %":
            candidates["duckdb scan"] = rivals.duckdb_scan(workload)
        if ratio == "0 %" and count <= RULES_AT_MOST:
            candidates["rule-engine"] = rivals.rules(workload)
        what = f"{count:,} ranges, {ratio}"
        rows = report.contest(what, candidates, workload.events, taking)
        _range_checks(report, what, count, ratio, rows)


def _range_checks(report: Report, what: str, count: int, ratio: str, rows: Mapping[str, Row]) -> None:
    if ratio == "0 %" and count in NAIVE_TARGETS["ranges"]:
        target = NAIVE_TARGETS["ranges"][count]
        report.check(f"{what}: vs {LOOP}", rows[LOOP], rows[OURS], target)
    elif ratio in ("3 %", "36 %"):
        report.check(f"{what}: vs {SCAN}", rows[SCAN], rows[OURS], 1)
        report.check(f"{what}: without numba, vs {SCAN}", rows[SCAN], rows[f"{OURS} numpy"], 1)


def _equalities(report: Report, count: int) -> None:
    for kind, texts in (("equalities", False), ("texts", True)):
        gc.collect()
        workload = content.equalities(count, texts=texts)
        engine, taking = build(workload)
        candidates = {LOOP: rivals.equality_loop(workload), OURS: engine.match}
        what = f"{count:,} {kind}"
        rows = report.contest(what, candidates, workload.events, taking)
        if target := NAIVE_TARGETS.get(kind, {}).get(count):
            report.check(f"{what}: vs {LOOP}", rows[LOOP], rows[OURS], target)


def _places(report: Report, count: int) -> None:
    gc.collect()
    workload = content.places(count)
    engine, taking = build(workload)
    candidates = {"shapely STRtree and sets": rivals.str_tree(workload), OURS: engine.match}
    if count <= R_TREE_AT_MOST:
        candidates["rtree and sets"] = rivals.r_tree(workload)
    what = f"{count:,} places and words"
    rows = report.contest(what, candidates, workload.events, taking)
    if count >= 100_000:
        report.check(f"{what}: vs STRtree", rows["shapely STRtree and sets"], rows[OURS], 10)


def _topics(report: Report, count: int) -> None:
    paths = topic_filters.topics(200)
    parsed = {"/".join(path): Topic.parse(":".join(path)) for path in paths}
    paho, tree = topic_filters.paho(count), topic_filters.tree(count, list(parsed.values()))
    events = list(parsed.items())
    candidates: dict[str, Match] = {"paho-mqtt": lambda e: paho(e[0]), OURS: lambda e: tree(e[1])}
    what = f"{count:,} topic filters"
    rows = report.contest(what, candidates, events)
    if count >= 10_000:
        report.check(f"{what}: vs paho-mqtt", rows["paho-mqtt"], rows[OURS], 2)


def _changes(report: Report, count: int) -> None:
    """Removes a request and adds another, one after another, while all the rest stay."""
    rows = []
    for kind, make in KINDS.items():
        workload = make(count)
        turnover = _Turnover(build(workload)[0], workload)
        what = f"{count:,} updates, {kind}: remove and add"
        samples = take_turns({kind: turnover.sample}, report.options.rounds, what)[kind]
        rows.append(Row.of(what, samples, f"{1e6 / Row.of('', samples).value:,.0f}/s"))
        if count == 100_000:
            rates = tuple(1e6 / each for each in samples)
            report.checks.append(Check(f"{what}, pairs", rates, 20_000, "/s"))
    report.groups.append(tuple(rows))


class _Turnover:
    """Requests that take each other's place."""

    def __init__(self, engine: DefaultEngine, workload: Workload) -> None:
        self._engine = engine
        self._next = cycle(list(enumerate(reversed(workload.requests))))

    def sample(self) -> float:
        """µs for one removal and one addition."""
        changes = list(islice(self._next, CHANGES))
        with _uncollected():
            start = time.process_time()
            for number, request in changes:
                self._engine.remove(number)
                self._engine.add(number, request)
            return (time.process_time() - start) / CHANGES * 1e6


def build(workload: Workload) -> tuple[DefaultEngine, str]:
    """The default engine with all requests, and what it takes of memory and of time."""
    progress(f"taking {len(workload.requests):,} requests")
    engine = DefaultEngine(fast_kernel())
    with _uncollected():
        start = time.process_time()
        for number, request in enumerate(workload.requests):
            engine.add(number, request)
        taken = (time.process_time() - start) / len(workload.requests) * 1e6
    return engine, f"{taken:.0f} µs to add"


def _memory(count: int) -> str:
    """A note of what the engine takes, each kind in a process of its own, where nothing was freed before."""
    with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        taken = {kind: pool.apply(resident, (kind, count)) for kind in KINDS}
    each = ", ".join(f"{kind} {size:,.0f} bytes" for kind, size in taken.items())
    return f"memory per subscription at {count:,}, without the predicates: {each}"


def resident(kind: str, count: int) -> float:
    """Bytes for each request of a kind."""
    workload, process = KINDS[kind](count), psutil.Process()
    DefaultEngine(fast_kernel()).match({})
    before = process.memory_info().rss
    engine, _ = build(workload)
    taken: int = process.memory_info().rss - before
    return taken / len(engine)


def with_numpy(engine: DefaultEngine) -> Match:
    """The same engine as it is where numba is not installed."""

    def match(event: Any) -> list[int]:
        compiled, engine.kernel = engine.kernel, match_numpy
        try:
            return engine.match(event)
        finally:
            engine.kernel = compiled

    return match


def _sample(match: Match, events: Sequence[Any], seconds: float) -> float:
    """µs of CPU for one event."""
    count, number, endless = 0, 1, cycle(events)
    with _uncollected():
        start = time.process_time()
        while (taken := time.process_time() - start) < seconds:
            for event in islice(endless, number):
                match(event)
            count += number
            number = min(2 * number, 256)
    return taken / count * 1e6


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without the collector, which would walk over the subscriptions of all candidates at one's expense."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
