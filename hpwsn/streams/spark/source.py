"""The Spark data source `hpwsn`: topics of a node as a stream or a table, and the results back to a topic.

PySpark finds the format by its name in an environment in which HPwsn is installed (the package
`pyspark_hpwsn`); `spark.dataSource.register` is not required. docs/streams.md lists the options. The schema
of a reader names the fields of the events that it reads; a value that does not have the type of its column
is null, as in Spark's permissive readers.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from hpwsn.errors import HpwsnError
from hpwsn.streams.spark.reading.batch_reader import PATIENCE, batch_reader
from hpwsn.streams.spark.reading.broker_link import kept_link
from hpwsn.streams.spark.reading.read_options import MAX_ROWS, parse_read_options
from hpwsn.streams.spark.reading.row_batches import check_schema
from hpwsn.streams.spark.reading.schema_inference import infer_schema
from hpwsn.streams.spark.reading.stream_reader import TopicStreamReader
from hpwsn_client.environment import broker_url

__all__ = ["FORMAT", "MAX_ROWS", "HpwsnDataSource", "arrow_schema"]

FORMAT = "hpwsn"
RAW_SCHEMA = "topic STRING, offset BIGINT, time TIMESTAMP, id STRING, data STRING"


class HpwsnDataSource(DataSource):
    """`spark.read`, `spark.readStream` and `df.writeStream` with `.format("hpwsn")`."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return FORMAT

    def schema(self) -> StructType | str:
        """The schema if the user gives none: that of the notifications, or inferred from events."""
        options = parse_read_options(self.options, stream=False)
        if not options.infer_schema:
            return RAW_SCHEMA
        with kept_link(options.url, PATIENCE, options.token) as link:
            return infer_schema(link, options)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Read a range of the log; see hpwsn.streams.spark.reading.batch_reader."""
        return batch_reader(parse_read_options(self.options, stream=False), arrow_schema(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Follow the log; see hpwsn.streams.spark.reading.stream_reader."""
        options = parse_read_options(self.options, stream=True)
        if options.past:
            from hpwsn.streams.spark.reading.past_reader import PastStreamReader

            return PastStreamReader(options, arrow_schema(schema))
        return TopicStreamReader(options, arrow_schema(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Publish a table to a topic; see hpwsn.streams.spark.publishing.sink."""
        from hpwsn.streams.spark.publishing.sink import TableWriter

        if overwrite:
            raise HpwsnError("a topic cannot be overwritten; use mode('append')")
        return TableWriter({"url": broker_url(), **_in_lower_case(self.options)})

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """Publish to a topic; see hpwsn.streams.spark.publishing.sink."""
        from hpwsn.streams.spark.publishing.sink import TopicWriter

        return TopicWriter({"url": broker_url(), **_in_lower_case(self.options)})


def arrow_schema(schema: StructType) -> pa.Schema:
    """The schema as Spark expects it from a reader; HpwsnError if events do not have its types."""
    try:
        found = to_arrow_schema(schema, timezone="UTC")
    except (TypeError, ValueError) as error:
        raise HpwsnError(f"the schema {schema.simpleString()} cannot be read: {error}") from error
    check_schema(found)
    return found


def _in_lower_case(options: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in options.items()}
