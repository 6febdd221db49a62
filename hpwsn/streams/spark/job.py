"""A job: the services of some definitions, each a streaming query, in one Spark application.

Owns the lifecycle of the services: registration before the first publication, heartbeats with figures,
progress reports, and a clean stop between two batches. A job waits for a node that is unavailable. It
restarts a query if a Python worker process did not start. After any other failure all queries stop, and the
next run continues from the checkpoint.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.streaming.query import StreamingQuery

from hpwsn.errors import HpwsnError
from hpwsn.streams.definition.definition import Definition
from hpwsn.streams.deployment.cluster_settings import missing_python
from hpwsn.streams.plan.output_order import Order, output_order
from hpwsn.streams.plan.plan import build_plan
from hpwsn.streams.spark.columns import column
from hpwsn.streams.spark.dataframes import apply
from hpwsn.streams.spark.history import folder_name, write_history
from hpwsn.streams.spark.inputs import open_streams, reads_in_one_partition
from hpwsn.streams.spark.publishing.task_publishing import RESULT, Publication
from hpwsn.streams.spark.reading.broker_link import BrokerLink, BrokerRefused, BrokerUnavailable
from hpwsn.streams.spark.running import HISTORY, PUBLISHED, QUERY, RunningService, progress_line
from hpwsn.streams.spark.source import MAX_ROWS

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
HEARTBEAT = 2.0
STOP_TIMEOUT = 30.0
"""Seconds that a running batch may take to finish after `stop`."""
POLL_INTERVAL = 0.2
RESTARTS = 10
"""Maximum consecutive restarts of a query because Spark could not start a Python worker.

Spark waits ten seconds for a worker, and the timeout cannot be changed: under high load several workers in
succession may start too late.
"""
_NO_WORKER = re.compile(
    r"Python worker (?:failed|exited)|from pyspark\.daemon|pyspark\.daemon's standard output"
)
"""Matches Spark's error text if a Python worker did not start, or died."""


@dataclass(frozen=True)
class Options:
    """The options of a job, from the command line."""

    url: str
    checkpoint: str = "hpwsn-checkpoints"
    start: str = "oldest"
    once: bool = False
    trigger: str = ""
    history: str = ""
    backbone: str = ""
    node: str = ""
    registration: str = ""
    every: float = 5.0
    rows: int = MAX_ROWS


class Job:
    """Runs services until `stop` is called or, with `once`, until all available events are processed."""

    def __init__(
        self,
        spark: SparkSession,
        definitions: Sequence[Definition],
        options: Options,
        report: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._spark = spark
        self._options = options
        self._report = report
        ui = spark.sparkContext.uiWebUrl or ""
        self._services = [RunningService(build_plan(one), options.checkpoint, ui) for one in definitions]
        self._stop = threading.Event()

    def stop(self) -> None:
        """Make `run` end between two batches; may be called from a signal handler."""
        self._stop.set()

    def run(self) -> None:
        """Start all services and return when they have ended; HpwsnError if a service has failed."""
        link = BrokerLink(self._options.url, sleep=self._pause)
        try:
            for service in self._services:
                service.lock()
                link.register(service.definition.uri, service.document("running"))
            if self._options.once:
                self._run_once()
            else:
                for service in self._services:
                    self._start(service, QUERY)
                    self._start(service, HISTORY)
                self._watch()
        except _Stopped:
            return
        finally:
            self._end(link)

    def _run_once(self) -> None:
        """Run the services one after another in the order of the definitions, each with its history."""
        for service in self._services:
            for part in (QUERY, HISTORY):
                if not self._stop.is_set():
                    self._start(service, part)
                    self._watch()

    def _pause(self, seconds: float) -> None:
        """Sleep before the next request to the node; `stop` ends the sleep."""
        if self._stop.wait(seconds):
            raise _Stopped

    def _start(self, service: RunningService, part: str) -> None:
        """Start the query of a service or of its history; retry if a Python worker did not start."""
        while True:
            try:
                query = self._start_query(service) if part == QUERY else self._start_history(service)
            except (Py4JJavaError, PySparkException) as error:
                if not self._can_retry(service, str(error)):
                    raise HpwsnError(f"{service.definition.uri} has failed: {_reason(str(error))}") from error
                continue
            if query is not None:
                service.queries[part] = query
            return

    def _can_retry(self, service: RunningService, error: str) -> bool:
        can = bool(_NO_WORKER.search(error)) and service.restarts < RESTARTS and not self._stop.is_set()
        service.count_failure(can)
        if not can:
            return False
        self._report(
            f"{service.definition.uri}: Spark could not start Python ({_reason(error)});"
            f" retry {service.restarts} of {RESTARTS}"
        )
        return True

    def _start_query(self, service: RunningService) -> StreamingQuery:
        options, definition = self._options, service.definition
        frames = open_streams(self._spark, definition, options.url, options.start, options.rows)
        if len(frames) == 1 and self._partitions(service) == 1 and reads_in_one_partition(definition):
            # Spark then knows that all rows are in one partition, and needs no shuffle for windows.
            frames = {name: one.coalesce(1) for name, one in frames.items()}
        frame, order = self._ordered(service, apply(definition, frames, with_order=True))
        with closing(BrokerLink(options.url, sleep=self._pause)) as link:
            rerun = service.prepare_start(link)
        publication = Publication(
            options.url,
            definition.topic,
            definition.uri,
            options.backbone,
            options.node,
            options.registration,
            order,
            rerun,
        )
        # Tasks publish, and the sink gets a row with the number: Spark's own sinks start no process of
        # Python, as that of a Python data source does for every batch.
        published = frame.mapInArrow(publication.publish_task, RESULT).observe(
            PUBLISHED, fn.sum("rows").alias("rows")
        )
        query = self._query(published, definition.uri, f"{service.checkpoint}/query")
        self._report(f"{definition.uri} runs: {definition.topic} at {options.url}")
        return query

    def _ordered(self, service: RunningService, frame: DataFrame) -> tuple[DataFrame, tuple[str, ...]]:
        """The rows of each key in one partition, and the columns by which a task sorts its rows."""
        found, names = output_order(service.plan), service.plan.output.schema.names
        hidden = tuple(name for name in frame.columns if name not in names)
        time = (service.plan.output.time,) if service.plan.output.time else ()
        if found.order is Order.INPUT:
            return frame, ()
        if found.order is Order.GROUPS:
            # The sort is stable, so that the rows of a group keep their order.
            return frame, hidden or time
        partitions = self._partitions(service)
        if partitions > 1 and service.definition.order == "key":
            frame = frame.repartition(partitions if found.keys else 1, *map(column, found.keys))
        # By all columns in the end: the same rows are published in the same order when an epoch is run again.
        return frame, tuple(dict.fromkeys((*hidden, *time, *names)))

    def _partitions(self, service: RunningService) -> int:
        """The shuffle partitions of a service: those of its checkpoint, or of the session if it is new."""
        return service.shuffle_partitions or int(self._spark.conf.get(SHUFFLE_PARTITIONS) or 1)

    def _start_history(self, service: RunningService) -> StreamingQuery | None:
        options = self._options
        if not options.history:
            return None
        where = f"{options.history.rstrip('/')}/{folder_name(service.definition.topic)}"
        return write_history(
            self._spark, service.plan, options.url, where, f"{service.checkpoint}/history", options.once
        )

    def _query(self, frame: DataFrame, name: str, checkpoint: str) -> StreamingQuery:
        writer = frame.writeStream.format("noop").queryName(name).option("checkpointLocation", checkpoint)
        writer = writer.outputMode("append")
        if self._options.once:
            writer = writer.trigger(availableNow=True)
        elif self._options.trigger:
            writer = writer.trigger(processingTime=self._options.trigger)
        return writer.start()

    def _watch(self) -> None:
        beat = spoken = time.monotonic()
        away = False
        with closing(BrokerLink(self._options.url, retry=False)) as link:
            while not self._stop.is_set() and self._check():
                self._stop.wait(POLL_INTERVAL)
                self._record_progress(link)
                now = time.monotonic()
                if now >= beat + HEARTBEAT:
                    beat, away = now, self._send_heartbeat(link, away)
                if now >= spoken + self._options.every:
                    spoken = now
                    self._report_progress()

    def _record_progress(self, link: BrokerLink) -> None:
        """Record how far the log was before the next epochs, which a restart after a crash begins with."""
        for service in self._services:
            with suppress(BrokerUnavailable, BrokerRefused):
                service.record_progress(link)

    def _report_progress(self) -> None:
        for service in self._services:
            if service.update_figures():
                self._report(progress_line(service.definition.uri, service.figures))

    def _check(self) -> bool:
        """Whether any query is still running; HpwsnError if a query has failed."""
        for service in self._services:
            for part, query in service.queries.items():
                error = query.exception()
                if error is None:
                    continue
                if not self._can_retry(service, str(error)):
                    raise HpwsnError(f"{query.name} has failed: {_reason(str(error))}")
                self._start(service, part)
        return any(query.isActive for service in self._services for query in service.queries.values())

    def _send_heartbeat(self, link: BrokerLink, away: bool) -> bool:
        """Send the heartbeats of all services; return True if the node is unavailable."""
        try:
            for service in self._services:
                service.update_figures()
                link.register(service.definition.uri, service.document("running"))
        except (BrokerUnavailable, BrokerRefused) as error:
            if not away:
                self._report(f"waiting for the node: {error}")
            return True
        if away:
            self._report("the node is back")
        return False

    def _end(self, link: BrokerLink) -> None:
        until = time.monotonic() + STOP_TIMEOUT
        for service in self._services:
            for query in service.queries.values():
                # A query that stops between two batches has nothing to repeat after a restart.
                while query.isActive and query.status["isTriggerActive"] and time.monotonic() < until:
                    if query.status["message"].startswith("Getting offsets"):
                        break
                    time.sleep(POLL_INTERVAL / 10)
                query.stop()
        link.close()
        self._report_stopped()
        for service in self._services:
            service.unlock()

    def _report_stopped(self) -> None:
        link = BrokerLink(self._options.url, retry=False)
        for service in self._services:
            if not service.queries:
                continue
            service.update_figures()
            if service.figures:
                self._report(progress_line(service.definition.uri, service.figures))
            try:
                link.register(service.definition.uri, service.document("stopped"))
            except (BrokerUnavailable, BrokerRefused) as error:
                self._report(f"{service.definition.uri} has stopped; the node could not be informed: {error}")
        link.close()


class _Stopped(Exception):
    """`stop` was called before the first query was started."""


def _reason(error: str) -> str:
    """The last line of the Python traceback, if there is one; the Java stack trace does not help the user."""
    if problem := missing_python(error):
        return problem
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    python = [line for line in lines if re.match(r"[\w.]+(Error|Refused|Unavailable|Exception): ", line)]
    return python[-1] if python else lines[0]
