"""The data source `hpwsn` in a real session, with a real node: found by its name, as a table and a stream."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus, urlsplit
from urllib.request import Request, urlopen

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as fn

from hpwsn.streams.spark.reading.broker_link import BrokerLink, BrokerRefused
from tests.harness import NodeProcess
from tests.patience import PATIENCE
from tests.spark import spark_session

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
COUNT = 12_000
"""More rows than a page has."""
BODY = [
    {"n": 1, "x": 1.5, "s": "a\nb", "ok": True, "time": "2024-03-04T06:00:00Z", "place": {"x": 1}},
    {"n": "2", "x": 2, "s": "", "ok": "false", "time": "2024-03-04T14:00:00.25+08:00"},
    {"n": 3.0, "x": "many", "s": 4, "ok": None, "time": 1709532000},
    {"n": 2.5, "s": None, "time": "soon"},
]
SCHEMA = "n INT, x DOUBLE, s STRING, ok BOOLEAN, time TIMESTAMP"
SIX = datetime(2024, 3, 4, 6, tzinfo=UTC)


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session in which nothing is registered."""
    with spark_session(tmp_path_factory.mktemp("warehouse")) as session:
        yield session


@pytest.fixture(scope="module")
def topics(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    """A node with events: four on `a:b`, then many on `many`, of seven keys, and two on `c`."""
    with NodeProcess(tmp_path_factory.mktemp("node") / "data") as node:
        publish(node, "a:b", BODY, "four")
        for first in range(0, COUNT, 6000):
            publish(node, "many", [{"n": n, "key": f"k{n % 7}"} for n in range(first, first + 6000)])
        publish(node, "c", [{"n": 7}, {"n": 8}])
        yield node


def publish(node: NodeProcess, topic: str, events: list[dict[str, Any]], id_: str = "") -> int:
    """Publish events and return the offset of the first."""
    where = f"{node.base}/topics/{topic}/events" + (f"?id={id_}" if id_ else "")
    request = Request(where, json.dumps(events).encode(), {"Content-Type": "application/json"})
    with urlopen(request, timeout=PATIENCE) as answer:
        return int(json.load(answer)["first"])


def read(spark: SparkSession, node: NodeProcess, schema: str = "", **options: object) -> DataFrame:
    reader = spark.read.format("hpwsn").options(url=node.url, **options)
    return (reader.schema(schema) if schema else reader).load()


def numbers(frame: DataFrame) -> list[int]:
    return [row["n"] for row in frame.collect()]


def test_without_a_schema_a_row_is_a_notification(spark: SparkSession, topics: NodeProcess) -> None:
    frame = read(spark, topics, subscribe="a")
    assert (
        frame.schema.simpleString()
        == "struct<topic:string,offset:bigint,time:timestamp,id:string,data:string>"
    )
    rows = frame.collect()
    assert [json.loads(row["data"]) for row in rows] == BODY
    assert [(row["topic"], row["offset"], row["id"]) for row in rows] == [
        ("a:b", n, "four") for n in (1, 2, 3, 4)
    ]
    assert abs((datetime.now(UTC) - rows[0]["time"].astimezone(UTC)).total_seconds()) < PATIENCE


def test_with_a_schema_a_column_is_a_field_and_null_where_the_value_does_not_fit(
    spark: SparkSession, topics: NodeProcess
) -> None:
    rows = read(
        spark, topics, f"{SCHEMA}, _offset BIGINT, place STRING, _topic STRING", subscribe="a"
    ).collect()
    found = [tuple(row)[:4] for row in rows]
    assert found == [
        (1, 1.5, "a\nb", True),
        (2, 2.0, "", False),
        (3, None, "4", None),
        (None, None, None, None),
    ]
    quarter = SIX.replace(microsecond=250_000)
    assert [row["time"] and row["time"].astimezone(UTC) for row in rows] == [SIX, quarter, SIX, None]
    assert [row["_offset"] for row in rows] == [1, 2, 3, 4]
    assert json.loads(rows[0]["place"]) == {"x": 1}
    assert {row["_topic"] for row in rows} == {"a:b"}


def test_a_range_includes_its_start_and_excludes_its_end(spark: SparkSession, topics: NodeProcess) -> None:
    every = read(spark, topics, subscribe="a, c").select("offset", "time").collect()
    offsets = [row["offset"] for row in every]
    assert offsets == [1, 2, 3, 4, COUNT + 5, COUNT + 6]

    def between(**options: object) -> list[int]:
        return [row["offset"] for row in read(spark, topics, subscribe="a,c", **options).collect()]

    assert between(startingOffsets=3, endingOffsets=offsets[-1]) == offsets[2:-1]
    assert between(startingOffsets="latest") == between(endingOffsets=1) == []
    assert between(startingOffsets=10**9) == []
    last = int(every[-1]["time"].timestamp() * 1000)
    assert between(startingTimestamp=0, endingTimestamp=last + 1000) == offsets
    assert between(startingTimestamp=last + 1000) == between(endingTimestamp=1000) == []


def test_partitions_have_all_rows_in_order(spark: SparkSession, topics: NodeProcess) -> None:
    frame = read(spark, topics, "n BIGINT", subscribe="many", minPartitions=3)
    assert frame.rdd.getNumPartitions() == 3
    assert numbers(frame) == list(range(COUNT))


def test_the_events_of_a_key_are_in_one_partition_in_order(spark: SparkSession, topics: NodeProcess) -> None:
    frame = read(spark, topics, "key STRING, n BIGINT", subscribe="many", minPartitions=3, key="key")
    rows = frame.withColumn("part", fn.spark_partition_id()).collect()
    assert sorted(row["n"] for row in rows) == list(range(COUNT))
    for key in {row["key"] for row in rows}:
        mine = [row for row in rows if row["key"] == key]
        assert len({row["part"] for row in mine}) == 1
        assert [row["n"] for row in mine] == sorted(row["n"] for row in mine)
    assert len({row["part"] for row in rows}) > 1


def test_a_schema_is_inferred_on_request(spark: SparkSession, topics: NodeProcess) -> None:
    frame = read(spark, topics, subscribe="many", inferSchema="true")
    assert frame.schema.simpleString() == "struct<n:bigint,key:string>"
    assert frame.first() == Row(n=0, key="k0")
    with pytest.raises(PySparkException, match="there is no event on nothing to infer a schema from"):
        read(spark, topics, subscribe="nothing", inferSchema="true")


@pytest.mark.parametrize("pushed", [False, True], ids=["by Spark", "by the node"])
def test_filters_select_the_same_rows_wherever_they_are_evaluated(
    spark: SparkSession, topics: NodeProcess, pushed: bool
) -> None:
    spark.conf.set(PUSHDOWN, str(pushed).lower())
    try:
        four = read(spark, topics, SCHEMA, subscribe="a")
        assert numbers(four.where("n > 1")) == [2, 3]
        assert numbers(four.where("x >= 1.5 and s = ''")) == [2]
        assert numbers(four.where("s = '4' or n = 1")) == [1, 3]
        assert numbers(four.where("not ok")) == [2]
        assert numbers(four.where("time = timestamp'2024-03-04 06:00:00'")) == [1, 3]
        many = read(spark, topics, "n BIGINT, key STRING", subscribe="many", minPartitions=2)
        assert numbers(many.where("key = 'k3' and n < 20")) == [3, 10, 17]
        assert numbers(many.where("key like 'k3%' and n in (3, 4, 10)")) == [3, 10]
    finally:
        spark.conf.unset(PUSHDOWN)


@contextmanager
def recorder(node: NodeProcess) -> Iterator[tuple[str, list[str]]]:
    """The address of a relay to the node, and the requests that it has passed on."""
    asked: list[str] = []

    class Relay(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked.append(f"{self.command} {unquote_plus(self.path)}")
            connection = HTTPConnection(urlsplit(node.base).netloc, timeout=PATIENCE)
            connection.request(self.command, self.path, headers=dict(self.headers))
            answer = connection.getresponse()
            body = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
            connection.close()

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *words: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Relay) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/wsn", asked
        server.shutdown()


def test_the_node_gets_the_filters_and_only_the_columns_of_the_schema(
    spark: SparkSession, topics: NodeProcess
) -> None:
    spark.conf.set(PUSHDOWN, "true")
    try:
        with recorder(topics) as (url, asked):
            frame = (
                spark.read.format("hpwsn").schema("n BIGINT, key STRING").options(url=url, subscribe="many")
            )
            assert numbers(frame.load().where("key = 'k3' and n < 20")) == [3, 10, 17]
    finally:
        spark.conf.unset(PUSHDOWN)
    pages = [one for one in asked if one.startswith("GET") and "column=" in one]
    assert pages and all('key = "k3"' in one and "n < 20" in one for one in pages)
    assert all("column=n&column=key&" in one for one in pages)


def test_a_filter_outside_of_a_constraint_selects_nothing_by_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    with NodeProcess(tmp_path / "data") as node:
        link = BrokerLink(node.url)
        document = {"topic": "kinds", "instance": "one", "attributes": {"kind": "string"}}
        link.register("urn:test:kinds", {**document, "constraints": {"kind": '= "car"'}})
        with pytest.raises(BrokerRefused, match="lies outside the constraint"):
            link.rows(["kinds"], 0, 0, limit=1, condition='(kind = "bus")')
        link.close()
        publish(node, "kinds", [{"kind": "car"}])
        spark.conf.set(PUSHDOWN, "true")
        try:
            frame = read(spark, node, "kind STRING", subscribe="kinds")
            assert frame.where("kind = 'bus'").collect() == []
            assert frame.where("kind = 'car'").collect() == [Row(kind="car")]
        finally:
            spark.conf.unset(PUSHDOWN)


def test_wrong_options_and_schemas_are_named(spark: SparkSession, topics: NodeProcess) -> None:
    for words, schema, options in (
        ("the option subscribe is ''", "n INT", {}),
        (
            "the option startingOffsets is 'first'; use earliest, latest or an offset",
            "",
            {"startingOffsets": "first"},
        ),
        ("the option minPartitions is '0'; use an integer from 1 on", "", {"minPartitions": "0"}),
        ("the option failOnDataLoss is 'yes'; use true or false", "", {"failOnDataLoss": "yes"}),
        ("the column a cannot be list", "a ARRAY<INT>", {}),
        ("the column _offset cannot be", "_offset DATE", {}),
    ):
        given = {"subscribe": "a", **options} if "subscribe" not in words else options
        with pytest.raises(PySparkException, match=words):
            read(spark, topics, schema, **given).collect()


def test_a_topic_outside_of_a_fixed_tree_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "topics.toml").write_text("[topics]\nknown = {}\n")
    with NodeProcess(tmp_path / "data", "--topics", str(tmp_path / "topics.toml")) as node:
        assert read(spark, node, subscribe="known").collect() == []
        with pytest.raises(PySparkException, match="unknown"):
            read(spark, node, subscribe="known,unknown").collect()


# Streams


def run_stream(frame: DataFrame, folder: Path) -> None:
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(folder / "out"))
    assert query.awaitTermination(PATIENCE)


def stream(spark: SparkSession, node: NodeProcess, schema: str, **options: object) -> DataFrame:
    return spark.readStream.format("hpwsn").schema(schema).options(url=node.url, **options).load()


def test_a_stream_continues_and_a_batch_that_runs_again_has_the_same_partitions(
    spark: SparkSession, tmp_path: Path
) -> None:
    schema = "n BIGINT, _offset BIGINT"
    with NodeProcess(tmp_path / "node") as node:
        publish(node, "t", [{"n": n} for n in range(10)])
        publish(node, "u", [{"n": 100}])
        options: dict[str, object] = {"subscribe": "t,u", "startingOffsets": 4, "maxOffsetsPerTrigger": 5}
        run_stream(stream(spark, node, schema, **options, minPartitions=2), tmp_path)
        assert kept(spark, tmp_path) == [*range(3, 10), 100]
        ends = [json.loads(line) for line in offsets_of(tmp_path)]
        assert ends == [{"offset": 8, "partitions": 2}, {"offset": 11, "partitions": 2}]
        publish(node, "t", [{"n": 10}])
        commits = tmp_path / "checkpoint" / "commits"
        (commits / "1").unlink()
        (commits / ".1.crc").unlink(missing_ok=True)
        run_stream(stream(spark, node, schema, **options, minPartitions=7), tmp_path)
        # Spark's file sink knows the batch that it has written.
        assert kept(spark, tmp_path) == [*range(3, 10), 10, 100]
        assert json.loads(offsets_of(tmp_path)[1]) == ends[1]
        assert json.loads(offsets_of(tmp_path)[2]) == {"offset": 12, "partitions": 7}


def kept(spark: SparkSession, folder: Path) -> list[int]:
    return sorted(numbers(spark.read.parquet(str(folder / "out"))))


def offsets_of(folder: Path) -> list[str]:
    """The end of each batch in a checkpoint."""
    files = (folder / "checkpoint" / "offsets").glob("[0-9]*")
    return [file.read_text().splitlines()[-1] for file in sorted(files, key=lambda file: int(file.name))]


def test_a_stream_without_a_start_begins_now_and_one_for_another_log_ends(
    spark: SparkSession, topics: NodeProcess, tmp_path: Path
) -> None:
    run_stream(stream(spark, topics, "n BIGINT", subscribe="many"), tmp_path / "now")
    assert [json.loads(end) for end in offsets_of(tmp_path / "now")] == [{"offset": COUNT + 6}]
    run_stream(stream(spark, topics, "n BIGINT", subscribe="c", startingOffsets="earliest"), tmp_path / "old")
    assert kept(spark, tmp_path / "old") == [7, 8]
    with NodeProcess(tmp_path / "node") as node:
        publish(node, "c", [{"n": 1}])
        with pytest.raises(StreamingQueryException, match="belongs to another log; restore"):
            run_stream(stream(spark, node, "n BIGINT", subscribe="c"), tmp_path / "old")
