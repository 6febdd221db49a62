"""Spark's own floor for a batch: rows of its source `rate` to its sink `noop`, one a second, until killed.

    python rate_job.py CHECKPOINT

Nothing is read, computed or written: what a batch takes is what Spark takes to plan it and to note it down.
"""

import sys

from pyspark.sql import SparkSession

from benchmarks.tools.kafka_job import SESSION

FILE_CONTEXT = "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
"""Spark's default: the floor is Spark as it comes, without the settings of the jobs beside it."""


def main(checkpoint: str) -> None:
    """Run until killed; Spark's log has the figures."""
    builder = SparkSession.builder.appName("rate").master("local[2]")
    for key, value in {**SESSION, "spark.sql.streaming.checkpointFileManagerClass": FILE_CONTEXT}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    rows = spark.readStream.format("rate").option("rowsPerSecond", 1).load()
    rows.writeStream.format("noop").option("checkpointLocation", checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main(sys.argv[1])
