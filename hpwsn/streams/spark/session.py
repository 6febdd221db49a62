"""A Spark session for stream services, set up as their operators need it."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from hpwsn.errors import HpwsnError
from hpwsn.streams.spark.inputs import register_sources
from hpwsn.streams.spark.operators import CONFIGURATION

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
