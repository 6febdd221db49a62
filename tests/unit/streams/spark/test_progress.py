"""What Spark says of a batch, as figures and as a line."""

from pyspark.sql import Row

from hpwsn.streams.spark.running import progress_figures, progress_line


def test_figures_are_those_of_the_batch():
    progress = {
        "batchId": 7,
        "numInputRows": 500,
        "durationMs": {"triggerExecution": 2000},
        "observedMetrics": {"published": Row(rows=20)},
        "sources": [
            {"endOffset": {"offset": 10}, "latestOffset": {"offset": 250, "waiting": 15}},
            {"endOffset": '{"offset": 5}', "latestOffset": '{"offset": 60, "waiting": 1}'},
            {"endOffset": {"file": "a", "row": 3}, "latestOffset": None},
        ],
    }
    found = progress_figures(progress)
    assert found == {
        "batch": 7,
        "rows_in": 500,
        "rows_out": 20,
        "rows_per_second": 250.0,
        "lag": 16,
        "batch_seconds": 2.0,
    }
    assert progress_line("urn:a", found) == "urn:a  batch 7: 500 in, 20 out, 250 rows/s, lag 16, 2.00 s"


def test_what_spark_does_not_say_is_nothing():
    nothing = {"observedMetrics": {"published": Row(rows=None)}, "sources": [{"latestOffset": "x"}]}
    assert set(progress_figures(nothing).values()) == {0}
    assert set(progress_figures({"sources": [{"latestOffset": "x"}]}).values()) == {0}
