"""A job: the services of some definitions, each a streaming query, in one Spark application.

Owns their life: registered before anything is published, heartbeats with figures, progress, a clean stop
between two batches, and what ends a run. A node that is away is waited for, and a query that fails
because a process of Python did not start is started again. Where one fails otherwise, all stop, and the
next run goes on from the checkpoint.

A Spark session for stream services, set up as their operators need it.
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

NEEDS_JAVA = "Spark needs Java 17 or later: install it (Debian: default-jre-headless), or set JAVA_HOME"


def open_session(
    name: str, master: str | None = None, conf: Mapping[str, str] | None = None, packages: str = ""
) -> SparkSession:
    """The session; HpwsnError in one line where Java is missing."""
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
        raise HpwsnError(f"{NEEDS_JAVA} ({str(error).splitlines()[0]})") from error
    spark.sparkContext.setLogLevel("ERROR")
    # Each request to the JVM is a line of it otherwise.
    logging.getLogger("py4j").setLevel(logging.ERROR)
    register_sources(spark)
    return spark


HEARTBEAT = 2.0
STOP_TIMEOUT = 30.0
"""Seconds that a batch may go on after a stop was asked for."""
POLL_INTERVAL = 0.2
RESTARTS = 10
"""How often in a row a query is started again, where Spark could not start a process of Python.

Spark gives such a process ten seconds, and has no setting for it: on a machine with a high load several
processes in a row are too late.
"""
_NO_WORKER = re.compile(
    r"Python worker (?:failed|exited)|from pyspark\.daemon|pyspark\.daemon's standard output"
)
"""What Spark says where a process of Python did not start, or died."""


@dataclass(frozen=True)
class Options:
    """How a job runs."""

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
    """Runs services until it is told to stop, or all that was asked for is done."""

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
        self._services = [RunningService(build_plan(one), options.checkpoint) for one in definitions]
        self._stop = threading.Event()

    def stop(self) -> None:
        """Have `run` end between two batches; may be called by a signal."""
        self._stop.set()

    def run(self) -> None:
        """Start everything and return when it has ended; HpwsnError where a service has failed."""
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
        """One after another, those that others take in first, each with its history behind it."""
        for service in self._services:
            for part in (QUERY, HISTORY):
                if not self._stop.is_set():
                    self._start(service, part)
                    self._watch()

    def _pause(self, seconds: float) -> None:
        """A wait for the node that a stop ends."""
        if self._stop.wait(seconds):
            raise _Stopped

    def _start(self, service: RunningService, part: str) -> None:
        """Start the query of a service or that of its history, again where a process of Python did not."""
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
        if not _NO_WORKER.search(error) or service.restarts >= RESTARTS or self._stop.is_set():
            return False
        service.restarts += 1
        self._report(
            f"{service.definition.uri}: Spark could not start Python ({_reason(error)});"
            f" tried again, {service.restarts} of {RESTARTS}"
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
        """Whether anything still runs; raises what a query has failed with."""
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
        """Tell the node that all is well; True where it is away."""
        try:
            for service in self._services:
                service.update_figures()
                link.register(service.definition.uri, service.document("running"))
        except (BrokerUnavailable, BrokerRefused) as error:
            if not away:
                self._report(f"waiting: {error}")
            return True
        if away:
            self._report("the node is back")
        return False

    def _end(self, link: BrokerLink) -> None:
        until = time.monotonic() + STOP_TIMEOUT
        for service in self._services:
            for query in service.queries.values():
                # Between two batches nothing is left to be done again.
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
                self._report(f"{service.definition.uri} has stopped, which the node was not told: {error}")
        link.close()


class _Stopped(Exception):
    """A stop was asked for while nothing ran yet."""


def _reason(error: str) -> str:
    """The last line of Python's traceback where there is one: Java's own is long and says nothing of ours."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    python = [line for line in lines if re.match(r"[\w.]+(Error|Refused|Unavailable|Exception): ", line)]
    return python[-1] if python else lines[0]
