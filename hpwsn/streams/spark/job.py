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
from hpwsn.streams.plan.plan import Plan, plan_of
from hpwsn.streams.spark import source
from hpwsn.streams.spark.broker_link import BrokerAway, BrokerLink, BrokerRefused
from hpwsn.streams.spark.dataframes import CONFIGURATION, apply
from hpwsn.streams.spark.history import folder_of, keep
from hpwsn.streams.spark.inputs import register_sources, streams_of
from hpwsn.streams.spark.rerun import rerun_of
from hpwsn.streams.spark.running import HISTORY, QUERY, Running, line_of
from hpwsn.streams.spark.source import MOST_ROWS

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


BEAT = 2.0
STOP_WITHIN = 30.0
"""Seconds that a batch may go on after a stop was asked for."""
LOOK = 0.2
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
    rows: int = MOST_ROWS


class Job:
    """Runs services until it is told to stop, or all that was asked for is done."""

    def __init__(
        self,
        spark: SparkSession,
        definitions: Sequence[Definition],
        options: Options,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._spark = spark
        self._options = options
        self._say = say
        self._services = [Running(plan_of(one), options.checkpoint) for one in definitions]
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

    def _start(self, service: Running, part: str) -> None:
        """Start the query of a service or that of its history, again where a process of Python did not."""
        while True:
            try:
                query = self._start_query(service) if part == QUERY else self._start_history(service)
            except (Py4JJavaError, PySparkException) as error:
                if not self._is_tried_again(service, str(error)):
                    raise HpwsnError(f"{service.definition.uri} has failed: {_reason(str(error))}") from error
                continue
            if query is not None:
                service.queries[part] = query
            return

    def _is_tried_again(self, service: Running, error: str) -> bool:
        if not _NO_WORKER.search(error) or service.restarts >= RESTARTS or self._stop.is_set():
            return False
        service.restarts += 1
        self._say(
            f"{service.definition.uri}: Spark could not start Python ({_reason(error)});"
            f" tried again, {service.restarts} of {RESTARTS}"
        )
        return True

    def _start_query(self, service: Running) -> StreamingQuery:
        options, definition = self._options, service.definition
        frame = apply(
            definition, streams_of(self._spark, definition, options.url, options.start, options.rows)
        )
        checkpoint = f"{service.place}/query"
        given = {
            "url": options.url,
            "topic": definition.topic,
            "service": definition.uri,
            "time": service.plan.output.time,
            "order": "" if _keeps_order(service.plan) else "time",
            "backbone": options.backbone,
            "node": options.node,
            "registration": options.registration,
            "checkpointLocation": checkpoint,
        }
        if service.local is not None:
            given["state"] = str(service.local / "published")
            given["rerun"] = str(rerun_of(service.local / "query", service.local / "published"))
        query = self._query(frame, definition.uri, given)
        self._say(f"{definition.uri} runs: {definition.topic} at {options.url}")
        return query

    def _start_history(self, service: Running) -> StreamingQuery | None:
        options = self._options
        if not options.history:
            return None
        where = f"{options.history.rstrip('/')}/{folder_of(service.definition.topic)}"
        return keep(self._spark, service.plan, options.url, where, f"{service.place}/history", options.once)

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
        with closing(BrokerLink(self._options.url, patient=False)) as link:
            while not self._stop.is_set() and self._check():
                self._stop.wait(LOOK)
                now = time.monotonic()
                if now >= beat + BEAT:
                    beat, away = now, self._beat(link, away)
                if now >= spoken + self._options.every:
                    spoken = now
                    self._say_progress()

    def _say_progress(self) -> None:
        for service in self._services:
            if service.look():
                self._say(line_of(service.definition.uri, service.figures))

    def _check(self) -> bool:
        """Whether anything still runs; raises what a query has failed with."""
        for service in self._services:
            for part, query in service.queries.items():
                error = query.exception()
                if error is None:
                    continue
                if not self._is_tried_again(service, str(error)):
                    raise HpwsnError(f"{query.name} has failed: {_reason(str(error))}")
                self._start(service, part)
        return any(query.isActive for service in self._services for query in service.queries.values())

    def _beat(self, link: BrokerLink, away: bool) -> bool:
        """Tell the node that all is well; True where it is away."""
        try:
            for service in self._services:
                service.look()
                link.register(service.definition.uri, service.document("running"))
        except (BrokerAway, BrokerRefused) as error:
            if not away:
                self._say(f"waiting: {error}")
            return True
        if away:
            self._say("the node is back")
        return False

    def _end(self, link: BrokerLink) -> None:
        until = time.monotonic() + STOP_WITHIN
        for service in self._services:
            for query in service.queries.values():
                # Between two batches nothing is left to be done again.
                while query.isActive and query.status["isTriggerActive"] and time.monotonic() < until:
                    if query.status["message"].startswith("Getting offsets"):
                        break
                    time.sleep(LOOK / 10)
                query.stop()
        link.close()
        self._say_stopped()
        for service in self._services:
            service.unlock()

    def _say_stopped(self) -> None:
        link = BrokerLink(self._options.url, patient=False)
        for service in self._services:
            if not service.queries:
                continue
            service.look()
            if service.figures:
                self._say(line_of(service.definition.uri, service.figures))
            try:
                link.register(service.definition.uri, service.document("stopped"))
            except (BrokerAway, BrokerRefused) as error:
                self._say(f"{service.definition.uri} has stopped, which the node was not told: {error}")
        link.close()


def _keeps_order(plan: Plan) -> bool:
    """Whether the order of what comes out means something: that of the input, or of a sort."""
    kinds = {node.op.op for node in plan.nodes}
    return "sort" in kinds or kinds <= {"filter", "project", "merge", "function"}


class _Stopped(Exception):
    """A stop was asked for while nothing ran yet."""


def _reason(error: str) -> str:
    """The last line of Python's traceback where there is one: Java's own is long and says nothing of ours."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    python = [line for line in lines if re.match(r"[\w.]+(Error|Refused|Away|Exception): ", line)]
    return python[-1] if python else lines[0]
