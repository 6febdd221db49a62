"""Runs queries in SQL, and asks Spark which attributes they give.

Streams are temporary views while Spark analyses a query; the views are removed afterwards. `QueryAnalysis`
analyses a query over streams without data, so that `hpwsn streams check` reports errors of syntax, unknown
attributes, and operations that Spark does not support on streams. Errors are Spark's own, in one line.
"""

import logging
import re
from collections.abc import Callable, Mapping

from pyspark.errors import AnalysisException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.types import DataType

from hpwsn.streams.definition.operator import StreamType
from hpwsn.streams.definition.schema import Schema, SchemaError, Type, parse_schema
from hpwsn.streams.operators.sql import QueryError, Tables, is_stateful
from hpwsn.streams.spark.columns import spark_type

_SQL_STATE = re.compile(r"\.?\s*SQLSTATE: \w+;?(?: \(?(line \d+),? (pos \d+)\)?)?;?")
_UNKNOWN_TABLE = "TABLE_OR_VIEW_NOT_FOUND"
_OUTPUT_MODE = "STREAMING_OUTPUT_MODE"


def run_query(query: str, frames: Mapping[str, DataFrame]) -> DataFrame:
    """The result of a query over frames by table name."""
    spark = next(iter(frames.values())).sparkSession
    for name, frame in frames.items():
        frame.createOrReplaceTempView("`" + name.replace("`", "``") + "`")
    try:
        return spark.sql(query)
    finally:
        for name in frames:
            spark.catalog.dropTempView(name)


class QueryAnalysis:
    """Finds the schema of a query; `streams` also checks that Spark can run the query on streams.

    `session` is called when the first query is analysed, so that definitions without SQL need no Spark.
    """

    def __init__(self, session: Callable[[], SparkSession], streams: bool = True) -> None:
        self._session = session
        self._streams = streams

    def __call__(self, query: str, tables: Tables) -> Schema:
        """The attributes that the query gives; QueryError has Spark's message."""
        spark = self._session()
        # PySpark would log each error with its stack trace; the message of the exception is enough.
        PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)
        frames = {name: self._empty(spark, one, is_stateful(query)) for name, one in tables.items()}
        try:
            found = run_query(query, frames)
            if self._streams:
                _check_streams(spark, found)
        except AnalysisException as error:
            raise QueryError(_message(error, tables)) from None
        return Schema(tuple((field.name, _type(field.name, field.dataType)) for field in found.schema))

    def _empty(self, spark: SparkSession, stream: StreamType, watermark: bool) -> DataFrame:
        """A frame with the attributes of a stream, with its watermark if the query needs one."""
        if self._streams:
            rows = spark.readStream.format("rate").load()
        else:
            rows = spark.createDataFrame([], "timestamp TIMESTAMP")
        frame = rows.select(
            *(
                (fn.col("timestamp") if name == stream.time else fn.lit(None).cast(spark_type(kind))).alias(
                    name
                )
                for name, kind in stream.schema
            )
        )
        return frame.withWatermark(stream.time, "0 seconds") if watermark and stream.time else frame


def _check_streams(spark: SparkSession, frame: DataFrame) -> None:
    """Raise AnalysisException if Spark cannot run the frame as a stream; Spark itself checks at the start."""
    jvm = spark._jvm
    assert jvm is not None
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    append = jvm.org.apache.spark.sql.streaming.OutputMode.Append()
    checker.checkForStreaming(frame._jdf.queryExecution().analyzed(), append)


def _message(error: AnalysisException, tables: Tables) -> str:
    """Spark's message in one line, without the plan and the SQL state."""
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), "Spark rejects the query")
    text = _SQL_STATE.sub(lambda found: f" ({found[1]}, {found[2]})" if found[1] else "", text).rstrip(".;")
    condition = error.getCondition() or ""
    if condition == _UNKNOWN_TABLE:
        return f"{text.split('. ')[0]}; the tables are {', '.join(tables)}"
    if condition.startswith(_OUTPUT_MODE):
        return f"{text}; also group by a window of the event time, such as window(time, '60 seconds')"
    return text


def _type(name: str, kind: DataType) -> Type:
    written = kind.simpleString()
    try:
        return parse_schema(f"x {written}")["x"]
    except SchemaError:
        raise QueryError(
            f"the column {name} is {written.upper()}, which no event can hold; select its fields, or cast it"
        ) from None
