"""Definitions that only Spark can run: queries in SQL, functions of batches, services written in Python.

The results are compared with those of the plain operators that mean the same.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from subprocess import run
from typing import Any
from urllib.request import Request, urlopen

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from hpwsn.errors import HpwsnError
from hpwsn.streams.definition.builder import Service
from hpwsn.streams.definition.definition import Definition
from hpwsn.streams.definition.operator import StreamType
from hpwsn.streams.definition.problems import DefinitionError
from hpwsn.streams.definition.schema import json_of, parse_schema
from hpwsn.streams.operators.sql import QueryError
from hpwsn.streams.plan.plan import build_plan, compute
from hpwsn.streams.spark.columns import spark_schema
from hpwsn.streams.spark.dataframes import apply
from hpwsn.streams.spark.inputs import register_sources
from hpwsn.streams.spark.job import Job, Options
from hpwsn.streams.spark.sql_analysis import QueryAnalysis
from tests.documents import ROOT, blocks_of
from tests.harness import NodeProcess
from tests.patience import PATIENCE, until
from tests.spark import cheap_environment, events_of, spark_session
from tests.stream_cases import DATA, SCHEMA
from tests.stream_jobs import JobProcess

OPERATORS = ROOT / "docs" / "stream-operators.md"
FLOWS = "SELECT c, count(v) AS n, window.start AS time FROM i GROUP BY c, window(time, '10 seconds')"


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with spark_session(tmp_path_factory.mktemp("warehouse")) as session:
        register_sources(session)
        yield session


def service(*ops: dict[str, Any], inputs: str = "i") -> Definition:
    one = Service("urn:x", topic="x")
    for name in inputs:
        one.input(name, source="topic", topic=name, schema=SCHEMA, lateness="1 s")
    for op in ops:
        one.op(**op)
    return one.definition()


def large(batch: pa.RecordBatch, least: int) -> pa.RecordBatch:
    """A function of batches as a user writes it."""
    return batch.filter(pc.greater_equal(batch["v"], least)).select(["c", "v", "time"])


LARGE = {
    "op": "function",
    "function": large,
    "batches": True,
    "schema": "c STRING, v INT, time TIMESTAMP",
    "arguments": {"least": 5},
}
COUNT = {"op": "count", "attribute": "v", "by": "c", "window": "10 s", "output": "n"}
BOTH = {"op": "merge", "input": "i", "with_": "j"}
AT_LEAST = {"op": "filter", "where": "v >= 5"}
PLAIN = {"op": "sql", "query": "SELECT c, v, time FROM input WHERE v >= 5"}
SAME = {
    "sql": ([PLAIN], [AT_LEAST, {"op": "project", "attributes": ["c", "v", "time"]}]),
    "batches": ([LARGE], [AT_LEAST, {"op": "project", "attributes": ["c", "v", "time"]}]),
    "window after sql": ([PLAIN, COUNT], [AT_LEAST, COUNT]),
    "window after batches": ([LARGE, COUNT], [AT_LEAST, COUNT]),
    "window in sql": ([{"op": "sql", "query": FLOWS}], [COUNT]),
    "sql after a merge": (
        [BOTH | {"output": "both"}, {"op": "sql", "query": FLOWS.replace("FROM i", "FROM both")}],
        [BOTH, COUNT],
    ),
    "sql of two": (
        [BOTH | {"op": "sql", "query": "SELECT c, v FROM i UNION ALL SELECT c, v FROM j"}],
        [BOTH, {"op": "project", "attributes": ["c", "v"]}],
    ),
}  # fmt: skip
"""Operators that only Spark can run, and plain ones that give the same."""


def cases() -> Iterator[tuple[str, Definition, Definition]]:
    for name, (ops, plain) in SAME.items():
        inputs = "ij" if "with_" in plain[0] else "i"
        yield name, service(*ops, inputs=inputs), service(*plain, inputs=inputs)


def counted(events: list[dict[str, Any]]) -> Counter[str]:
    return Counter(json.dumps({name: json_of(one[name]) for name in sorted(one)}) for one in events)


def test_past_data_gives_what_plain_operators_give(spark: SparkSession) -> None:
    arrow = to_arrow_schema(spark_schema(parse_schema(SCHEMA)), timezone="UTC")
    frames = {
        name: spark.createDataFrame(pa.Table.from_pylist(events, schema=arrow))
        for name, events in DATA.items()
    }
    for name, definition, plain in cases():
        wanted = counted(compute(plain, DATA))
        assert wanted
        assert counted(events_of(apply(definition, frames))) == wanted, name


def stream(spark: SparkSession, folder: Path) -> DataFrame:
    folder.mkdir()
    lines = [json.dumps({name: json_of(value) for name, value in one.items()}) for one in DATA[folder.name]]
    (folder / "all.json").write_text("\n".join(lines))
    return spark.readStream.schema(spark_schema(parse_schema(SCHEMA))).json(str(folder))


@pytest.mark.parametrize("case", ["window after sql", "window in sql", "sql after a merge"])
def test_a_stream_gives_the_windows_that_plain_operators_give(
    spark: SparkSession, case: str, tmp_path: Path
) -> None:
    definition, plain = {name: both for name, *both in cases()}[case]
    frames = {name: stream(spark, tmp_path / name) for name in definition.inputs}
    writer = apply(definition, frames).writeStream.format("parquet")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(tmp_path / "out"))
    assert query.awaitTermination(240)
    latest = min(max(one["time"] for one in DATA[name]) for name in definition.inputs)
    wanted = counted(compute(plain, DATA, latest - timedelta(seconds=1)))
    assert wanted
    assert counted(events_of(spark.read.parquet(str(tmp_path / "out")))) == wanted


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT n FORM input WHERE", "Syntax error at or near 'input' (line 1, pos 14)"),
        ("SELECT m FROM input", "`m` cannot be resolved. Did you mean one of the following? [`n`, `time`]"),
        ("SELECT * FROM nothing", "The table or view `nothing` cannot be found; the tables are i, input"),
        ("SELECT n, count(*) FROM i GROUP BY n", "also group by a window of the event time"),
        ("SELECT n FROM i ORDER BY n", "Sorting is not supported on streaming"),
        ("SELECT array(n) AS a FROM i", "the column a is ARRAY<INT>, which no event can hold"),
        ("SELECT 1 AS n", "Queries without streaming sources"),
    ],
)  # fmt: skip
def test_what_spark_says_of_a_query_is_one_line(spark: SparkSession, query: str, words: str) -> None:
    one = StreamType("i", parse_schema("n INT, time TIMESTAMP"), "time")
    with pytest.raises(QueryError) as caught:
        QueryAnalysis(lambda: spark)(query, {"i": one, "input": one})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not spark.catalog.listTables()


def test_past_data_may_have_aggregates_without_windows(spark: SparkSession) -> None:
    one = StreamType("i", parse_schema("n INT, x DECIMAL(5,2)"))
    found = QueryAnalysis(lambda: spark, streams=False)("SELECT n, sum(x) AS x FROM i GROUP BY n", {"i": one})
    assert str(found) == "n INT, x DECIMAL(15,2)"


def post(node: NodeProcess, topic: str, events: list[dict[str, Any]]) -> None:
    request = Request(f"{node.base}/topics/{topic}/events", json.dumps(events).encode())
    request.add_header("Content-Type", "application/json")
    with urlopen(request, timeout=PATIENCE) as answer:
        assert answer.status == 202


def events(node: NodeProcess, topic: str) -> list[dict[str, Any]]:
    with urlopen(f"{node.base}/topics/{topic}/events?max=1000", timeout=PATIENCE) as answer:
        return [event["data"] for event in json.load(answer)]


def registration(node: NodeProcess, uri: str) -> dict[str, Any]:
    with urlopen(f"{node.base}/streams/{uri}", timeout=PATIENCE) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def documented(name: str, folder: Path) -> Path:
    """The file that a block of the reference writes, or is."""
    begin = re.compile(rf"^(?:cat > {name} <<END|# {name})\n", re.MULTILINE)
    (block,) = [one.text for one in blocks_of(OPERATORS) if begin.search(one.text)]
    (folder / name).write_text(begin.split(block)[1].split("\nEND\n")[0])
    return folder / name


def test_the_service_in_python_of_the_documentation_runs_and_shows_sparks_page(tmp_path: Path) -> None:
    service = documented("fast.py", tmp_path)
    speeds = (("a", 70.0), ("b", 50.0), (None, 99.0), ("a", 62.2), ("c", 80.0))
    given = [{"vid": vid, "mph": mph} for vid, mph in speeds]
    with NodeProcess(tmp_path / "node") as node:
        post(node, "fleet:imperial", given)
        arguments = (str(service), "--ui", "0", "--master", "local[1]")
        with JobProcess(tmp_path, cheap_environment(tmp_path / "conf"), node, *arguments) as job:
            until(lambda: len(events(node, "fleet:fast")) == 3, job.log.read_text)
            until(lambda: registration(node, "urn:example:fast").get("figures", {}).get("rows_out"))
            page = registration(node, "urn:example:fast")["ui"]
            assert f"Spark's page: {page}\n" in job.log.read_text()
            with urlopen(f"{page}/jobs/", timeout=PATIENCE) as answer:
                assert "hpwsn streams run" in answer.read().decode()
            assert job.terminate() == 0
        found = events(node, "fleet:fast")
        figures = registration(node, "urn:example:fast")["figures"]
    assert (figures["lag"], figures["failures"], figures["restarts"]) == (0, 0, 0)
    assert sorted(map(str, found)) == [
        "{'vid': 'a', 'speed': 100.1}",
        "{'vid': 'a', 'speed': 112.7}",
        "{'vid': 'c', 'speed': 128.7}",
    ]


def test_what_a_function_of_batches_does_wrongly_ends_the_job_in_one_line(
    spark: SparkSession, tmp_path: Path
) -> None:
    one = Service("urn:test:wrong", topic="wrong").input("i", source="topic", topic="i", schema="n INT")
    one.op("function", function=lambda batch: batch, batches=True, schema="m INT")
    with NodeProcess(tmp_path / "node") as node:
        post(node, "i", [{"n": 1}])
        job = Job(spark, [one.definition()], Options(url=node.url, checkpoint=str(tmp_path / "c"), once=True))
        with pytest.raises(HpwsnError, match="<lambda> returned 0 columns m; the schema has one"):
            job.run()


def test_check_has_spark_judge_queries_and_says_nothing_else(tmp_path: Path) -> None:
    busy = documented("busy.toml", tmp_path)
    wrong = tmp_path / "wrong.toml"
    text = busy.read_text()
    assert "schema = " in text
    wrong.write_text(
        text.replace("urn:example:busy", "urn:wrong").replace("cid, window.start", "cdi, window.start")
    )
    environment = {**os.environ, **cheap_environment(tmp_path / "conf")}
    command = [sys.executable, "-m", "hpwsn", "streams", "check"]
    fine = run([*command, busy], env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert (fine.returncode, fine.stderr) == (0, "")
    assert "cid STRING, time TIMESTAMP, flow BIGINT, vehicles BIGINT" in fine.stdout
    found = run([*command, busy, wrong], env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert found.returncode == 1
    assert found.stderr.startswith(f"hpwsn: error: {wrong}:6: operator 1 (sql): query: [UNRESOLVED_COLUMN")
    assert found.stderr.count("\n") == 1
    without = {**environment, "PATH": "/nowhere", "JAVA_HOME": ""}
    unsure = run([*command, busy], env=without, capture_output=True, text=True, timeout=PATIENCE)
    assert unsure.returncode == 0
    assert unsure.stderr.startswith("hpwsn: warning: the queries in SQL were not checked")


def test_a_query_without_a_schema_needs_spark(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="only Spark can find it out"):
        build_plan(service(PLAIN))
