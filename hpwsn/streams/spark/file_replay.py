"""The Spark data source `hpwsn-files`: replays CSV with a header, JSON lines or Parquet files as a stream.

An offset is a file and a row, so that a checkpoint names exactly the rows to read again. Files are read in
the order of their names; new files are read if they sort after the last one. Values are converted like those
of events. `rate` limits the rows per second; without it, a batch has the maximum size. A run with `once`
ignores the rate.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from hpwsn.streams.spark.reading.file_columns import count_rows, read_batches
from hpwsn.streams.spark.source import MAX_ROWS, arrow_schema

FORMAT = "hpwsn-files"
ENDINGS = {"csv": (".csv",), "json": (".json", ".jsonl", ".ndjson"), "parquet": (".parquet",)}


class FilesDataSource(DataSource):
    """`spark.readStream.format("hpwsn-files")`."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return FORMAT

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Read files: options `path` (a file, a folder or a pattern), `format`; `rate` in rows per second."""
        return FilesReader(dict(self.options), schema)


@dataclass
class Slices(InputPartition):
    """Ranges of rows to read in order: the file, the first row, and the row after the last."""

    parts: tuple[tuple[str, int, int], ...]


class FilesReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the files of one input."""

    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self._path, self._format = options["path"], options["format"]
        self._rate = float(options.get("rate") or 0)
        self._rows = int(options.get("rows", MAX_ROWS))
        self._schema = schema
        self._counts: dict[str, int] = {}
        self._once = False
        self._tokens, self._at = 0.0, 0.0

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Before the first file."""
        return {"file": "", "row": 0}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Read the files that exist now, without the rate limit."""
        self._once = True
        self._files = files_of(self._path, self._format)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """The end of the next batch, limited by the rate and the batch size."""
        files = self._files if self._once else files_of(self._path, self._format)
        room, end = self._room(), start
        for file in files:
            if file < start["file"] or not room:
                continue
            first = start["row"] if file == start["file"] else 0
            taken = min(room, max(0, self._count(file) - first))
            if taken:
                end, room = {"file": file, "row": first + taken}, room - taken
        self._tokens -= self._taken(start, end) if self._rate else 0
        return end

    def _room(self) -> int:
        if not self._rate or self._once:
            return self._rows
        now = time.monotonic()
        self._tokens += self._rate * (now - (self._at or now))
        self._at = now
        return min(int(self._tokens), self._rows)

    def _taken(self, start: dict[str, Any], end: dict[str, Any]) -> int:
        return sum(last - first for _, first, last in self._between(start, end))

    def _count(self, file: str) -> int:
        """The number of rows of a file; the file must be complete when it first appears."""
        if file not in self._counts:
            self._counts[file] = count_rows(file, self._format)
        return self._counts[file]

    def _between(self, start: dict[str, Any], end: dict[str, Any]) -> Iterator[tuple[str, int, int]]:
        for file in files_of(self._path, self._format):
            if start["file"] <= file <= end["file"]:
                first = start["row"] if file == start["file"] else 0
                last = end["row"] if file == end["file"] else self._count(file)
                if last > first:
                    yield file, first, last

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """One partition, because rows are read in order."""
        parts = tuple(self._between(start, end))
        return [Slices(parts)] if parts else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of the partition, in batches."""
        assert isinstance(partition, Slices)
        schema = arrow_schema(self._schema)
        for file, first, last in partition.parts:
            yield from _between_rows(read_batches(file, self._format, schema), first, last)


def _between_rows(batches: Iterator[pa.RecordBatch], first: int, last: int) -> Iterator[pa.RecordBatch]:
    """The rows from `first` on, before `last`."""
    begin = 0
    for batch in batches:
        low, high = max(first - begin, 0), min(last - begin, batch.num_rows)
        if high > low:
            yield batch.slice(low, high - low)
        begin += batch.num_rows
        if begin >= last:
            return


def files_of(path: str, kind: str) -> list[str]:
    """The files of a path, which is a file, a folder or a pattern; sorted by name."""
    place = Path(path)
    if place.is_dir():
        return sorted(str(file) for file in place.iterdir() if file.suffix in ENDINGS[kind])
    if place.is_file():
        return [str(place)]
    return sorted(str(file) for file in place.parent.glob(place.name) if file.is_file())
