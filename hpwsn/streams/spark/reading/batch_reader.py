"""The batch reader of the data source: a range of a log as a table, with filters that the node evaluates.

The range is fixed when Spark plans the query, so that all partitions see the same events. A node that is
unavailable is waited for, but only for a limited time: a batch has a user who waits for it.

Spark calls `pushFilters` only if `spark.sql.python.filterPushdown.enabled` is true, and rejects a reader that
has the method if it is false. So `batch_reader` returns a reader with the method only in the process in which
Spark pushes filters.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from hpwsn.streams.spark.reading.broker_link import BrokerLink, BrokerRefused, LogState, kept_link
from hpwsn.streams.spark.reading.pushed_filters import condition_of
from hpwsn.streams.spark.reading.range_reading import OffsetRange, check_kept, read_range, split_range
from hpwsn.streams.spark.reading.read_options import EARLIEST, LATEST, ReadOptions

log = logging.getLogger(__name__)

PATIENCE = 60.0
"""Seconds that a batch waits for a node that is unavailable."""
_PUSHING_MODULE = "pyspark.sql.worker.data_source_pushdown_filters"


def batch_reader(options: ReadOptions, schema: pa.Schema) -> TopicBatchReader:
    """The reader for a batch, with filters if this process is the one that pushes them."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    pushes = _PUSHING_MODULE in sys.modules or getattr(main, "name", None) == _PUSHING_MODULE
    return FilteringBatchReader(options, schema) if pushes else TopicBatchReader(options, schema)


class TopicBatchReader(DataSourceReader):
    """Reads a range of offsets or of time."""

    def __init__(self, options: ReadOptions, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema
        self._condition = ""

    def partitions(self) -> Sequence[InputPartition]:
        """The partitions of the range, which ends at the current end of the log at the latest."""
        options = self._options
        with kept_link(options.url, PATIENCE, options.token) as link:
            state = link.look(options.topics)
            after, upto = self._before_start(link, state), self._last(link, state)
            split = split_range(link, options.topics, after, upto, options.partitions, options.key)
        return split or [OffsetRange(after, after)]  # Spark requires a partition

    def _before_start(self, link: BrokerLink, state: LogState) -> int:
        options = self._options
        if options.start_time is not None:
            return link.look(options.topics, since=options.start_time).before
        if options.start == LATEST:
            return state.end
        if options.start == EARLIEST:
            return max(0, state.oldest - 1)
        after = max(0, int(options.start) - 1)
        check_kept(state.oldest, after, options)
        return max(after, state.oldest - 1)

    def _last(self, link: BrokerLink, state: LogState) -> int:
        options = self._options
        if options.end_time is not None:
            return min(state.end, link.look(options.topics, since=options.end_time).before)
        return state.end if options.end == LATEST else min(state.end, int(options.end) - 1)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition."""
        assert isinstance(partition, OffsetRange)
        return read_range(self._options, self._schema, partition, self._condition, PATIENCE)


class FilteringBatchReader(TopicBatchReader):
    """Also lets the node leave out events that no filter of the query selects."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Take a condition from the filters; Spark evaluates all of them again."""
        condition = condition_of(filters, self._schema)
        if condition and self._is_accepted(condition):
            self._condition = condition
        return filters

    def _is_accepted(self, condition: str) -> bool:
        """Whether the node accepts the condition; it rejects one outside the constraints of a service."""
        options = self._options
        try:
            with kept_link(options.url, PATIENCE, options.token) as link:
                link.rows(options.topics, 0, 0, limit=1, condition=condition)
        except BrokerRefused as error:
            log.info("filters are left to Spark: %s", error)
            return False
        return True
