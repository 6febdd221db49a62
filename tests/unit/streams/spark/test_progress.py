"""What Spark says of a batch, as figures, as a line, and in the registration."""

import pytest
from pyspark.sql import Row

from hpwsn.streams.definition.builder import Service
from hpwsn.streams.plan.plan import build_plan
from hpwsn.streams.registry.service import parse_service
from hpwsn.streams.spark.running import QUERY, RunningService, progress_figures, progress_line

PROGRESS = {
    "batchId": 7,
    "numInputRows": 500,
    "durationMs": {"triggerExecution": 2000},
    "observedMetrics": {"published": Row(rows=20)},
    "sources": [
        {"endOffset": {"offset": 10}, "latestOffset": {"offset": 250, "waiting": 15}},
        {"endOffset": '{"offset": 5}', "latestOffset": '{"offset": 60, "waiting": 1}'},
        {"endOffset": {"file": "a", "row": 3}, "latestOffset": None},
    ],
    "stateOperators": [
        {"numRowsTotal": 1000, "memoryUsedBytes": 2_000_000},
        {"numRowsTotal": 234, "memoryUsedBytes": 450_000},
    ],
}
FIGURES = {
    "batch": 7,
    "rows_in": 500,
    "rows_out": 20,
    "rows_per_second": 250.0,
    "lag": 16,
    "batch_seconds": 2.0,
    "state_rows": 1234,
    "state_bytes": 2_450_000,
}


class Query:
    """A query that has made this progress."""

    def __init__(self):
        self.lastProgress = None

    def after(self, batch, rows, lag):
        source = {"latestOffset": {"waiting": lag}}
        self.lastProgress = PROGRESS | {"batchId": batch, "numInputRows": rows, "sources": [source]}


@pytest.fixture
def service(tmp_path):
    definition = Service("urn:a", topic="a").input("r", source="rate").definition()
    return RunningService(build_plan(definition), str(tmp_path), "http://localhost:4040")


def test_figures_are_those_of_the_batch():
    assert progress_figures(PROGRESS) == FIGURES
    line = "urn:a  batch 7: 500 in, 20 out, 250 rows/s, lag 16, 2.00 s, state 1,234 rows, 2.5 MB"
    assert progress_line("urn:a", FIGURES) == line


def test_what_spark_does_not_say_is_nothing():
    nothing = {
        "observedMetrics": {"published": Row(rows=None)},
        "sources": [{"latestOffset": "x"}],
        "stateOperators": None,
    }
    assert set(progress_figures(nothing).values()) == {0}


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        (
            {"rows_in": 50_000, "lag": 350_000, "backlog": 1_000_000, "rows_per_second": 41_000},
            "lag 350,000 (65 % of the backlog done, about 9 s left),",
        ),
        ({"lag": 350_000, "backlog": 1_000_000, "rows_per_second": 1000}, "about 6 min left"),
        ({"lag": 9_000_000, "backlog": 10_000_000, "rows_per_second": 1000}, "about 2 h left"),
        ({"lag": 600, "backlog": 1000, "rows_per_second": 0}, "lag 600 (40 % of the backlog done),"),
        ({"lag": 500, "backlog": 1000}, "lag 500,"),
    ],
)  # fmt: skip
def test_a_line_says_how_far_a_backlog_is_unless_one_batch_ends_it(figures, words):
    assert words in progress_line("urn:a", FIGURES | figures)


def test_a_backlog_is_what_waited_at_most_until_all_is_done(service):
    query = service.queries[QUERY] = Query()
    found = []
    for batch, (rows, lag) in enumerate([(100, 900), (100, 800), (100, 1500), (200, 0), (10, 5)]):
        query.after(batch, rows, lag)
        assert service.update_figures()
        found.append(service.figures["backlog"])
    assert found == [1000, 1000, 1600, 0, 15]


def test_failures_of_the_run_and_the_page_of_spark_are_in_the_registration(service):
    service.count_failure(restarts=True)
    service.count_failure(restarts=False)
    document = service.document("running")
    assert document["figures"] == {"failures": 2, "restarts": 1}
    assert document["ui"] == "http://localhost:4040"
    assert "ui" not in service.document("stopped")
    assert service.restarts == 1


def test_the_registration_has_the_operators_which_a_node_takes(tmp_path):
    one = Service("urn:a", topic="a").input("r", source="rate")
    one.op("filter", where="value > 3").op("filter", where="value < 9")
    service = RunningService(build_plan(one.definition()), str(tmp_path))
    document = service.document("running")
    assert document["plan"] == [
        {"op": "filter", "inputs": ["r"], "text": "filter value > 3"},
        {"op": "filter", "inputs": [0], "text": "filter value < 9"},
    ]
    assert parse_service("urn:a", document).document()["plan"] == document["plan"]
    assert document["plan"] == service.document("stopped")["plan"]
