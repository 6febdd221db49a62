"""The writer of the Spark data source `hpwsn`: publishes the rows of a streaming query as notifications.

Rows are published in batches to the JSON API of the node, or through ActiveMQ to the queue of the node. The
message id consists of service, run, epoch, partition and row. So an epoch that Spark runs again, after a
failed task or a killed job, publishes nothing twice. The node remembers ids for `journal.id_window`; if an
epoch is run again later, the writer first looks for its events in the topic (`Rerun`).

A partition that fits into one request is published atomically, in Spark's order or, after a shuffle, by time.
A larger partition is sorted by time and content, because Spark may give the rows in another order when it
runs the epoch again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from hpwsn.backbone.activemq.internal_publisher import InternalPublisher
from hpwsn.streams.definition.schema import json_of
from hpwsn.streams.spark.reading.broker_link import BrokerLink
from hpwsn.streams.spark.rerun import Rerun, record_committed
from hpwsn_client.wsn.formats.json_events import encode_event

CHUNK_ROWS, CHUNK_BYTES = 5000, 4 << 20
MAX_SERVICE_NAME = 200
_QUERY, _EPOCH = "sql.streaming.queryId", "streaming.sql.batchId"
"""Local properties of a Spark task: the query id, which the checkpoint keeps, and the batch number."""
_publishers: dict[tuple[str, str], InternalPublisher] = {}
"""Connections of this worker process to ActiveMQ; Spark reuses the process for later batches."""


@dataclass
class Written(WriterCommitMessage):
    """The result of one task: published rows and the last offset, None if unknown."""

    rows: int
    last: int | None


class TopicWriter(DataSourceStreamArrowWriter):
    """Publishes to one topic.

    Options: `url`, `topic`, `service`; `backbone` and `node` for ActiveMQ; `registration`, if the node
    requires one; `state`, a folder beside the checkpoint; `time`, the attribute of the event time; `order`,
    `time` to publish in the order of event time; `rerun`, the text of a `Rerun`.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self._url, self._topic = options["url"], options["topic"]
        self._service = options.get("service", self._topic)
        self._backbone, self._node = options.get("backbone", ""), options.get("node", "")
        self._registration = options.get("registration", "")
        self._state = options.get("state", "")
        self._time, self._sorted = options.get("time", ""), options.get("order") == "time"
        self._rerun = Rerun.parse(options.get("rerun", ""))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Publish the rows of one partition of one epoch."""
        context = TaskContext.get()
        assert context is not None
        run, epoch = context.getLocalProperty(_QUERY), context.getLocalProperty(_EPOCH)
        prefix = f"{_short(self._service)}#{run}/{epoch}/{context.partitionId()}/"
        events = [event for batch in iterator for event in batch.to_pylist()]
        chunks = list(_chunks(events, self._time, self._sorted))
        if not chunks:
            return Written(0, None)
        link = BrokerLink(self._url)
        known = self._rerun.known(link, self._topic, prefix) if self._rerun.applies_to(epoch) else frozenset()
        last = None
        if self._backbone:
            self._send(chunks, prefix, known)
            chunks = []
        for first, lines in chunks:
            if f"{prefix}{first}" not in known:
                last = link.publish(self._topic, b"\n".join(lines), f"{prefix}{first}", self._registration)
        link.close()
        return Written(len(events), last)

    def _send(self, chunks: list[tuple[int, list[bytes]]], prefix: str, known: frozenset[str]) -> None:
        """Publish through ActiveMQ: each event is a notification with its own id."""
        publisher = _publishers.get(place := (self._backbone, self._node))
        if publisher is None:
            publisher = _publishers[place] = InternalPublisher(*place)
        for first, lines in chunks:
            for row, line in enumerate(lines, first):
                if f"{prefix}{row}" not in known:
                    publisher.publish(self._topic, encode_event(json.loads(line)), id=f"{prefix}{row}")
        publisher.flush()

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Record the end offset of the epoch, after which the next epoch publishes."""
        written = [one for one in messages if isinstance(one, Written)]
        if not self._state:
            return
        last = max((one.last for one in written if one.last is not None), default=None)
        if last is None and self._backbone:
            link = BrokerLink(self._url)
            last = link.end(self._topic)
            link.close()
        if last is not None:
            record_committed(Path(self._state), batchId, last)


def _short(service: str) -> str:
    if len(service) <= MAX_SERVICE_NAME and service.isprintable():
        return service
    return sha256(service.encode()).hexdigest()


def _chunks(
    events: list[dict[str, Any]], time: str, by_time: bool = False
) -> Iterator[tuple[int, list[bytes]]]:
    """The requests of a partition, each with the number of its first row; several requests are sorted."""
    lines = [_line(event) for event in events]
    if by_time or len(lines) > CHUNK_ROWS or sum(map(len, lines)) > CHUNK_BYTES:
        moments = [str(event.get(time, "")) for event in events]
        lines = [line for _, line in sorted(zip(moments, lines, strict=True))]
    first, size = 0, 0
    for row, line in enumerate(lines):
        if row - first >= CHUNK_ROWS or (size and size + len(line) > CHUNK_BYTES):
            yield first, lines[first:row]
            first, size = row, 0
        size += len(line)
    if lines:
        yield first, lines[first:]


def _line(event: dict[str, Any]) -> bytes:
    return json.dumps({name: json_of(value) for name, value in event.items()}, ensure_ascii=False).encode()
