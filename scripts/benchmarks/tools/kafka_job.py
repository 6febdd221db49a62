"""The two jobs of the pipeline benchmark with Kafka in and out, as a user of Spark writes them.

    python kafka_job.py filter|count --servers HOST:PORT --input TOPIC --output TOPIC --checkpoint DIR …

JSON is parsed and written by Spark's own functions in the JVM; no row goes through Python.
"""

import argparse
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

READING = {
    "kafka.fetch.max.wait.ms": "10",
    "kafka.fetch.min.bytes": "1",
    "kafka.max.partition.fetch.bytes": str(8 << 20),
    "kafka.fetch.max.bytes": str(64 << 20),
    "kafka.max.poll.records": "50000",
}
WRITING = {
    "kafka.linger.ms": "5",
    "kafka.batch.size": str(256 << 10),
    "kafka.buffer.memory": str(64 << 20),
    "kafka.compression.type": "none",
    "kafka.acks": "1",
    "kafka.enable.idempotence": "false",
}
SESSION = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.memory": "1g",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
"""As for the node's jobs, written again so that this program starts without HPwsn.

Spark's own state store, in memory, is the faster one for this job; it stays the default.
"""


def described() -> str:
    """How Kafka and Spark are set up, for the notes of a table."""
    options = {**READING, **WRITING}
    return ", ".join(f"{name.removeprefix('kafka.')}={value}" for name, value in options.items())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a job until it is stopped or, with --once, until it has read what there is."""
    asked = _parser().parse_args(arguments)
    spark = _session(asked)
    events = _events(spark, asked)
    made = _filtered(events, asked.below) if asked.job == "filter" else _counted(events, asked.lateness)
    rows = made.select(fn.col("cid").alias("key"), fn.to_json(fn.struct("*")).alias("value"))
    writer = rows.writeStream.format("kafka").outputMode("append").queryName(asked.job)
    options = {**WRITING, "kafka.linger.ms": asked.linger, "kafka.bootstrap.servers": asked.servers}
    writer = writer.options(**options, topic=asked.output, checkpointLocation=asked.checkpoint)
    if asked.once:
        writer = writer.trigger(availableNow=True)
    query = writer.start()
    print("runs", flush=True)
    query.awaitTermination()
    spark.stop()


def _session(asked: argparse.Namespace) -> SparkSession:
    builder = SparkSession.builder.appName("kafka").master(asked.master).config("spark.jars", asked.jars)
    for key, value in {**SESSION, **dict(one.split("=", 1) for one in asked.conf)}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _events(spark: SparkSession, asked: argparse.Namespace) -> DataFrame:
    options = {**READING, "kafka.bootstrap.servers": asked.servers, "subscribe": asked.input}
    options |= {"startingOffsets": "earliest", "maxOffsetsPerTrigger": asked.rows}
    messages = spark.readStream.format("kafka").options(**options).load()
    parsed = fn.from_json(fn.col("value").cast("string"), asked.schema).alias("event")
    return messages.select(parsed).select("event.*")


def _filtered(events: DataFrame, below: str) -> DataFrame:
    return events.where(fn.col("cid") < below)


def _counted(events: DataFrame, lateness: str) -> DataFrame:
    minutes = events.withWatermark("time", lateness).groupBy("cid", fn.window("time", "1 minute"))
    return minutes.agg(fn.count("*").alias("flow")).select(
        "cid", "flow", fn.col("window.start").alias("time")
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="A job of the pipeline benchmark with Kafka in and out.")
    parser.add_argument("job", choices=("filter", "count"))
    for name in ("servers", "input", "output", "checkpoint", "jars", "schema", "below", "lateness"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--rows", default="50000")
    parser.add_argument("--linger", default=WRITING["kafka.linger.ms"])
    parser.add_argument("--conf", action="append", default=[])
    parser.add_argument("--once", action="store_true")
    return parser


if __name__ == "__main__":
    main()
