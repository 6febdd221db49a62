"""The stream reader of the data source: topics of a node as micro-batches.

Spark's offsets are the offsets of the journal, so that a checkpoint names exactly the events to read again.
The end of a batch also has its number of partitions and its key: a batch that runs again after a restart is
split as before, whatever the options say now. If the log after the start was searched without finding an
event, the end also has the offset up to which it was (`searched`): what retention removes there is no loss.
The reader waits for a node that is unavailable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from hpwsn.streams.spark.reading.broker_link import LogState, kept_link
from hpwsn.streams.spark.reading.range_reading import (
    OffsetRange,
    check_end,
    check_kept,
    read_range,
    split_range,
)
from hpwsn.streams.spark.reading.read_options import EARLIEST, LATEST, OptionError, ReadOptions

Offset = dict[str, Any]
LONG_POLL = 0.1
"""Seconds that the node waits for an event before it answers.

An event ends the wait. A query with several inputs waits for each of them in turn.
"""
_UNLIMITED = 10**12


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads topics of one node."""

    def __init__(self, options: ReadOptions, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema
        self._target: int | None = None
        self._searched_to = 0
        self._log_end: int | None = None
        self._waiting = 0
        self._idle = False
        self._others_run = False

    def initialOffset(self) -> Offset:  # noqa: N802
        """The last offset before the first event of a new query."""
        options = self._options
        with kept_link(options.url, token=options.token) as link:
            state = link.look(options.topics, since=options.start_time)
        if options.start_time is not None:
            return {"offset": state.before}
        if options.start == LATEST:
            return {"offset": state.end}
        if options.start == EARLIEST:
            return {"offset": max(0, state.oldest - 1)}
        if int(options.start) > state.end + 1:
            raise OptionError(
                f"the option startingOffsets is {options.start}, which is beyond the end of the log of"
                f" {options.url}, offset {state.end}; use an offset up to {state.end + 1}, or latest"
            )
        return {"offset": max(0, int(options.start) - 1)}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The maximum events per batch."""
        return ReadMaxRows(self._options.limit)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Read up to the current end of the log."""
        with kept_link(self._options.url, token=self._options.token) as link:
            self._target = link.look(self._options.topics).end

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """The end of the next batch, equal to the start if the topics have no new event.

        One request answers all questions. It returns when an event arrives.
        """
        begin, options = int(start["offset"]), self._options
        after = max(begin, self._searched_to)
        if self._target is not None and begin >= self._target:
            check_end(LogState(self._target), begin, options)
            return self._nothing(start, begin)
        most = _UNLIMITED if isinstance(limit, ReadAllAvailable) else options.limit
        # After a batch Spark may have another one to run, which closes windows: it must not wait for events.
        wait = LONG_POLL if self._idle and self._target is None and not self._others_run else 0.0
        with kept_link(options.url, token=options.token) as link:
            state = link.look(options.topics, after=after, limit=most, wait=wait)
        check_end(state, begin, options)
        check_kept(state.oldest, after, options)
        if not state.waiting:
            # The part of the log without events on these topics is not searched again.
            self._searched_to = state.upto
            return self._nothing(start, begin)
        end = state.upto if self._target is None else min(state.upto, self._target)
        self._idle = self._others_run = False
        self._log_end, self._waiting = max(state.end, end), max(0, state.waiting - most)
        split = {"partitions": options.partitions, **({"key": options.key} if options.key else {})}
        return {"offset": end, **split, **({"searched": after} if after > begin else {})}

    def _nothing(self, start: Offset, begin: int) -> Offset:
        self._log_end, self._waiting = begin, 0
        self._idle, self._others_run = True, False
        return start

    def commit(self, end: Offset) -> None:
        """Note if Spark runs a batch without events of these topics: other inputs must not wait for them."""
        self._others_run = self._idle

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802
        """The end of the log at the last poll and the events not read yet, which progress shows as lag."""
        return None if self._log_end is None else {"offset": self._log_end, "waiting": self._waiting}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Split a batch as its end says; ends of earlier versions do not say it."""
        parts, key = end.get("partitions"), end.get("key", "")
        if parts is None:
            parts, key = self._options.partitions, self._options.key
        options, after = self._options, max(int(start["offset"]), int(end.get("searched", 0)))
        with kept_link(options.url, token=options.token) as link:
            return split_range(link, options.topics, after, int(end["offset"]), parts, key)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition."""
        assert isinstance(partition, OffsetRange)
        return read_range(self._options, self._schema, partition)
