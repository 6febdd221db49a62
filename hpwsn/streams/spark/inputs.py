"""The inputs of a service as Spark streams: topics, files, Kafka, rate and socket.

Each stream has the schema of its definition. Messages of Kafka, and of a socket with a schema, are JSON
objects. HpwsnError names the package to add if Spark does not include a source.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from hpwsn.errors import HpwsnError
from hpwsn.streams.definition.definition import Definition, Input
from hpwsn.streams.plan.plan import event_time, input_schema
from hpwsn.streams.spark import file_replay, source
from hpwsn.streams.spark.source import MAX_ROWS
from hpwsn.streams.spark.stateful_operators import ARRIVAL


def register_sources(spark: SparkSession) -> None:
    """Register the data sources `hpwsn` and `hpwsn-files` with a session."""
    spark.dataSource.register(source.HpwsnDataSource)
    spark.dataSource.register(file_replay.FilesDataSource)


def open_streams(
    spark: SparkSession, definition: Definition, url: str, start: str = "oldest", rows: int = MAX_ROWS
) -> dict[str, DataFrame]:
    """The streaming DataFrame of each input, by name; `start` and `rows` apply to topics and Kafka."""
    return {name: _stream(spark, one, url, start, rows) for name, one in definition.inputs.items()}


def _stream(spark: SparkSession, one: Input, url: str, start: str, rows: int) -> DataFrame:
    match one.source:
        case "topic" | "service":
            options = {"url": url, "subscribe": one.text("topic"), "start": start, "rows": str(rows)}
            # A job that was stopped for longer than the node keeps events continues with the oldest.
            options["failOnDataLoss"] = "false"
            options |= partition_options(one)
            if one.text("past"):
                options["past"] = past_folder(one)
            schema = one.schema if event_time(one, input_schema(one)) else f"{one.schema}, {ARRIVAL} BIGINT"
            return spark.readStream.format(source.FORMAT).schema(schema).options(**options).load()
        case "files":
            options = {"path": input_path(one), "rows": str(rows)}
            options |= {name: one.text(name) for name in ("format", "rate")}
            return spark.readStream.format(file_replay.FORMAT).schema(one.schema).options(**options).load()
        case "kafka":
            return _json(_kafka(spark, one, start, rows), one.schema)
        case "rate":
            rate = one.text("rate") or "1"
            return spark.readStream.format("rate").option("rowsPerSecond", rate).load()
    lines = spark.readStream.format("socket").options(host=one.text("host"), port=one.text("port")).load()
    return _json(lines, one.schema) if one.schema else lines


def reads_in_one_partition(definition: Definition) -> bool:
    """Whether every input is a topic that is read in one partition."""
    return all(
        one.source in ("topic", "service") and one.settings.get("partitions", 1) == 1
        for one in definition.inputs.values()
    )


def partition_options(one: Input) -> dict[str, str]:
    """The options of the source for an input's `key` and `partitions`."""
    named = {"key": "key", "partitions": "minPartitions"}
    return {option: one.text(setting) for setting, option in named.items() if setting in one.settings}


def input_path(one: Input) -> str:
    """The path of a `files` input; a relative path is relative to the definition file."""
    return str(Path(one.place.file).resolve().parent / one.text("path"))


def past_folder(one: Input) -> str:
    """The folder of kept readings with which a topic begins; relative like the path of files."""
    return str(Path(one.place.file).resolve().parent / one.text("past"))


def _kafka(spark: SparkSession, one: Input, start: str, rows: int) -> DataFrame:
    """The messages of Kafka topics, those of each Kafka partition in a Spark partition of their own.

    Spark may number Kafka's partitions in another order when it runs an epoch again, but the sink identifies
    events by the number of their partition. So partitions get fixed numbers, and those that are added to a
    topic are read from the next start on.
    """
    topics = one.text("topic").split(",")
    options = {
        "kafka.bootstrap.servers": one.text("servers"),
        "startingOffsets": "latest" if start == "now" else "earliest",
        "maxOffsetsPerTrigger": str(rows),
    }
    try:
        spark.readStream.format("kafka").options(**options, subscribe=one.text("topic")).load()
    except AnalysisException as error:
        package = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark.version}"
        raise HpwsnError(
            f"{one.place}: Kafka requires a Spark package; add --packages {package}, or --jars with its jars"
        ) from error
    counts = _kafka_partitions(spark, one, topics)
    assigned = json.dumps({topic: list(range(count)) for topic, count in counts.items()})
    frame = spark.readStream.format("kafka").options(**options, assign=assigned).load()
    total = len(topics) * max(counts.values())
    if total == 1:
        return frame
    place = fn.array_position(fn.array(*map(fn.lit, topics)), fn.col("topic")) - 1
    return frame.repartitionById(total, (fn.col("partition") * len(topics) + place).cast("int"))


def _kafka_partitions(spark: SparkSession, one: Input, topics: list[str]) -> dict[str, int]:
    """How many partitions each topic has; HpwsnError if Kafka does not say."""
    java: Any = spark._jvm
    settings = java.java.util.Properties()
    settings.put("bootstrap.servers", one.text("servers"))
    admin = java.org.apache.kafka.clients.admin.Admin.create(settings)
    try:
        found = admin.describeTopics(topics).allTopicNames().get()
        return {topic: found.get(topic).partitions().size() for topic in topics}
    except Py4JJavaError as error:
        raise HpwsnError(
            f"{one.place}: Kafka at {one.text('servers')} does not list the topic {one.text('topic')};"
            f" check `servers` and `topic` ({error.java_exception.getMessage()})"
        ) from error
    finally:
        admin.close()


def _json(frame: DataFrame, schema: str) -> DataFrame:
    parsed = fn.from_json(fn.col("value").cast("string"), schema).alias("event")
    return frame.select(parsed).where("event is not null").select("event.*")
