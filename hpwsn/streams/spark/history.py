"""The history of services: past events as Parquet files, and queries over them with the same operators.

Published events are read from the topic of the service and written with Spark's file sink, which writes each
event exactly once. A query runs a definition on the history of its inputs instead of their topics. All
windows are then complete and are output.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from hpwsn.errors import HpwsnError
from hpwsn.streams.definition.definition import Definition, Input
from hpwsn.streams.definition.schema import json_of
from hpwsn.streams.plan.plan import Plan, input_schema
from hpwsn.streams.spark import file_replay, source
from hpwsn.streams.spark.columns import spark_schema
from hpwsn.streams.spark.dataframes import apply
from hpwsn.streams.spark.inputs import input_path
from hpwsn.streams.spark.reading.file_columns import read_batches
from hpwsn.streams.spark.stateful_operators import event_of_row

TRIGGER = "10 seconds"
"""Interval between two Parquet files."""
MAX_FOLDER_NAME = 200


def write_history(
    spark: SparkSession, plan: Plan, url: str, folder: str, checkpoint: str, once: bool
) -> StreamingQuery:
    """Write the published events of a service to a folder of Parquet files, from the oldest in its topic."""
    options = {"url": url, "subscribe": plan.definition.topic, "startingOffsets": "earliest"}
    # The history keeps what the node still has; a node's retention must not end the job.
    options["failOnDataLoss"] = "false"
    events = spark.readStream.format(source.FORMAT).schema(str(plan.output.schema)).options(**options).load()
    writer = events.writeStream.format("parquet").queryName(f"history of {plan.definition.uri}")
    writer = writer.options(path=folder, checkpointLocation=checkpoint)
    triggered = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=TRIGGER)
    return triggered.start()


def query_history(
    spark: SparkSession, definition: Definition, history: str, inputs: Mapping[str, str] | None = None
) -> DataFrame:
    """Run a service on past events: at the path in `inputs` by name, else in the history folder by topic."""
    given = inputs or {}
    unknown = set(given) - set(definition.inputs)
    if unknown:
        names = ", ".join(definition.inputs)
        raise HpwsnError(f"{definition.uri} has no input {min(unknown)}; it has {names}")
    frames = {
        name: _past(spark, one, given.get(name) or _place(one, history))
        for name, one in definition.inputs.items()
    }
    return apply(definition, frames)


def _place(one: Input, history: str) -> str:
    if one.source == "files":
        return input_path(one)
    if not history or not one.text("topic"):
        raise HpwsnError(f"{one.place}: the input {one.name} has no history; give --input {one.name}=PATH")
    return str(Path(history) / folder_name(one.text("topic")))


def folder_name(name: str) -> str:
    """A unique folder name for a topic or a uri; a hash is appended if characters had to be replaced."""
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-._")[:MAX_FOLDER_NAME]
    return name if name == plain else f"{plain}-{sha256(name.encode()).hexdigest()[:12]}".lstrip("-")


def json_lines(frame: DataFrame) -> Iterator[str]:
    """The events as lines of JSON, with values as the broker formats them."""
    for row in frame.toLocalIterator():
        event = {name: json_of(value) for name, value in event_of_row(row).items()}
        yield json.dumps(event, ensure_ascii=False)


def _past(spark: SparkSession, one: Input, path: str) -> DataFrame:
    schema = input_schema(one)
    kind = _kind(one, path)
    if kind == "parquet":
        return spark.read.schema(spark_schema(schema)).parquet(path)
    # CSV and JSON are read by the same code as a stream, so that the values are the same.
    files = file_replay.files_of(path, kind)
    arrow = source.arrow_schema(spark_schema(schema))
    batches = [batch for file in files for batch in read_batches(file, kind, arrow)]
    return spark.createDataFrame(pa.Table.from_batches(batches, arrow))


def _kind(one: Input, path: str) -> str:
    found = [kind for kind, endings in file_replay.ENDINGS.items() if path.endswith(endings)]
    kind = found[0] if found else one.text("format") if one.source == "files" else "parquet"
    if not Path(path).exists() and not list(Path(path).parent.glob(Path(path).name)):
        raise HpwsnError(
            f"{one.place}: there are no past events of the input {one.name} at {path}; check the path"
        )
    return kind
