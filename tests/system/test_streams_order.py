"""The order in which services publish, with more rows than a request has and keys in several partitions, and
what is run again; and the sink that users write to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import accumulate, groupby
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from hpwsn.streams.definition.definition_toml import parse_document
from hpwsn.streams.definition.schema import json_of
from hpwsn.streams.plan.plan import compute
from hpwsn.streams.spark.inputs import register_sources
from hpwsn.streams.spark.job import SHUFFLE_PARTITIONS, Job, Options
from tests.harness import NodeProcess
from tests.patience import PATIENCE
from tests.spark import spark_session
from tests.stream_jobs import undo_last_commit

COUNT, KEYS = 12_000, 7
"""More rows than a request has."""
START = datetime(2024, 3, 4, 6, tzinfo=UTC)
RECORDS: list[dict[str, Any]] = [
    {
        "cid": f"cam-{n * n % KEYS}",
        "n": COUNT - n,
        "time": json_of(START + timedelta(milliseconds=60 * n)),
    }
    for n in range(COUNT)
]
SERVICE = """
uri = "urn:test:{name}"
topic = "{name}"
{more}

[inputs.records]
source = "topic"
topic = "records"
schema = "cid STRING, n BIGINT, time TIMESTAMP"
{input}

{ops}
"""
FILTER = '[[ops]]\nop = "filter"\nwhere = "n > 500"'
COUNTS = '[[ops]]\nop = "count"\nby = "cid"\nwindow = "60 s"\noutput = "flow"'


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with spark_session(tmp_path_factory.mktemp("warehouse")) as session:
        register_sources(session)
        yield session


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    with NodeProcess(tmp_path_factory.mktemp("node") / "data", "--set", "journal.id_window=1s") as one:
        for first in range(0, COUNT, 6000):
            body = json.dumps(RECORDS[first : first + 6000]).encode()
            where, kind = f"{one.base}/topics/records/events", {"Content-Type": "application/json"}
            with urlopen(Request(where, body, kind), timeout=PATIENCE) as answer:
                assert answer.status == 202
        yield one


def run(
    spark: SparkSession,
    node: NodeProcess,
    folder: Path,
    name: str,
    ops: str,
    *,
    given: str = "",
    more: str = "",
    rows: int = 5000,
) -> list[dict[str, Any]]:
    """Run a service to its end, and return what it has published, in the order of the log."""
    definitions = parse_document(SERVICE.format(name=name, ops=ops, input=given, more=more))
    options = Options(url=node.url, checkpoint=str(folder), once=True, rows=rows)
    Job(spark, definitions, options).run()
    return published(node, name)


def published(node: NodeProcess, topic: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    after = 0
    while True:
        query = f"{node.base}/topics/{topic}/events?max=1000&after={after}"
        with urlopen(query, timeout=PATIENCE) as answer:
            page = json.load(answer)
        if not page:
            return found
        found += [event["data"] for event in page]
        after = page[-1]["offset"]


def by_key(events: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    ordered = sorted(events, key=lambda event: event["cid"])
    return {key: list(some) for key, some in groupby(ordered, key=lambda event: event["cid"])}


def reference(ops: str) -> list[dict[str, Any]]:
    (definition,) = parse_document(SERVICE.format(name="x", ops=ops, input="", more=""))
    return [
        {name: json_of(value) for name, value in event.items()}
        for event in compute(definition, {"records": RECORDS})
    ]


def test_a_filter_keeps_the_order_of_the_topic_and_publishes_once_if_it_is_run_again(
    spark: SparkSession, node: NodeProcess, tmp_path: Path
) -> None:
    expected = [event for event in RECORDS if event["n"] > 500]
    assert run(spark, node, tmp_path, "filtered", FILTER, rows=COUNT) == expected
    undo_last_commit(tmp_path)
    assert run(spark, node, tmp_path, "filtered", FILTER, rows=COUNT) == expected


def test_with_a_key_the_events_of_each_key_keep_their_order(
    spark: SparkSession, node: NodeProcess, tmp_path: Path
) -> None:
    found = run(spark, node, tmp_path, "keyed", FILTER, given='key = "cid"\npartitions = 3')
    expected = by_key([event for event in RECORDS if event["n"] > 500])
    assert by_key(found) == expected


def test_windows_of_a_key_come_in_the_order_of_their_time_whatever_the_partitions(
    spark: SparkSession, node: NodeProcess, tmp_path: Path
) -> None:
    spark.conf.set(SHUFFLE_PARTITIONS, "3")
    try:
        found = run(spark, node, tmp_path, "counted", COUNTS)
        # The number is the checkpoint's from now on.
        spark.conf.set(SHUFFLE_PARTITIONS, "1")
        undo_last_commit(tmp_path)
        assert run(spark, node, tmp_path, "counted", COUNTS) == found
    finally:
        spark.conf.set(SHUFFLE_PARTITIONS, "1")
    last = RECORDS[-1]["time"][:16]
    expected = [event for event in reference(COUNTS) if event["time"][:16] < last]
    assert len(found) == len(expected)
    windows = by_key(found)
    assert windows == by_key(sorted(expected, key=lambda event: event["time"]))
    assert len(windows["cam-0"]) > 5


def test_a_sorted_window_is_published_in_its_order(
    spark: SparkSession, node: NodeProcess, tmp_path: Path
) -> None:
    ops = '[[ops]]\nop = "sort"\nattribute = "n"\nwindow = "120 s"\nrank = "place"'
    found = run(spark, node, tmp_path, "sorted", ops)
    windows = [list(some) for _, some in groupby(found, key=lambda event: int(event["time"][14:16]) // 2)]
    # The last window stays open.
    assert len(windows) == 5
    for window in windows:
        assert [event["place"] for event in window] == list(range(1, len(window) + 1))
        assert [event["n"] for event in window] == sorted(event["n"] for event in window)


def test_what_row_windows_give_for_a_key_is_published_in_its_order_also_if_times_go_back(
    spark: SparkSession, node: NodeProcess, tmp_path: Path
) -> None:
    # In the second batch an older event has a greater value; a sorted window does not go by time at all.
    given = [("a", 5, 9), ("b", 1, 1), ("a", 3, 4), ("b", 7, 2), ("a", 6, 3), ("a", 4, 8), ("b", 9, 5)]
    some = [
        {"cid": cid, "n": n, "time": json_of(START + timedelta(seconds=second))} for cid, n, second in given
    ]
    text = """
uri = "urn:test:{name}"
topic = "{name}"

[inputs.mixed]
source = "topic"
topic = "mixed"
schema = "cid STRING, n BIGINT, time TIMESTAMP"

[[ops]]
op = "{op}"
attribute = "n"
by = "cid"
{more}
"""
    descending = 'order = "desc"\nwindow = "2 rows"'
    definitions = [
        *parse_document(text.format(name="mixed-peaks", op="incrMax", more="")),
        *parse_document(text.format(name="mixed-sorted", op="sort", more=descending)),
    ]
    for batch in (some[:4], some[4:]):
        body, kind = json.dumps(batch).encode(), {"Content-Type": "application/json"}
        with urlopen(Request(f"{node.base}/topics/mixed/events", body, kind), timeout=PATIENCE):
            pass
        Job(spark, definitions, Options(url=node.url, checkpoint=str(tmp_path), once=True)).run()
    peaks, ordered = by_key(published(node, "mixed-peaks")), by_key(published(node, "mixed-sorted"))
    assert [one["n"] for one in peaks["a"]] == [3, 5, 6, 6]
    assert peaks["a"][-1] == some[4]
    assert [one["n"] for one in peaks["b"]] == [1, 7, 9]
    assert [one["n"] for one in ordered["a"]] == [5, 3, 6, 4]
    assert [one["n"] for one in ordered["b"]] == [7, 1]


def test_events_without_a_time_are_accumulated_in_the_order_in_which_they_came(
    spark: SparkSession, node: NodeProcess, tmp_path: Path
) -> None:
    body = json.dumps([{"k": f"k{n % 2}", "n": n * 7 % 11} for n in range(40)]).encode()
    where, kind = f"{node.base}/topics/timeless/events", {"Content-Type": "application/json"}
    with urlopen(Request(where, body, kind), timeout=PATIENCE):
        pass
    text = """
uri = "urn:test:peaks"
topic = "peaks"

[inputs.timeless]
source = "topic"
topic = "timeless"
schema = "k STRING, n BIGINT"

[[ops]]
op = "incrMax"
attribute = "n"
by = "k"
emit = "row"
as = "peak"
"""
    definitions = parse_document(text)
    Job(spark, definitions, Options(url=node.url, checkpoint=str(tmp_path), once=True)).run()
    expected = compute(definitions[0], {"timeless": json.loads(body)})
    found = published(node, "peaks")
    assert [event for event in found if event["k"] == "k0"] == [e for e in expected if e["k"] == "k0"]
    assert [event for event in found if event["k"] == "k1"] == [e for e in expected if e["k"] == "k1"]
    peaks = [event["peak"] for event in found if event["k"] == "k0"]
    assert peaks == list(accumulate((n * 7 % 11 for n in range(0, 40, 2)), max))


def test_where_the_order_does_not_matter_all_events_are_published_once(
    spark: SparkSession, node: NodeProcess, tmp_path: Path
) -> None:
    found = run(spark, node, tmp_path, "any", FILTER, given="partitions = 2", more='order = "any"')
    assert sorted(event["n"] for event in found) == [n + 1 for n in range(500, COUNT)]


def table(spark: SparkSession, node: NodeProcess) -> DataFrame:
    reader = spark.read.format("hpwsn").schema("cid STRING, n BIGINT")
    return reader.options(url=node.url, subscribe="records").load()


def test_a_table_is_published_in_its_order(spark: SparkSession, node: NodeProcess) -> None:
    writer = table(spark, node).where("n <= 5500").write.format("hpwsn").option("url", node.url)
    writer.option("topic", "table").mode("append").save()
    expected = [{"cid": event["cid"], "n": event["n"]} for event in RECORDS if event["n"] <= 5500]
    assert published(node, "table") == expected
    with pytest.raises(PySparkException, match="cannot be overwritten"):
        writer.option("topic", "table").mode("overwrite").save()
    with pytest.raises(PySparkException, match="`topic` is missing"):
        table(spark, node).write.format("hpwsn").option("url", node.url).mode("append").save()


def test_a_stream_of_a_user_is_published_once_if_an_epoch_is_run_again(
    spark: SparkSession, node: NodeProcess, tmp_path: Path
) -> None:
    def copy() -> list[int]:
        stream = spark.readStream.format("hpwsn").schema("cid STRING, n BIGINT")
        stream = stream.options(url=node.url, subscribe="records", startingOffsets="earliest")
        writer = stream.load().writeStream.format("hpwsn").options(url=node.url, topic="copy")
        writer = writer.option("checkpointLocation", str(tmp_path / "a" / "query"))
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(PATIENCE)
        return [event["n"] for event in published(node, "copy")]

    expected = [event["n"] for event in RECORDS]
    assert copy() == expected
    undo_last_commit(tmp_path)
    assert copy() == expected
