"""What the default matching engine is measured against: plain loops and scans, and packages from PyPI.

Each takes a workload of benchmarks.tools.content and gives a function from an event to the ids that match.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import rule_engine
import shapely
from rtree.index import Index

from benchmarks.tools.content import ATTRIBUTES, Workload
from hpwsn.matching.language.predicates import Event

Match = Callable[[Any], list[int]]


def range_loop(workload: Workload) -> Match:
    """Every subscription's (attribute, low, high) in turn, left at the first that does not hold."""
    subscriptions = list(enumerate(workload.plain))

    def match(event: Any) -> list[int]:
        found = []
        for number, predicates in subscriptions:
            for name, low, high in predicates:
                if not low <= event[name] <= high:
                    break
            else:
                found.append(number)
        return found

    return match


def equality_loop(workload: Workload) -> Match:
    """Every subscription's (attribute, value) in turn, left at the first that does not hold."""
    subscriptions = list(enumerate(workload.plain))

    def match(event: Any) -> list[int]:
        found = []
        for number, predicates in subscriptions:
            for name, value in predicates:
                if event[name] != value:
                    break
            else:
                found.append(number)
        return found

    return match


def _columns(workload: Workload) -> tuple[Any, Any]:
    """The bounds of all subscriptions by attribute, infinite where one does not ask."""
    shape = (len(ATTRIBUTES), len(workload.plain))
    low, high = np.full(shape, -np.inf), np.full(shape, np.inf)
    place = {name: number for number, name in enumerate(ATTRIBUTES)}
    for number, predicates in enumerate(workload.plain):
        for name, least, most in predicates:
            low[place[str(name)], number], high[place[str(name)], number] = least, most
    return low, high


def numpy_scan(workload: Workload) -> Match:
    """All bounds compared, attribute by attribute, in arrays that are used again."""
    low, high = _columns(workload)
    holds, holds_here = np.empty(low.shape[1], np.bool_), np.empty(low.shape[1], np.bool_)

    def match(event: Any) -> list[int]:
        holds.fill(True)
        for number, name in enumerate(ATTRIBUTES):
            np.less_equal(low[number], event[name], out=holds_here)
            np.logical_and(holds, holds_here, out=holds)
            np.greater_equal(high[number], event[name], out=holds_here)
            np.logical_and(holds, holds_here, out=holds)
        return np.flatnonzero(holds).tolist()

    return match


def duckdb_scan(workload: Workload) -> Match:
    """A table with two columns for each attribute, and one prepared query on one thread."""
    low, high = _columns(workload)
    connection = duckdb.connect(config={"threads": 1})
    bounds = {f"{name}_low": low[number] for number, name in enumerate(ATTRIBUTES)}
    bounds |= {f"{name}_high": high[number] for number, name in enumerate(ATTRIBUTES)}
    names = ", ".join(f"unnest(${name}) as {name}" for name in bounds)
    connection.execute("create table s as select unnest($id) as id, " + names,
                       {"id": np.arange(low.shape[1])} | bounds)  # fmt: skip
    where = " and ".join(f"{name}_low <= ${name} and ${name} <= {name}_high" for name in ATTRIBUTES)

    def match(event: Any) -> list[int]:
        found = connection.execute("select id from s where " + where, event).fetchnumpy()
        ids: list[int] = found["id"].tolist()
        return ids

    return match


def rules(workload: Workload) -> Match:
    """A compiled rule for each subscription."""
    compiled = [
        rule_engine.Rule(" and ".join(f"{name} >= {low!r} and {name} <= {high!r}" for name, low, high in one))
        for one in workload.plain
    ]
    return lambda event: [number for number, rule in enumerate(compiled) if rule.matches(event)]


def _bounds_and_words(workload: Workload) -> tuple[list[Any], list[frozenset[str]]]:
    bounds = [one[0] for one in workload.plain]
    return bounds, [frozenset(map(str, one[1])) for one in workload.plain]


def str_tree(workload: Workload) -> Match:
    """Shapely's packed tree of rectangles, then the words of each that is around the point."""
    bounds, words = _bounds_and_words(workload)
    tree = shapely.STRtree(shapely.box(*np.array(bounds).T))

    def match(event: Event) -> list[int]:
        present = frozenset(event["keywords"])  # type: ignore[arg-type]
        around = tree.query(shapely.Point(event["longitude"], event["latitude"])).tolist()
        return [number for number in around if words[number] <= present]

    return match


def r_tree(workload: Workload) -> Match:
    """The tree of libspatialindex, loaded in bulk, then the words."""
    bounds, words = _bounds_and_words(workload)
    index = Index((number, each, None) for number, each in enumerate(bounds))

    def match(event: Any) -> list[int]:
        present = frozenset(event["keywords"])
        x, y = event["longitude"], event["latitude"]
        return [number for number in index.intersection((x, y, x, y)) if words[number] <= present]

    return match
