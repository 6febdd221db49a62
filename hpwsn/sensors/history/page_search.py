"""One page of a query: the first rows after a place, from files and from what is not flushed yet.

Files and row groups are looked at in the order of their first times, and only those that can hold a row of
the page. Memory is bounded by the rows of a page and of one row group. Work is bounded too: after WORK
seconds the page ends before the first row group that was not looked at.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from operator import itemgetter

import pyarrow as pa

from hpwsn.sensors.history.history_files import READINGS, HistoryFile, day_of, kind_folder
from hpwsn.sensors.history.history_query import (
    HistoryBusy,
    HistoryDamaged,
    HistoryQuery,
    Page,
    Place,
    Row,
    Snapshot,
)
from hpwsn.sensors.history.history_rows import rows_of
from hpwsn.sensors.history.row_groups import Chosen, GroupRange, OpenFiles, in_order, selected, slices
from hpwsn.sensors.physical.physical_sensor import Place as SensorPlace
from hpwsn.sensors.readings.reading import Reading

WORK = 2.0
"""Seconds after which a page ends, if rows up to some time are complete."""
MOST_WORK = 30.0
"""Seconds after which a page fails, since no time is complete yet."""
SLICE = 1000
"""Rows that become Python's objects at once."""


def files_for(
    days: Mapping[int, Sequence[HistoryFile]], query: HistoryQuery, after: Place | None = None
) -> list[HistoryFile]:
    """The files that may hold rows of a query that come after a place."""
    kind = None if query.kind is None else kind_folder(query.kind)
    begin = max([each for each in (query.start, after and after.time) if each is not None], default=None)
    return [
        file
        for day, files in days.items()
        if begin is None or day >= day_of(begin)
        for file in files
        if file.top == query.top
        and (kind is None or file.kind == kind)
        and query.covers(file.start, file.end)
        and (after is None or file.end >= after.time)
    ]


def means(query: HistoryQuery, row: Row, after: Place | None = None) -> bool:
    """Whether a query means a row that comes after a place; the same as in files, for a row in memory."""
    if after is not None and row.place <= after:
        return False
    if (query.start is not None and row.time < query.start) or (
        query.end is not None and row.time >= query.end
    ):
        return False
    item = row.item
    if isinstance(item, Reading) is query.virtual:
        return False
    if isinstance(item, Reading):
        if query.sensors is not None and item.sensor not in query.sensors:
            return False
        if query.kind is not None and item.kind != query.kind:
            return False
        if query.area is not None and not query.area.holds(_place_of(item)):
            return False
    elif query.sensors is not None and item.get("sensor") not in query.sensors:
        return False
    return query.wanted is None or query.wanted(item)


class PageSearch:
    """Looks for one page; `find` runs in a thread."""

    def __init__(
        self,
        snapshot: Snapshot,
        query: HistoryQuery,
        limit: int,
        after: Place | None,
    ) -> None:
        self._data = snapshot.data
        self._query = query
        self._limit = limit
        self._after = after
        self._chosen = Chosen(query.sensors)
        self._number = count()
        self._queue: list[tuple[int, int, HistoryFile, GroupRange | None]] = []
        """What has still to be looked at, by the first time in it: files, and row groups of open files."""
        for file in files_for(snapshot.days, query, after):
            self._put(file.start, file, None)
        self._found = heapq.nsmallest(
            limit + 1, (row for row in snapshot.pending if means(query, row, after)), key=_place
        )

    def find(self) -> Page:
        """The page; HistoryBusy if it takes too long."""
        begun = time.monotonic()
        with OpenFiles(self._data) as files:
            while self._queue and not self._has_all(self._queue[0][0]):
                worked = time.monotonic() - begun
                if worked > WORK and self._moves_to(self._queue[0][0]):
                    return self._cut()
                if worked > MOST_WORK:
                    raise HistoryBusy(
                        "the query needs too many rows at once; ask for a shorter time, or for fewer sensors"
                    )
                _, _, file, group = heapq.heappop(self._queue)
                if group is None:
                    self._open(files, file)
                else:
                    self._look(files.read(file, group.number))
        if len(self._found) > self._limit:
            return Page(self._found[: self._limit], self._found[self._limit - 1].place)
        return Page(self._found, None)

    def _put(self, start: int, file: HistoryFile, group: GroupRange | None) -> None:
        heapq.heappush(self._queue, (start, next(self._number), file, group))

    def _has_all(self, start: int) -> bool:
        """Whether the page is complete, if all that is not looked at begins at a time."""
        return len(self._found) > self._limit and self._found[-1].time < start

    def _moves_to(self, start: int) -> bool:
        """Whether a page that ends before a time brings the query forward."""
        return self._after is None or start > self._after.time + 1

    def _cut(self) -> Page:
        end = self._queue[0][0]
        complete = [row for row in self._found if row.time < end]
        if len(complete) > self._limit:
            return Page(complete[: self._limit], complete[self._limit - 1].place)
        return Page(complete, Place(end - 1, _LAST))

    def _open(self, files: OpenFiles, file: HistoryFile) -> None:
        for group in files.ranges(file):
            if (
                self._query.covers(group.start, group.end)
                and (self._after is None or group.end >= self._after.time)
                and self._chosen.any_between(group.first, group.last)
            ):
                self._put(group.start, file, group)

    def _look(self, table: pa.Table) -> None:
        """Take the rows of a table that are among the first ones."""
        query, wanted = self._query, self._query.wanted
        if len(self._found) > self._limit:
            # Later rows than the last one of the page need not become objects.
            query = replace(query, end=self._found[-1].time + 1)
        chosen = in_order(selected(table, query, self._after))
        found: list[Row] = []
        for part in slices(chosen, SLICE):
            rows = rows_of(part)
            found += rows if wanted is None else [row for row in rows if wanted(row.item)]
            if len(found) > self._limit:
                break
        if found:
            # Both are sorted, which makes this a merge.
            self._found = sorted(self._found + found, key=_place)[: self._limit + 1]


_LAST = 10**18 - 1
"""No offset is larger."""
_place = itemgetter(0, 1)


def _place_of(reading: Reading) -> SensorPlace | None:
    if reading.longitude is None or reading.latitude is None:
        return None
    return SensorPlace(reading.longitude, reading.latitude)


def find_keys(
    snapshot: Snapshot, keys: Sequence[tuple[str, int]]
) -> tuple[set[tuple[str, int]], list[HistoryDamaged]]:
    """Those of some sensors and times at which there is a reading; files that cannot be read are left out."""
    damaged: list[HistoryDamaged] = []
    wanted, times = set(keys), {time for _, time in keys}
    found = set()
    for row in snapshot.pending:
        if row.time in times and isinstance(row.item, Reading):
            key = (row.item.sensor, row.time)
            if key in wanted:
                found.add(key)
    by_day: dict[int, list[tuple[str, int]]] = {}
    for key in wanted - found:
        by_day.setdefault(day_of(key[1]), []).append(key)
    with OpenFiles(snapshot.data) as files:
        for day, some in by_day.items():
            for file in snapshot.days.get(day, ()):
                if file.top == READINGS:
                    try:
                        found |= _keys_in(files, file, some)
                    except HistoryDamaged as error:
                        damaged.append(error)
    return found, damaged


def _keys_in(files: OpenFiles, file: HistoryFile, keys: Sequence[tuple[str, int]]) -> set[tuple[str, int]]:
    near = [key for key in keys if file.start <= key[1] <= file.end]
    found: set[tuple[str, int]] = set()
    if not near:
        return found
    for group in files.ranges(file):
        inside = {
            (sensor, time)
            for sensor, time in near
            if group.start <= time <= group.end and group.first <= sensor <= group.last
        }
        if inside:
            query = HistoryQuery(sensors=frozenset(sensor for sensor, _ in inside))
            table = selected(files.read(file, group.number, ["offset", "sensor", "time"]), query)
            there = zip(
                table.column("sensor").to_pylist(),
                table.column("time").cast(pa.int64()).to_pylist(),
                strict=True,
            )
            found |= inside.intersection(there)
    return found
