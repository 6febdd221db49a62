"""The writers of the Spark data source `hpwsn`: publish the rows of a user's query or table.

The rows of a partition are published in their order (`task_publishing`). If the option
`checkpointLocation` of a stream names a local folder, an epoch that is run again, however late, publishes
only what is not in the topic yet; the record of this is the folder `hpwsn` in the checkpoint. A table is
published once, also if Spark runs one of its tasks again; saving it another time publishes it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from hpwsn.streams.spark.publishing.rerun import (
    NO_RERUN,
    find_rerun,
    has_record,
    last_begun,
    local_folder,
    record_committed,
)
from hpwsn.streams.spark.publishing.task_publishing import Publication, current_run, publication_of
from hpwsn.streams.spark.reading.broker_link import BrokerLink


@dataclass
class TaskWritten(WriterCommitMessage):
    """What one task has published: the last offset, None if unknown, and the run of the query."""

    last: int | None
    run: str


class TopicWriter(DataSourceStreamArrowWriter):
    """Publishes to one topic.

    Options: `url`, `topic`; `service`, which names the publisher in message ids; `backbone` and `node` for
    ActiveMQ; `registration`, if the node requires one; `checkpointLocation`.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        # Spark makes a writer for every epoch, when the checkpoint already says what the epoch reads.
        publication = publication_of(options, NO_RERUN)
        # Spark writes the names of options in lower case.
        checkpoint = local_folder(options.get("checkpointlocation", ""))
        self._state = None if checkpoint is None else checkpoint / "hpwsn"
        if checkpoint is not None and self._state is not None:
            _record_start(publication, checkpoint, self._state)
        self._publication = replace(publication, rerun=find_rerun(checkpoint, self._state))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWritten:
        """Publish the rows of one partition of one epoch."""
        return TaskWritten(self._publication.publish(iterator).last, current_run())

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Record the end offset of the epoch, after which the next epoch publishes."""
        written = [one for one in messages if isinstance(one, TaskWritten) and one.last is not None]
        if self._state is not None and written:
            offsets = [one.last for one in written if one.last is not None]
            record_committed(self._state, batchId, max(offsets), written[0].run)


def _record_start(publication: Publication, checkpoint: Path, state: Path) -> None:
    """Record where the log ends before the first epoch of all publishes."""
    if not has_record(state) and not last_begun(checkpoint):
        with closing(BrokerLink(publication.url)) as link:
            record_committed(state, -1, link.end(publication.topic))


class TableWriter(DataSourceArrowWriter):
    """Publishes a table to a topic, with the options of TopicWriter except `checkpointLocation`."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._publication = publication_of(options, NO_RERUN)
        self._name = uuid4().hex

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWritten:
        """Publish the rows of one partition."""
        return TaskWritten(self._publication.publish(iterator, self._name).last, "")
