"""The package by which PySpark finds the data source `hpwsn`: it looks for `DefaultSource` in `pyspark_*`."""

from hpwsn.streams.spark.source import HpwsnDataSource as DefaultSource

__all__ = ["DefaultSource"]
