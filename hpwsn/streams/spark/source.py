"""The Spark data source `hpwsn`: reads a topic of the broker as a stream.

Spark's offsets are the offsets of the journal, so that a checkpoint names exactly the events to read again.
A batch is a range of offsets, split into `partitions` ranges; with one partition the order of the topic is
kept. The source waits for a node that is unavailable. A value that does not have the type of its attribute is
null, as in Spark's permissive readers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, DataSourceStreamWriter, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from hpwsn.errors import HpwsnError
from hpwsn.streams.definition.schema import Schema, ValueRefused, parse_schema, value_of
from hpwsn.streams.spark.reading.broker_link import PAGE, BrokerLink

FORMAT = "hpwsn"
LONG_POLL = 0.1
"""Seconds that the node waits for a new event before it answers; the maximum delay of a batch."""
MAX_ROWS = 50_000
"""Default of the option `rows`, the maximum offsets per batch."""


class HpwsnDataSource(DataSource):
    """`spark.readStream.format("hpwsn")` and `df.writeStream.format("hpwsn")`."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return FORMAT

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Read a topic: options `url`, `topic`; `start` (oldest, now, an offset), `rows`, `partitions`."""
        return TopicReader(dict(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """Publish to a topic; see hpwsn.streams.spark.sink."""
        from hpwsn.streams.spark.sink import TopicWriter

        return TopicWriter(dict(self.options))


@dataclass
class OffsetRange(InputPartition):
    """The offsets above `after`, up to and including `upto`."""

    after: int
    upto: int


class TopicReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads one topic of one node."""

    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self._url, self._topic = options["url"], options["topic"]
        self._start = options.get("start", "oldest")
        self._rows = int(options.get("rows", MAX_ROWS))
        self._partitions = int(options.get("partitions", 1))
        self._schema = schema
        self._target: int | None = None
        self._searched_to = 0
        self._log_end: int | None = None
        self._waiting = 0
        self._link: BrokerLink | None = None

    def _broker(self) -> BrokerLink:
        if self._link is None:
            self._link = BrokerLink(self._url)
        return self._link

    def __getstate__(self) -> dict[str, Any]:
        # The reader is pickled for the executors; a connection cannot be pickled.
        return {**self.__dict__, "_link": None}

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """The offset at which a new query begins."""
        if self._start == "oldest":
            return {"offset": 0}
        return {"offset": self._broker().end(self._topic) if self._start == "now" else int(self._start)}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The maximum offsets per batch."""
        return ReadMaxRows(self._rows)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Read up to the current end of the log."""
        self._target = self._broker().end(self._topic)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """The end of the next batch, equal to the start if the topic has no new event.

        Other topics also move the end of the log, so only an event on this topic starts a batch.
        """
        begin = start["offset"]
        self._check_end(self._broker(), begin)
        wait = 0.0 if self._target is not None else LONG_POLL
        page = self._broker().read(self._topic, max(begin, self._searched_to), limit=1, wait=wait)
        if not page.events or (self._target is not None and page.events[0]["offset"] > self._target):
            # The part of the log without events on this topic is not searched again.
            self._searched_to = max(self._searched_to, page.upto if not page.events else 0)
            self._log_end, self._waiting = begin, 0
            return start
        self._log_end = end = self._broker().end(self._topic) if self._target is None else self._target
        if not isinstance(limit, ReadAllAvailable):
            end = min(end, page.events[0]["offset"] - 1 + self._rows)
        # The log also has other topics: only the node can count the events of this topic after the batch.
        self._waiting = self._broker().waiting(self._topic, end) if end < self._log_end else 0
        return {"offset": end}

    def reportLatestOffset(self) -> dict[str, int] | None:  # noqa: N802
        """The end of the log at the last poll and the events not read yet, which progress shows as lag."""
        return None if self._log_end is None else {"offset": self._log_end, "waiting": self._waiting}

    def _check_end(self, link: BrokerLink, offset: int) -> None:
        """Raise HpwsnError if the log ends before the checkpoint's offset: it is then another log."""
        end = link.end(self._topic)
        if end < offset:
            raise HpwsnError(
                f"the log of {self._url} ends at offset {end}, but the checkpoint is at offset {offset}:"
                " it belongs to another log; restore the node's data directory, or use a new checkpoint"
            )

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Split the batch into ranges of about equal size."""
        first, last = start["offset"], end["offset"]
        cuts = [first + (last - first) * n // self._partitions for n in range(self._partitions + 1)]
        return [OffsetRange(a, b) for a, b in pairwise(cuts) if b > a]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a range, one page of the node at a time."""
        assert isinstance(partition, OffsetRange)
        schema, arrow = schema_of(self._schema), to_arrow_schema(self._schema, timezone="UTC")
        after, link = partition.after, BrokerLink(self._url)
        self._check_end(link, partition.upto)
        while after < partition.upto:
            page = link.read(self._topic, after, limit=min(PAGE, partition.upto - after), wait=1.0)
            events = [event["data"] for event in page.events if event["offset"] <= partition.upto]
            if events:
                rows = [row_of(event, schema) for event in events]
                yield pa.RecordBatch.from_pylist(rows, schema=arrow)
            after = page.upto
        link.close()


def schema_of(schema: StructType) -> Schema:
    """Convert a Spark schema to a Schema."""
    return Schema(
        tuple(
            (field.name, parse_schema(f"x {field.dataType.simpleString()}")["x"]) for field in schema.fields
        )
    )


def row_of(event: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """The attributes of an event in the schema; null if the value is missing or has another type."""
    row: dict[str, Any] = {}
    for name, kind in schema:
        try:
            row[name] = value_of(event.get(name), kind, name)
        except ValueRefused:
            row[name] = None
    return row
