"""The lines of a picture: for each quantity with a unit, those of its sensors, thinned while they are read.

A picture cannot show more than some points, and a year of readings does not fit into memory. So lines that
get too many points keep the lowest and the highest value of each of some equal times: what is drawn looks
the same. Of too many quantities or sensors, the first ones by name are drawn, and the others counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import TypeVar

import numpy as np
import pyarrow as pa

from hpwsn.sensors.history.history_query import HistoryBusy, HistoryQuery, Picture, Row, Snapshot
from hpwsn.sensors.history.history_rows import (
    FIXED,
    quantities_of,
    reading_tables,
    result_table,
    rows_of,
)
from hpwsn.sensors.history.page_search import SLICE, files_for, means
from hpwsn.sensors.history.row_groups import Chosen, OpenFiles, selected, slices
from hpwsn.sensors.readings.reading import Reading

MOST_PANELS = 6
"""Quantities, or units of a quantity, in one picture."""
MOST_LINES = 50
"""Sensors in one panel."""
BINS = 1000
"""Times of a line of which the lowest and the highest value are kept."""
MOST_POINTS = 4 * MOST_PANELS * MOST_LINES * BINS
"""Points in memory, beyond which lines are thinned."""
DRAWN_POINTS = 100_000
"""Points in a picture."""
WORK = 60.0
"""Seconds after which a query is too much for a picture."""

Key = tuple[str, str]
"""A quantity and its unit; without a unit, the text is empty."""
K = TypeVar("K", str, Key)
V = TypeVar("V")
Points = tuple[np.ndarray, np.ndarray]
"""Times in milliseconds, and values."""


@dataclass(slots=True)
class Panel:
    """The lines of one quantity by sensor, and the names of all its sensors, drawn or not."""

    lines: dict[str, list[Points]] = field(default_factory=dict)
    sensors: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Chart:
    """What a picture shows; lines are in the order of their times."""

    query: HistoryQuery
    panels: dict[Key, dict[str, Points]]
    sensors: dict[Key, int]
    """How many sensors each panel would have without the limit."""
    quantities: int
    """How many panels there would be without the limit."""


def collect(snapshot: Snapshot, picture: Picture) -> Chart:
    """The lines of a picture; HistoryBusy if there are too many rows."""
    series = Series(picture)
    for table in _tables(snapshot, picture):
        series.take(table)
    return series.chart()


class Series:
    """Takes tables of readings or results, in any order."""

    def __init__(self, picture: Picture) -> None:
        self._picture = picture
        self._unit_of: Callable[[str, str], str | None] = cache(picture.unit_of)
        self._panels: dict[Key, Panel] = {}
        self._keys: set[Key] = set()
        self._points = 0
        self._width = 1
        """The milliseconds of which a thinned line has two points."""

    def take(self, table: pa.Table) -> None:
        """Add the rows of a table."""
        times = table.column("time").cast(pa.int64()).to_numpy()
        if self._picture.query.virtual:
            self._take_results(table, times)
            return
        sensors = list(_by_sensor(table))
        for name in quantities_of(table.schema):
            if self._picture.quantity in (None, name):
                values = _values(table, name)
                for sensor, rows in sensors:
                    self._add((name, self._unit_of(sensor, name) or ""), sensor, times[rows], values[rows])
        self._thin_if_many()

    def _take_results(self, table: pa.Table, times: np.ndarray) -> None:
        """A result names its quantity and unit itself."""
        values = _values(table, "value")
        rows: dict[tuple[str, str, str], list[int]] = {}
        texts = (table.column(name).to_pylist() for name in ("sensor", "quantity", "unit"))
        for row, (sensor, quantity, unit) in enumerate(zip(*texts, strict=True)):
            if self._picture.quantity in (None, quantity):
                rows.setdefault((sensor, quantity or "", unit or ""), []).append(row)
        for (sensor, quantity, unit), some in rows.items():
            self._add((quantity, unit), sensor, times[some], values[some])
        self._thin_if_many()

    def _add(self, key: Key, sensor: str, times: np.ndarray, values: np.ndarray) -> None:
        there = ~np.isnan(values)
        if not there.any():
            return
        self._keys.add(key)
        panel = self._panels.setdefault(key, Panel())
        panel.sensors.add(sensor)
        panel.lines.setdefault(sensor, []).append((times[there], values[there]))
        self._points += int(there.sum())
        # What is cut off never comes back: the last name that stays only moves forward.
        self._points -= sum(_cut(panel.lines, MOST_LINES, _length))
        self._points -= sum(
            _cut(self._panels, MOST_PANELS, lambda panel: sum(map(_length, panel.lines.values())))
        )

    def _thin_if_many(self) -> None:
        if self._points > MOST_POINTS:
            self._width = max(2 * self._width, -(-self._extent() // BINS))
            self._points = 0
            for panel in self._panels.values():
                for sensor, parts in panel.lines.items():
                    panel.lines[sensor] = [thinned(_joined(parts), self._width)]
                    self._points += _length(panel.lines[sensor])

    def _extent(self) -> int:
        """The milliseconds from the first to the last point."""
        times = [
            part[0] for panel in self._panels.values() for parts in panel.lines.values() for part in parts
        ]
        return int(max(map(np.max, times)) - min(map(np.min, times))) + 1 if times else 1

    def chart(self) -> Chart:
        """All lines, with as many points as a picture can show."""
        lines = sum(len(panel.lines) for panel in self._panels.values())
        bins = max(min(BINS, DRAWN_POINTS // (2 * max(lines, 1))), 100)
        width = -(-self._extent() // bins)
        found: dict[Key, dict[str, Points]] = {}
        for key, panel in sorted(self._panels.items()):
            found[key] = {}
            for sensor, parts in sorted(panel.lines.items()):
                line = _joined(parts)
                if len(line[0]) > 2 * bins:
                    line = thinned(line, width)
                order = np.argsort(line[0], kind="stable")
                found[key][sensor] = line[0][order], line[1][order]
        counts = {key: len(panel.sensors) for key, panel in self._panels.items()}
        return Chart(self._picture.query, found, counts, len(self._keys))


def thinned(line: Points, width: int) -> Points:
    """The points of a line with the lowest and the highest value of each time of so many milliseconds."""
    times, values = line
    bins = times // width
    order = np.lexsort((values, bins))
    ordered = bins[order]
    first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    last = np.r_[first[1:] - 1, len(order) - 1]
    kept = np.unique(np.r_[order[first], order[last]])
    return times[kept], values[kept]


def _tables(snapshot: Snapshot, picture: Picture) -> Iterator[pa.Table]:
    """The rows of a query as tables: of memory first, then of the files by their times."""
    query, until = picture.query, time.monotonic() + WORK
    yield from _tables_of(row for row in snapshot.pending if means(query, row))
    columns = None
    if query.wanted is None and not query.virtual and picture.quantity is not None:
        columns = [*FIXED.names, picture.quantity]
    chosen = Chosen(query.sensors)
    with OpenFiles(snapshot.data) as files:
        for file in sorted(files_for(snapshot.days, query), key=lambda file: file.start):
            for group in files.ranges(file):
                if time.monotonic() > until:
                    raise HistoryBusy(
                        "the picture needs too many readings; ask for a shorter time, or for fewer sensors"
                    )
                if query.covers(group.start, group.end) and chosen.any_between(group.first, group.last):
                    table = selected(files.read(file, group.number, columns), query)
                    yield table if query.wanted is None else _wanted(table, query.wanted)


def _tables_of(rows: Iterable[Row]) -> Iterator[pa.Table]:
    """Rows in memory as tables."""
    kinds: dict[str | None, list[Row]] = {}
    for row in rows:
        kinds.setdefault(row.item.kind if isinstance(row.item, Reading) else None, []).append(row)
    for kind, some in kinds.items():
        if kind is None:
            yield result_table(some)
        else:
            yield from reading_tables(kind, some)


def _wanted(table: pa.Table, wanted: Callable[..., bool]) -> pa.Table:
    mask = [wanted(row.item) for part in slices(table, SLICE) for row in rows_of(part)]
    return table.filter(pa.array(mask, pa.bool_()))


def _by_sensor(table: pa.Table) -> Iterator[tuple[str, np.ndarray]]:
    """Each sensor of a table, and its rows."""
    encoded = table.column("sensor").combine_chunks().dictionary_encode()
    codes = encoded.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(len(encoded.dictionary) + 1))
    for place, sensor in enumerate(encoded.dictionary.to_pylist()):
        yield sensor, order[ends[place] : ends[place + 1]]


def _values(table: pa.Table, name: str) -> np.ndarray:
    """The values of a column of doubles; what is null is NaN."""
    values: np.ndarray = table.column(name).to_numpy(zero_copy_only=False)
    return values


def _joined(parts: list[Points]) -> Points:
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def _length(parts: list[Points]) -> int:
    return sum(len(times) for times, _ in parts)


def _cut(named: dict[K, V], most: int, points: Callable[[V], int]) -> Iterator[int]:
    """Drop the last names beyond a limit; the points of each that goes."""
    while len(named) > most:
        yield points(named.pop(max(named)))
