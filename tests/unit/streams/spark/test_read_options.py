"""The options of the data source: names, old and new, defaults, and what is wrong with a value."""

import pytest

from hpwsn.streams.spark.reading.read_options import MAX_ROWS, OptionError, parse_read_options
from hpwsn_client.environment import DEFAULT_URL


@pytest.fixture(autouse=True)
def no_url(monkeypatch):
    monkeypatch.delenv("HPWSN_URL", raising=False)


def test_a_topic_is_enough_and_streams_begin_now():
    batch = parse_read_options({"subscribe": "a:b"}, stream=False)
    assert (batch.url, batch.topics, batch.start, batch.end) == (DEFAULT_URL, ("a:b",), "earliest", "latest")
    assert (batch.limit, batch.partitions, batch.key) == (MAX_ROWS, 1, "")
    assert (batch.fail_on_data_loss, batch.infer_schema) == (True, False)
    assert parse_read_options({"subscribe": "a"}, stream=True).start == "latest"


def test_the_environment_names_the_node_unless_an_option_does(monkeypatch):
    monkeypatch.setenv("HPWSN_URL", "http://node:1/wsn")
    assert parse_read_options({"topic": "a"}, stream=True).url == "http://node:1/wsn"
    assert parse_read_options({"topic": "a", "url": "http://x:2"}, stream=True).url == "http://x:2"


def test_names_are_those_of_kafka_in_any_case():
    given = {
        "Subscribe": " a, b:c ,a", "STARTINGOFFSETS": "7", "endingOffsets": "9", "startingTimestamp": "0",
        "endingTimestamp": "1000", "maxOffsetsPerTrigger": "10", "minPartitions": "4", "key": "cid",
        "failOnDataLoss": "False", "inferSchema": "TRUE", "path": "something of Spark",
    }  # fmt: skip
    found = parse_read_options(given, stream=False)
    assert (found.topics, found.subject) == (("a", "b:c"), "a, b:c")
    assert (found.start, found.end, found.start_time, found.end_time) == (7, 9, 0, 1000)
    assert (found.limit, found.partitions, found.key) == (10, 4, "cid")
    assert (found.fail_on_data_loss, found.infer_schema) == (False, True)


@pytest.mark.parametrize(
    ("start", "first"), [("oldest", "earliest"), ("now", "latest"), ("0", 1), ("41", 42)]
)
def test_earlier_names_mean_what_they_meant(start, first):
    found = parse_read_options({"topic": "a", "start": start, "rows": "5", "partitions": "2"}, stream=True)
    assert (found.topics, found.start, found.limit, found.partitions) == (("a",), first, 5, 2)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("subscribe", "a,,b", "write one or more topics"),
        ("subscribe", "", "write one or more topics"),
        ("url", "localhost:8080", "is not an http or https URL"),
        ("startingOffsets", '{"a": {"0": 1}}', "use earliest, latest or an offset"),
        ("startingOffsets", "-1", "use earliest, latest or an offset"),
        ("start", "first", "use oldest, now or an offset"),
        ("endingOffsets", "earliest", "use latest or an offset"),
        ("endingTimestamp", "2024-01-01", "use an integer from 0 on"),
        ("maxOffsetsPerTrigger", "0", "use an integer from 1 on"),
        ("rows", "many", "use an integer from 1 on"),
        ("minPartitions", "1.5", "use an integer from 1 on"),
        ("failOnDataLoss", "0", "use true or false"),
    ],
)
def test_a_wrong_value_is_named_with_what_to_write(name, value, words):
    with pytest.raises(OptionError, match=f"option {name}.*{words}"):
        parse_read_options({"subscribe": "a", name: value}, stream=False)


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp"])
def test_a_stream_has_no_end(name):
    with pytest.raises(OptionError, match=f"{name} is only for batches"):
        parse_read_options({"subscribe": "a", name: "1"}, stream=True)
