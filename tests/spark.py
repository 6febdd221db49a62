"""A Spark session for the tests of one file, and rows of it as events."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from hpwsn.streams.schema import Event
from hpwsn.streams.spark.operators import CONFIGURATION

ROOT = Path(__file__).resolve().parents[1]
SMALL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "1g",
    # For a few rows, compiling costs more than it saves.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@contextmanager
def spark_session(folder: Path) -> Iterator[SparkSession]:
    """A session on two cores, whose workers find the project as pytest does; stopped with its JVM."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(ROOT / "client")]))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master("local[2]").config("spark.sql.warehouse.dir", str(folder))
        for key, value in {**SMALL, **CONFIGURATION}.items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
        gateway = spark.sparkContext._gateway
    spark.sparkContext.setLogLevel("OFF")
    yield spark
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(30)


def events_of(frame: DataFrame) -> list[Event]:
    """The rows, with instants in UTC, whatever the zone of this machine."""
    return [
        {
            name: one.astimezone(UTC) if isinstance(one, datetime) else one
            for name, one in row.asDict().items()
        }
        for row in frame.collect()
    ]
