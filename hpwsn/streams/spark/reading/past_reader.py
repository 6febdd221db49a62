"""The stream reader of an input with a past: first the kept readings of a node, then its topics.

The files have what is before an offset, the boundary, which is chosen when the query is new; the log has the
rest. Both have the same offsets, so a reading comes once, in the order of the log. The offsets of Spark name
the boundary while the past is read, so that a batch that runs again takes the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

from hpwsn.streams.spark.reading.broker_link import kept_link
from hpwsn.streams.spark.reading.past_files import PastFiles
from hpwsn.streams.spark.reading.read_options import OptionError, ReadOptions
from hpwsn.streams.spark.reading.row_batches import RAW
from hpwsn.streams.spark.reading.stream_reader import Offset, TopicStreamReader

_UNKNOWN = ("_time", "_id")
"""What files do not have of a notification."""
_ALL = 10**12


@dataclass
class PastRange(InputPartition):
    """The offsets of kept readings above `after`, up to and including `upto`."""

    after: int
    upto: int


class PastStreamReader(TopicStreamReader):
    """Reads kept readings, then their topics."""

    def __init__(self, options: ReadOptions, schema: pa.Schema) -> None:
        super().__init__(options, schema)
        if schema.names == RAW.names or set(_UNKNOWN).intersection(schema.names):
            raise OptionError(
                "the option past needs a schema with the fields of readings, without _time and _id"
            )
        self._files = PastFiles(options.past, options.topics)

    def initialOffset(self) -> Offset:  # noqa: N802
        """Before the first kept reading."""
        options = self._options
        with kept_link(options.url, token=options.token) as link:
            oldest = link.look(options.topics).oldest
        # Retention leaves in the log what is not in files yet.
        return {"offset": 0, "past": max(self._files.end(), oldest, 1)}

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """The end of the next batch; none has both kept readings and events of the log."""
        after, boundary = int(start["offset"]), int(start.get("past", 0))
        if after + 1 >= boundary:
            return super().latestOffset(start, limit)
        rows = _ALL if isinstance(limit, ReadAllAvailable) else self._options.limit
        upto = self._files.upto(after, boundary, rows)
        self._log_end, self._waiting = boundary - 1, 0
        return {"offset": upto, "past": boundary}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """One partition of kept readings, since they are in order; else those of the topics."""
        after, boundary = int(start["offset"]), int(start.get("past", 0))
        if after + 1 >= boundary:
            return super().partitions(start, end)
        return [PastRange(after, int(end["offset"]))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition."""
        if isinstance(partition, PastRange):
            return self._files.batches(partition.after, partition.upto, self._schema)
        return super().read(partition)
