"""Row groups of Parquet files: written in blocks that are sorted by sensor, and chosen by what they can hold.

A block is what was flushed at once, or up to BLOCK_ROWS rows of a merged file, so it covers a short time.
Within a block, rows are sorted by sensor and time and cut into row groups, whose statistics name the first
and last sensor and time. So a query for a sensor reads one row group of many.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hpwsn.durable_files import sync_folder
from hpwsn.sensors.history.history_files import HistoryFile, make_private
from hpwsn.sensors.history.history_query import HistoryDamaged, HistoryQuery, Place

BLOCK_ROWS = 100_000
GROUP_ROWS = 10_000
_ORDER = [("sensor", "ascending"), ("time", "ascending"), ("offset", "ascending")]


class GroupRange(NamedTuple):
    """A row group, and the first and last time and sensor in it."""

    number: int
    start: int
    end: int
    first: str
    last: str


class BlockWriter:
    """Writes blocks to a file that gets its name only when it is complete."""

    def __init__(self, temporary: Path, schema: pa.Schema) -> None:
        make_private(temporary.parent)
        # Arrow keeps the permissions of a file that is there.
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        self._temporary = temporary
        self._writer = pq.ParquetWriter(
            temporary, schema, compression="zstd", use_dictionary=["sensor"], write_page_checksum=True
        )
        self.start, self.end = 0, 0
        """The first and the last time of all rows, in milliseconds."""
        self._empty = True

    def write(self, block: pa.Table) -> None:
        """Add rows as one block; there is at least one."""
        times = pc.min_max(block.column("time").cast(pa.int64()))
        low, high = times["min"].as_py(), times["max"].as_py()
        self.start = low if self._empty else min(self.start, low)
        self.end = high if self._empty else max(self.end, high)
        self._empty = False
        self._writer.write_table(block.sort_by(_ORDER), row_group_size=GROUP_ROWS)

    def close(self) -> int:
        """Write all to disk; the bytes of the file."""
        self._writer.close()
        with self._temporary.open("rb+") as file:
            os.fsync(file.fileno())
        return self._temporary.stat().st_size

    def discard(self) -> None:
        """Remove what was written."""
        self._writer.close()
        self._temporary.unlink(missing_ok=True)


def publish_file(data: Path, temporary: Path, file: HistoryFile) -> None:
    """Give a complete file its name."""
    path = data / file.path
    temporary.replace(path)
    sync_folder(path.parent)


class OpenFiles:
    """Parquet files that one query or one merge has open, at most LIMIT at once."""

    LIMIT = 32

    def __init__(self, data: Path) -> None:
        self._data = data
        self._open: dict[HistoryFile, pq.ParquetFile] = {}

    def __enter__(self) -> OpenFiles:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._open.values():
            file.close()

    def open(self, file: HistoryFile) -> pq.ParquetFile:
        """The open file; FileNotFoundError if it is gone, HistoryDamaged if it is not whole."""
        found = self._open.pop(file, None)
        if found is None:
            try:
                found = pq.ParquetFile(self._data / file.path, page_checksum_verification=True)
            except FileNotFoundError:
                raise
            except (pa.ArrowInvalid, OSError) as error:
                raise HistoryDamaged(self._data / file.path, file, error) from error
            if len(self._open) >= self.LIMIT:
                self._open.pop(next(iter(self._open))).close()
        self._open[file] = found
        return found

    def last_offset(self, file: HistoryFile) -> int:
        """The largest offset in a file."""
        metadata = self.open(file).metadata
        names = [metadata.schema.column(place).name for place in range(metadata.num_columns)]
        groups = range(metadata.num_row_groups)
        place = names.index("offset")
        return max(int(metadata.row_group(number).column(place).statistics.max) for number in groups)

    def ranges(self, file: HistoryFile) -> list[GroupRange]:
        """The row groups of a file."""
        metadata = self.open(file).metadata
        names = [metadata.schema.column(place).name for place in range(metadata.num_columns)]
        time, sensor = names.index("time"), names.index("sensor")
        found = []
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            times, sensors = group.column(time).statistics, group.column(sensor).statistics
            found.append(GroupRange(number, times.min_raw, times.max_raw, sensors.min, sensors.max))
        return found

    def read(self, file: HistoryFile, group: int, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of a row group; HistoryDamaged if they cannot be read."""
        try:
            return self.open(file).read_row_group(group, columns=columns, use_threads=False)
        except (pa.ArrowInvalid, OSError) as error:
            raise HistoryDamaged(self._data / file.path, file, error) from error


class Chosen:
    """Sensors of a query in order, to see which row groups can hold one of them."""

    def __init__(self, sensors: frozenset[str] | None) -> None:
        self._sorted = None if sensors is None else sorted(sensors)

    def any_between(self, first: str, last: str) -> bool:
        """Whether one of the sensors is from the first to the last."""
        if self._sorted is None:
            return True
        place = bisect_left(self._sorted, first)
        return place < len(self._sorted) and self._sorted[place] <= last


def selected(table: pa.Table, query: HistoryQuery, after: Place | None = None) -> pa.Table:
    """The rows of a table that a query means, without its `wanted`, and that come after a place."""
    times, mask = _numbers(table, "time"), np.ones(table.num_rows, bool)
    if query.start is not None:
        mask &= times >= query.start
    if query.end is not None:
        mask &= times < query.end
    if after is not None:
        offsets = _numbers(table, "offset")
        mask &= (times > after.time) | ((times == after.time) & (offsets > after.offset))
    if query.sensors is not None and mask.any():
        names = pa.array(sorted(query.sensors), pa.string())
        mask &= _flags(pc.is_in(table.column("sensor"), value_set=names))
    if query.area is not None and mask.any():
        mask &= _in_area(table, query)
    return table if mask.all() else table.filter(pa.array(mask))


def in_order(table: pa.Table) -> pa.Table:
    """The rows by time and offset."""
    return table.sort_by([("time", "ascending"), ("offset", "ascending")])


def slices(table: pa.Table, rows: int) -> Iterator[pa.Table]:
    """The rows in tables of so many."""
    for begin in range(0, table.num_rows, rows):
        yield table.slice(begin, rows)


def _in_area(table: pa.Table, query: HistoryQuery) -> np.ndarray:
    assert query.area is not None
    west, south, east, north = query.area
    # A place that is null becomes NaN, with which every comparison is false.
    longitude, latitude = (
        table.column(name).to_numpy(zero_copy_only=False) for name in ("longitude", "latitude")
    )
    if west <= east:
        between = (longitude >= west) & (longitude <= east)
    else:
        between = (longitude >= west) | (longitude <= east)
    found: np.ndarray = between & (latitude >= south) & (latitude <= north)
    return found


def _numbers(table: pa.Table, name: str) -> np.ndarray:
    found: np.ndarray = table.column(name).cast(pa.int64()).to_numpy()
    return found


def _flags(column: pa.ChunkedArray) -> np.ndarray:
    found: np.ndarray = column.to_numpy(zero_copy_only=False)
    return found
