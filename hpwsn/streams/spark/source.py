"""A topic of the broker as a stream of Spark: the data source `hpwsn`, read from the node's journal.

An offset of Spark's is an offset of the journal, so what a checkpoint names is read again exactly. One batch
is a range of offsets, cut into `partitions` ranges (1 keeps the topic's order). A node that is away is waited
for. A value that is not of its attribute's type is null, as in Spark's own permissive readers.
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
from hpwsn.streams.spark.broker_link import PAGE, BrokerLink

FORMAT = "hpwsn"
LONG_POLL = 0.1
"""Seconds that a look for something new waits at the node; a batch begins within that of its first event."""
MAX_ROWS = 50_000
"""Offsets in one batch, unless the option `rows` says otherwise."""


class HpwsnDataSource(DataSource):
    """`spark.readStream.format("hpwsn")` and `df.writeStream.format("hpwsn")`."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return FORMAT

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Reads a topic: options `url`, `topic`; `start` (oldest, now, an offset), `rows`, `partitions`."""
        return TopicReader(dict(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """Publishes to a topic; see hpwsn.streams.spark.sink."""
        from hpwsn.streams.spark.sink import TopicWriter

        return TopicWriter(dict(self.options))


@dataclass
class OffsetRange(InputPartition):
    """The events after one offset, up to another."""

    after: int
    upto: int


class TopicReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One topic of one node."""

    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self._url, self._topic = options["url"], options["topic"]
        self._start = options.get("start", "oldest")
        self._rows = int(options.get("rows", MAX_ROWS))
        self._partitions = int(options.get("partitions", 1))
        self._schema = schema
        self._target: int | None = None
        self._looked = 0
        self._seen: int | None = None
        self._waiting = 0
        self._link: BrokerLink | None = None

    def _broker(self) -> BrokerLink:
        if self._link is None:
            self._link = BrokerLink(self._url)
        return self._link

    def __getstate__(self) -> dict[str, Any]:
        # It travels to the executors, a connection does not.
        return {**self.__dict__, "_link": None}

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """Where a new query begins."""
        if self._start == "oldest":
            return {"offset": 0}
        return {"offset": self._broker().end(self._topic) if self._start == "now" else int(self._start)}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Bounds a batch, in offsets."""
        return ReadMaxRows(self._rows)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Reads no further than the log goes now."""
        self._target = self._broker().end(self._topic)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """The end of the next batch, which is the start where the topic has nothing new.

        Other topics move the end of the log, too: only an event on this one makes a batch.
        """
        begin = start["offset"]
        self._check_end(self._broker(), begin)
        wait = 0.0 if self._target is not None else LONG_POLL
        page = self._broker().read(self._topic, max(begin, self._looked), limit=1, wait=wait)
        if not page.events or (self._target is not None and page.events[0]["offset"] > self._target):
            # What was looked at in vain is not looked at again.
            self._looked = max(self._looked, page.upto if not page.events else 0)
            self._seen, self._waiting = begin, 0
            return start
        self._seen = end = self._broker().end(self._topic) if self._target is None else self._target
        if not isinstance(limit, ReadAllAvailable):
            end = min(end, page.events[0]["offset"] - 1 + self._rows)
        # The log has other topics, too: only the node knows how many of this one lie behind the batch.
        self._waiting = self._broker().waiting(self._topic, end) if end < self._seen else 0
        return {"offset": end}

    def reportLatestOffset(self) -> dict[str, int] | None:  # noqa: N802
        """How far the log went at the last look, and how many events waited, which progress shows as lag."""
        return None if self._seen is None else {"offset": self._seen, "waiting": self._waiting}

    def _check_end(self, link: BrokerLink, offset: int) -> None:
        """Refuse a log that ends before what was read of it: to wait would be in vain, to read on wrong."""
        end = link.end(self._topic)
        if end < offset:
            raise HpwsnError(
                f"the log of {self._url} ends at offset {end}, and the checkpoint knows {offset}: that is"
                " another log. Use the node's own data directory again, or begin with a new checkpoint"
            )

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Ranges of about the same number of offsets."""
        first, last = start["offset"], end["offset"]
        cuts = [first + (last - first) * n // self._partitions for n in range(self._partitions + 1)]
        return [OffsetRange(a, b) for a, b in pairwise(cuts) if b > a]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a range, a page of the node's at a time."""
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
    """Spark's schema as ours."""
    return Schema(
        tuple(
            (field.name, parse_schema(f"x {field.dataType.simpleString()}")["x"]) for field in schema.fields
        )
    )


def row_of(event: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """The attributes of an event by the schema; null where there is none, or none of that type."""
    row: dict[str, Any] = {}
    for name, kind in schema:
        try:
            row[name] = value_of(event.get(name), kind, name)
        except ValueRefused:
            row[name] = None
    return row
