"""A job: the services of some definitions, each a streaming query, in one Spark application.

Owns the lifecycle of the services: registration before the first publication, heartbeats with figures,
progress reports, and a clean stop between two batches. A job waits for a node that is unavailable. It
restarts a query if a Python worker process did not start. After any other failure all queries stop, and the
next run continues from the checkpoint. `open_session` opens the Spark session with the settings that
operators require.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from hpwsn.errors import HpwsnError
from hpwsn.streams.definition.definition import Definition
from hpwsn.streams.plan.plan import build_plan
from hpwsn.streams.spark import source
from hpwsn.streams.spark.broker_link import BrokerLink, BrokerRefused, BrokerUnavailable
from hpwsn.streams.spark.dataframes import CONFIGURATION, apply
from hpwsn.streams.spark.history import folder_name, write_history
from hpwsn.streams.spark.inputs import open_streams, register_sources
from hpwsn.streams.spark.rerun import find_rerun
from hpwsn.streams.spark.running import HISTORY, QUERY, RunningService, progress_line
from hpwsn.streams.spark.source import MAX_ROWS

JAVA_MISSING = "Spark requires Java 17 or later; install it (Debian: default-jre-headless), or set JAVA_HOME"

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
        frame = apply(
            definition, open_streams(self._spark, definition, options.url, options.start, options.rows)
        )
        checkpoint = f"{service.checkpoint}/query"
        given = {
            "url": options.url,
            "topic": definition.topic,
            "service": definition.uri,
            "time": service.plan.output.time,
            "order": "" if service.plan.is_ordered else "time",
            "backbone": options.backbone,
            "node": options.node,
            "registration": options.registration,
            "checkpointLocation": checkpoint,
        }
        if service.local_checkpoint is not None:
            given["state"] = str(service.local_checkpoint / "published")
            given["rerun"] = str(
                find_rerun(service.local_checkpoint / "query", service.local_checkpoint / "published")
            )
        query = self._query(frame, definition.uri, given)
        self._report(f"{definition.uri} runs: {definition.topic} at {options.url}")
        return query

    def _start_history(self, service: RunningService) -> StreamingQuery | None:
        options = self._options
        if not options.history:
            return None
        where = f"{options.history.rstrip('/')}/{folder_name(service.definition.topic)}"
        return write_history(
            self._spark, service.plan, options.url, where, f"{service.checkpoint}/history", options.once
        )

    def _query(self, frame: DataFrame, name: str, given: Mapping[str, str]) -> StreamingQuery:
        writer = frame.writeStream.format(source.FORMAT).queryName(name).options(**given)
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
                now = time.monotonic()
                if now >= beat + HEARTBEAT:
                    beat, away = now, self._send_heartbeat(link, away)
                if now >= spoken + self._options.every:
                    spoken = now
                    self._report_progress()

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
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    python = [line for line in lines if re.match(r"[\w.]+(Error|Refused|Unavailable|Exception): ", line)]
    return python[-1] if python else lines[0]


def open_session(
    name: str, master: str | None = None, conf: Mapping[str, str] | None = None, packages: str = ""
) -> SparkSession:
    """Open a Spark session for stream services; HpwsnError if Java is missing."""
    local = (master or "local").startswith("local")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **({"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g"} if local else {}),
        **({"spark.jars.packages": packages} if packages else {}),
        **(conf or {}),
        **CONFIGURATION,
    }
    builder = SparkSession.builder.appName(name)
    if master:
        builder = builder.master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        spark = builder.getOrCreate()
    except (PySparkRuntimeError, OSError) as error:
        raise HpwsnError(f"{JAVA_MISSING} ({str(error).splitlines()[0]})") from error
    spark.sparkContext.setLogLevel("ERROR")
    # py4j would log a line for each call to the JVM.
    logging.getLogger("py4j").setLevel(logging.ERROR)
    register_sources(spark)
    return spark
