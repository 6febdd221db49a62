"""The Spark session of stream services: Spark's settings for short batches, and its start.

The user's settings (`--conf`) win over these, except over what operators require (CONFIGURATION).
docs/performance.md has what the settings bring.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from hpwsn.errors import HpwsnError
from hpwsn.streams.deployment.cluster_settings import master_settings
from hpwsn.streams.spark.dataframes import CONFIGURATION
from hpwsn.streams.spark.inputs import register_sources

JAVA_MISSING = "Spark requires Java 17 or later; install it (Debian: default-jre-headless), or set JAVA_HOME"
_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing."
TUNING = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Keeps figures of past batches for Spark's page; streams run --ui turns both on.
    "spark.sql.streaming.ui.enabled": "false",
    # By TCP, each task of Python waits 40 ms for a delayed acknowledgement of its last small packet.
    "spark.python.unix.domain.socket.enabled": "true",
    # State that changed is logged, instead of whole files of RocksDB copied in every batch.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
LOCAL_CHECKPOINT = {
    # Spark's default renames a file by way of Hadoop's FileContext, which starts the programs readlink and
    # chmod several times for each of the files of a batch. In a folder, renaming is atomic either way.
    "spark.sql.streaming.checkpointFileManagerClass": f"{_CHECKPOINTS}FileSystemBasedCheckpointFileManager",
}


def open_session(
    name: str,
    master: str,
    conf: Mapping[str, str] | None = None,
    packages: str = "",
    archive: Path | None = None,
    checkpoint: str = "",
) -> SparkSession:
    """Open a Spark session for stream services; HpwsnError if Java is missing.

    `archive` is the environment of the workers; without one they need an installation of HPwsn.
    `checkpoint` says on which file system the checkpoints are.
    """
    settings = {
        **TUNING,
        **({} if "://" in checkpoint else LOCAL_CHECKPOINT),
        **({"spark.jars.packages": packages} if packages else {}),
        **(conf or {}),
        **master_settings(master, conf or {}, archive),
        **CONFIGURATION,
    }
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        spark = builder.getOrCreate()
    except (PySparkRuntimeError, OSError) as error:
        raise HpwsnError(f"{JAVA_MISSING} ({str(error).splitlines()[0]})") from error
    spark.sparkContext.setLogLevel("ERROR")
    # py4j would log a line for each call to the JVM.
    logging.getLogger("py4j").setLevel(logging.ERROR)
    register_sources(spark)
    return spark
