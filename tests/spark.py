"""A Spark session for the tests of one file, and rows of it as events."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from hpwsn.streams.definition.schema import Event
from hpwsn.streams.spark.dataframes import CONFIGURATION
from tests.needs import need
from tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[1]
LOOKUP = ROOT / "hpwsn" / "streams" / "spark" / "lookup"
"""Where PySpark finds the data source by its name, as in an environment with HPwsn."""
CHEAP = {
    # For a few rows, compiling and planning again cost more than they save.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
SMALL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.memory": "1g",
    **CHEAP,
}


def cheap_environment(folder: Path) -> dict[str, str]:
    """What a command is given so that the Spark it starts is a cheap one, whatever its arguments."""
    need("Java 17 or later")
    folder.mkdir()
    lines = [f"{key} {value}\n" for key, value in CHEAP.items()]
    (folder / "spark-defaults.conf").write_text("".join(lines))
    return {"SPARK_CONF_DIR": str(folder), "PYTHONWARNINGS": "ignore"}


@contextmanager
def spark_session(folder: Path) -> Iterator[SparkSession]:
    """A session on one core, whose workers find the project as pytest does; stopped with its JVM."""
    need("Java 17 or later")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(map(str, (ROOT, ROOT / "client", LOOKUP))))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master("local[1]").config("spark.sql.warehouse.dir", str(folder))
        for key, value in {**SMALL, **CONFIGURATION}.items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
        gateway = spark.sparkContext._gateway
    spark.sparkContext.setLogLevel("OFF")
    yield spark
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(PATIENCE)
    # Else the next file of this process would ask the JVM that is gone.
    SparkContext._gateway = SparkContext._jvm = None


def events_of(frame: DataFrame) -> list[Event]:
    """The rows, with instants in UTC, whatever the zone of this machine."""
    return [
        {
            name: one.astimezone(UTC) if isinstance(one, datetime) else one
            for name, one in row.asDict().items()
        }
        for row in frame.collect()
    ]
