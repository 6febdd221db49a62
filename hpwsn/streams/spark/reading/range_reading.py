"""Reads a range of offsets as Arrow batches, and splits ranges into partitions.

Pages are fetched ahead: while Spark takes a batch, a thread requests the next page. Connections are kept
between the tasks of a process. A range gives the same rows in the same order whenever it is read, as long as
retention keeps them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil
from queue import Full, Queue
from time import sleep

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from hpwsn.errors import HpwsnError
from hpwsn.streams.spark.reading.broker_link import BrokerLink, LogState, RowsPage, kept_link
from hpwsn.streams.spark.reading.read_options import ReadOptions
from hpwsn.streams.spark.reading.row_batches import RowBatches

log = logging.getLogger(__name__)

PAGE_ROWS = 10_000
"""Maximum rows per page, and per batch for Spark."""
PAGES_AHEAD = 1
"""Pages that wait for Spark, beside the one that is being fetched."""
_CHECK_SECONDS = 0.5


class DataLossError(HpwsnError):
    """Retention has removed events that the reader has not read."""


class AnotherLogError(HpwsnError):
    """The node's log ends before an offset that was read from it earlier."""


@dataclass
class OffsetRange(InputPartition):
    """The offsets above `after`, up to and including `upto`; with `key`, the keys of one part of `parts`."""

    after: int
    upto: int
    key: str = ""
    part: int = 0
    parts: int = 1


def split_range(
    link: BrokerLink, topics: Sequence[str], after: int, upto: int, parts: int, key: str = ""
) -> list[OffsetRange]:
    """Partitions of a range: by the key, else ranges with about equally many events of the topics.

    The same range is split in the same way again, as long as retention keeps its events.
    """
    if upto <= after:
        return []
    if key:
        return [OffsetRange(after, upto, key, part, parts) for part in range(parts)]
    cuts = [after]
    if parts > 1:
        events = link.look(topics, after=after, upto=upto).waiting
        size = max(1, ceil(events / parts))
        for _ in range(ceil(events / size) - 1):
            cuts.append(link.look(topics, after=cuts[-1], upto=upto, limit=size).upto)
    return [OffsetRange(a, b) for a, b in pairwise([*cuts, upto]) if b > a]


def check_kept(oldest: int, after: int, options: ReadOptions, upto: int | None = None) -> None:
    """DataLossError, or a warning if the options say so, if events after an offset have been removed.

    `oldest` is the first offset from which on nothing has been removed, `upto` the last one to be read.
    """
    if after + 1 >= oldest:
        return
    last = oldest - 1 if upto is None else min(oldest - 1, upto)
    lost = (
        f"events of {options.subject} from offset {after + 1} to {last} may be lost: the log of"
        f" {options.url} begins at offset {oldest} (journal.retention_age, journal.retention_bytes)"
    )
    if options.fail_on_data_loss:
        raise DataLossError(
            f"{lost}; set failOnDataLoss to false to continue with the oldest event, or start at `earliest`"
            " with a new checkpoint"
        )
    log.warning("%s; continuing with the oldest event", lost)


def check_end(state: LogState, offset: int, options: ReadOptions) -> None:
    """AnotherLogError if the log ends before the offset."""
    if state.end < offset:
        raise AnotherLogError(
            f"the log of {options.url} ends at offset {state.end}, but the checkpoint is at offset {offset}:"
            " it belongs to another log; restore the node's data directory, or use a new checkpoint"
        )


def read_range(
    options: ReadOptions,
    schema: pa.Schema,
    span: OffsetRange,
    condition: str = "",
    patience: float | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a range in the order of the log."""
    batches = RowBatches(schema, span.key if span.parts > 1 else "", span.part, span.parts)
    fetch = _Fetch(options, batches.columns, condition, span.upto, patience)
    for page in fetch.pages(span.after):
        if page.rows:
            batch = batches.batch(page)
            if batch.num_rows:
                yield batch


@dataclass
class _Fetch:
    """The requests for the pages of one range."""

    options: ReadOptions
    columns: Sequence[str]
    condition: str
    upto: int
    patience: float | None
    warned: bool = field(default=False, init=False)

    def pages(self, after: int) -> Iterator[RowsPage]:
        """The pages after an offset; those after the first are fetched by a thread."""
        if after >= self.upto:
            return
        with kept_link(self.options.url, self.patience, self.options.token) as link:
            page = self._page(link, after)
        if page.upto >= self.upto:
            yield page
            return
        ready: Queue[RowsPage | BaseException | None] = Queue(PAGES_AHEAD)
        ended = threading.Event()
        threading.Thread(target=self._run, args=(page.upto, ready, ended), daemon=True).start()
        try:
            yield page
            while (item := ready.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            ended.set()

    def _run(self, after: int, ready: Queue[RowsPage | BaseException | None], ended: threading.Event) -> None:
        try:
            with kept_link(self.options.url, self.patience, self.options.token) as link:
                while after < self.upto and not ended.is_set():
                    page = self._page(link, after)
                    _put(ready, page, ended)
                    after = page.upto
            _put(ready, None, ended)
        except BaseException as error:
            _put(ready, error, ended)

    def _page(self, link: BrokerLink, after: int) -> RowsPage:
        """The next page; the node's answer is later than `after` unless the node stops or has another log."""
        topics = self.options.topics
        while True:
            page = link.rows(
                topics, after, self.upto, self.columns, limit=PAGE_ROWS, condition=self.condition
            )
            if page.oldest > after + 1 and not self.warned:
                check_kept(page.oldest, after, self.options, self.upto)
                self.warned = True
            if page.upto > after:
                return page
            check_end(link.look(topics), self.upto, self.options)
            sleep(_CHECK_SECONDS)


def _put(
    ready: Queue[RowsPage | BaseException | None],
    item: RowsPage | BaseException | None,
    ended: threading.Event,
) -> None:
    """Hand an item to the reader, unless the reader has ended."""
    while not ended.is_set():
        try:
            ready.put(item, timeout=_CHECK_SECONDS)
        except Full:
            continue
        return
