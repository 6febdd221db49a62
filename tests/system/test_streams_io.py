"""Jobs on one Spark session: files in, by the door or by ActiveMQ out, kept, and queried again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from pyspark.sql import SparkSession

from hpwsn.errors import HpwsnError
from hpwsn.streams.definition import Definition
from hpwsn.streams.loading import load
from hpwsn.streams.reference import compute
from hpwsn.streams.schema import json_of
from hpwsn.streams.spark.history import lines, query
from hpwsn.streams.spark.inputs import register_sources
from hpwsn.streams.spark.job import Job, Options
from tests.activemq import ActiveMQ, BackedNode, until
from tests.harness import NodeProcess
from tests.spark import spark_session

pytestmark = pytest.mark.timeout(300)

READINGS = """
uri = "urn:test:readings"
topic = "readings"

[inputs.files]
source = "files"
path = "in"
format = "csv"
schema = "place STRING, n BIGINT, time TIMESTAMP"

[[ops]]
op = "filter"
where = "n != 3"

[constraints]
n = ">= 0"
"""
LARGEST = """
uri = "urn:test:largest"
topic = "largest"

[inputs.readings]
source = "service"
service = "urn:test:readings"
file = "readings.toml"

[[ops]]
op = "incrMax"
attribute = "n"
by = "place"
as = "largest"
"""


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with spark_session(tmp_path_factory.mktemp("warehouse")) as session:
        register_sources(session)
        yield session


@pytest.fixture
def services(tmp_path: Path) -> list[Definition]:
    (tmp_path / "in").mkdir()
    add_file(tmp_path, "a", range(-1, 6))
    (tmp_path / "readings.toml").write_text(READINGS)
    (tmp_path / "largest.toml").write_text(LARGEST)
    return load(tmp_path / "readings.toml", tmp_path / "largest.toml")


def add_file(folder: Path, name: str, numbers: range) -> None:
    rows = [f"{'ab'[n % 2]},{n},2026-01-01T00:00:{n % 60:02}Z\n" for n in numbers]
    (folder / "in" / f"{name}.csv").write_text("place,n,time\n" + "".join(rows))


def run(spark: SparkSession, services: list[Definition], folder: Path, at: NodeProcess, **more: Any) -> str:
    said: list[str] = []
    options = Options(url=at.url, checkpoint=str(folder / "checkpoints"), once=True, **more)
    Job(spark, services, options, said.append).run()
    return "\n".join(said)


def events(node: NodeProcess, topic: str) -> list[dict[str, Any]]:
    with urlopen(f"{node.base}/topics/{topic}/events?max=1000", timeout=30) as answer:
        return [event["data"] for event in json.load(answer)]


def numbers(node: NodeProcess) -> list[int]:
    return [event["n"] for event in events(node, "readings")]


def as_json(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: json_of(value) for name, value in event.items()} for event in given]


def test_files_are_published_once_taken_in_by_another_service_kept_and_queried_again(
    spark: SparkSession, services: list[Definition], tmp_path: Path
) -> None:
    history = str(tmp_path / "history")
    with NodeProcess(tmp_path / "node") as node:
        said = run(spark, services, tmp_path, node, history=history)
        assert "urn:test:readings  batch 0: 7 in, 5 out" in said
        assert numbers(node) == [0, 1, 2, 4, 5]
        add_file(tmp_path, "b", range(6, 9))
        run(spark, services, tmp_path, node, history=history)
        assert numbers(node) == [0, 1, 2, 4, 5, 6, 7, 8]
        expected = compute(services[1], {"readings": events(node, "readings")})
        found = events(node, "largest")
        assert sorted(map(str, found)) == sorted(map(str, as_json(expected)))
    past = [json.loads(line) for line in lines(query(spark, services[1], history))]
    assert sorted(map(str, past)) == sorted(map(str, found))
    again = [
        json.loads(line) for line in lines(query(spark, services[0], "", {"files": str(tmp_path / "in")}))
    ]
    assert [event["n"] for event in again] == [0, 1, 2, 4, 5, 6, 7, 8]
    with pytest.raises(HpwsnError, match="there are no past events of the input readings"):
        query(spark, services[1], str(tmp_path / "nowhere"))


def test_by_activemq_each_event_comes_once_whatever_is_run_again(
    spark: SparkSession, services: list[Definition], tmp_path: Path, activemq: ActiveMQ
) -> None:
    with BackedNode(tmp_path / "node", activemq.url) as node:
        node.wait()
        more = {"backbone": activemq.url, "node": node.name}
        run(spark, services[:1], tmp_path, node, **more)
        until(lambda: numbers(node) == [0, 1, 2, 4, 5])
        for commit in (tmp_path / "checkpoints").glob("*/query/commits/*0*"):
            commit.unlink()
        add_file(tmp_path, "b", range(6, 8))
        run(spark, services[:1], tmp_path, node, **more)
        until(lambda: numbers(node)[-1:] == [7])
        assert numbers(node) == [0, 1, 2, 4, 5, 6, 7]


def test_what_ends_a_job_is_said_in_a_line(
    spark: SparkSession, services: list[Definition], tmp_path: Path
) -> None:
    with NodeProcess(tmp_path / "node") as node:
        run(spark, services, tmp_path, node)
    with NodeProcess(tmp_path / "another") as node:
        with pytest.raises(HpwsnError, match=r"urn:test:largest has failed: .* that is another log\. Use"):
            run(spark, services, tmp_path, node)
        job = Job(spark, services, Options(url=node.url, checkpoint=str(tmp_path / "else")))
        job.stop()
        job.run()
        (tmp_path / "in" / "c.json").write_text("{")
        (tmp_path / "readings.toml").write_text(READINGS.replace('"csv"', '"json"'))
        with pytest.raises(HpwsnError, match=r"c\.json:1 is no JSON"):
            run(spark, load(tmp_path / "readings.toml"), tmp_path / "third", node)
