"""Publishes the rows of a streaming query as notifications, one task of one epoch at a time.

Rows arrive as Arrow batches and leave as requests of JSON lines to the node, or as notifications through
ActiveMQ to the queue of the node. While a request is under way, the next one is made. The message id of a
request consists of service, run, epoch, partition and the number of its first row, and requests are cut by
the number of rows. So an epoch that Spark runs again, after a failed task or a killed job, publishes nothing
twice, provided that its rows come in the same order. After a shuffle they may not: then `order` names the
columns that the rows of the task are sorted by first.

The node remembers ids for `journal.id_window`. An epoch that is run again later first looks for its events in
the topic (`Rerun`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from hpwsn.errors import HpwsnError
from hpwsn.streams.arrow_json import json_lines
from hpwsn.streams.spark.publishing.rerun import NO_RERUN, Rerun
from hpwsn.streams.spark.reading.broker_link import BrokerLink, kept_link, node_token

if TYPE_CHECKING:
    from hpwsn.backbone.activemq.internal_publisher import InternalPublisher

CHUNK_ROWS, CHUNK_BYTES = 5000, 4 << 20
"""Rows of a request, and the bytes above which these rows are divided among several requests."""
MAX_SERVICE_NAME = 200
RESULT = "rows BIGINT"
"""The schema of what `publish_task` returns: a row with the number of published rows."""
_QUERY, _EPOCH = "sql.streaming.queryId", "streaming.sql.batchId"
"""Local properties of a Spark task: the query id, which the checkpoint keeps, and the batch number."""
_RUN = "spark.jobGroup.id"
"""The local property by which Spark names the run of a query, which changes with every restart."""
_publishers: dict[tuple[str, str], InternalPublisher] = {}
"""Connections of this worker process to ActiveMQ; Spark reuses the process for later batches."""

Chunk = tuple[int, bytes]
"""A request: the number of its first row, and its rows as JSON lines."""


@dataclass(frozen=True, slots=True)
class Written:
    """The result of one task: published rows and the last offset, None if unknown."""

    rows: int
    last: int | None


@dataclass(frozen=True)
class Publication:
    """Where the rows of a query are published, and in which order.

    `backbone` and `node` are set to publish through ActiveMQ, `registration` if the node requires one.
    Columns whose names begin with an underscore only give the order, and are not published.
    """

    url: str
    topic: str
    service: str
    backbone: str = ""
    node: str = ""
    registration: str = ""
    order: tuple[str, ...] = ()
    rerun: Rerun = NO_RERUN
    token: str = field(default_factory=node_token, repr=False)
    """The node's token, from the environment of the driver; empty without one."""

    def publish_task(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Publish the rows of a task, for mapInArrow; the result has the schema RESULT."""
        written = self.publish(batches)
        if written.rows:
            yield pa.record_batch([pa.array([written.rows], pa.int64())], names=["rows"])

    def publish(self, batches: Iterator[pa.RecordBatch], save: str = "") -> Written:
        """Publish the rows of one partition of one epoch, or of a table that is saved under a unique name."""
        context = TaskContext.get()
        assert context is not None
        run, epoch = context.getLocalProperty(_QUERY), context.getLocalProperty(_EPOCH)
        prefix = f"{short_name(self.service)}#{save or f'{run}/{epoch}'}/{context.partitionId()}/"
        filled = (batch for batch in self._in_order(batches) if batch.num_rows)
        first = next(filled, None)
        if first is None:
            # A task without rows, as most tasks of an idle query are, opens no connection.
            return Written(0, None)
        rows = 0

        def counted() -> Iterator[pa.RecordBatch]:
            nonlocal rows
            for batch in _chain(first, filled):
                rows += batch.num_rows
                yield batch

        send = self._send_frames if self.backbone else self._send_requests
        again = self.rerun.applies_to(epoch, current_run())
        with kept_link(self.url, token=self.token) as link:
            known = self.rerun.known(link, self.topic, prefix) if again else frozenset()
            last = send(link, chunks_of(counted()), prefix, known)
        return Written(rows, last)

    def _in_order(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if not self.order:
            return batches
        return iter(sorted_batches(list(batches), self.order))

    def _send_requests(
        self, link: BrokerLink, chunks: Iterator[Chunk], prefix: str, known: frozenset[str]
    ) -> int | None:
        """Publish at the node, one request after another; return the last offset, None if unknown."""
        last, sent = None, None
        with ThreadPoolExecutor(1, "hpwsn-publish") as sender:
            for first, lines in chunks:
                if f"{prefix}{first}" in known:
                    continue
                last = _result(sent, last)
                sent = sender.submit(link.publish, self.topic, lines, f"{prefix}{first}", self.registration)
            return _result(sent, last)

    def _send_frames(
        self, link: BrokerLink, chunks: Iterator[Chunk], prefix: str, known: frozenset[str]
    ) -> int | None:
        """Publish through ActiveMQ: each event is a notification with its own id."""
        # Imported only here: other workers start sooner without it.
        from hpwsn.backbone.activemq.internal_publisher import InternalPublisher
        from hpwsn_client.wsn.formats.json_events import encode_event

        publisher = _publishers.get(place := (self.backbone, self.node))
        if publisher is None:
            publisher = _publishers[place] = InternalPublisher(*place)
        for first, lines in chunks:
            for row, line in enumerate(lines.splitlines(), first):
                if f"{prefix}{row}" not in known:
                    publisher.publish(self.topic, encode_event(json.loads(line)), id=f"{prefix}{row}")
        publisher.flush()
        return None


def current_run() -> str:
    """The run of the query that this task belongs to."""
    context = TaskContext.get()
    return "" if context is None else context.getLocalProperty(_RUN) or ""


def publication_of(options: Mapping[str, str], rerun: Rerun) -> Publication:
    """The publication that the options of a sink describe; HpwsnError if `topic` is missing."""
    topic = options.get("topic", "")
    if not topic:
        raise HpwsnError("the option `topic` is missing; name the topic to publish to")
    return Publication(
        options["url"],
        topic,
        options.get("service") or topic,
        options.get("backbone", ""),
        options.get("node", ""),
        options.get("registration", ""),
        rerun=rerun,
    )


def short_name(service: str) -> str:
    """The name of a service in message ids: the name itself, or its hash if it is long."""
    if len(service) <= MAX_SERVICE_NAME and service.isprintable():
        return service
    return sha256(service.encode()).hexdigest()


def sorted_batches(batches: Sequence[pa.RecordBatch], order: Sequence[str]) -> list[pa.RecordBatch]:
    """The rows of all batches in a stable sort by `order`, without hidden columns."""
    if not batches:
        return []
    table = pa.Table.from_batches(batches)
    ordered = table.sort_by([(name, "ascending") for name in order])
    shown = [name for name in table.column_names if not name.startswith("_")]
    found: list[pa.RecordBatch] = ordered.select(shown).combine_chunks().to_batches()
    return found


def chunks_of(batches: Iterable[pa.RecordBatch]) -> Iterator[Chunk]:
    """The requests of a task; their borders depend on the rows alone, not on those of the batches."""
    first, waiting, rows = 0, [], 0
    for batch in batches:
        at = 0
        while at < batch.num_rows:
            taken = batch.slice(at, CHUNK_ROWS - rows)
            at += taken.num_rows
            rows += taken.num_rows
            waiting.append(json_lines(taken))
            if rows == CHUNK_ROWS:
                yield from _divided(first, b"".join(waiting), rows)
                first, waiting, rows = first + rows, [], 0
    if rows:
        yield from _divided(first, b"".join(waiting), rows)


def _divided(first: int, lines: bytes, rows: int) -> Iterator[Chunk]:
    """The lines as they are, or in halves until each fits into a request."""
    if len(lines) <= CHUNK_BYTES or rows == 1:
        yield first, lines
        return
    ends = np.flatnonzero(np.frombuffer(lines, np.uint8) == ord("\n"))
    half = rows // 2
    cut = int(ends[half - 1]) + 1
    yield from _divided(first, lines[:cut], half)
    yield from _divided(first + half, lines[cut:], rows - half)


def _result(sent: Future[int | None] | None, last: int | None) -> int | None:
    return last if sent is None else sent.result()


def _chain(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest
