"""Spark reads the files of kept readings: as a table with days and kinds, and as the past of a service."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from pyspark.sql import SparkSession

from hpwsn.broker.housekeeping import Housekeeping, RetentionPolicy
from hpwsn.node import Node
from hpwsn.settings import Config
from hpwsn.streams.definition.definition import Definition
from hpwsn.streams.definition_files import load
from hpwsn.streams.spark.history import json_lines, query_history
from hpwsn.streams.spark.inputs import register_sources
from hpwsn.streams.spark.job import Job, Options
from tests.harness import NodeProcess
from tests.spark import events_of, spark_session

BEGIN = (datetime.now(UTC) - timedelta(days=2)).replace(hour=23, minute=59, second=0, microsecond=0)
"""A minute before midnight, so that readings are of two days."""
SETTINGS = ("--set", "sensors.max_age=10d")
MEANS = """
uri = "urn:test:means"
topic = "means"

[inputs.readings]
source = "topic"
topic = "sensors:weather"
schema = "sensor STRING, kind STRING, time TIMESTAMP, t DOUBLE"

[[ops]]
op = "filter"
where = "kind = 'weather'"

[[ops]]
op = "avg"
by = "sensor"
window = "60 s"
attribute = "t"
output = "mean"
"""
KEPT = """
uri = "urn:test:kept"
topic = "kept"

[inputs.readings]
source = "topic"
topic = "sensors:weather"
past = "data/readings"
schema = "sensor STRING, kind STRING, time TIMESTAMP, t DOUBLE, h DOUBLE"

[[ops]]
op = "filter"
where = "t >= 0"
"""


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with spark_session(tmp_path_factory.mktemp("warehouse")) as session:
        register_sources(session)
        yield session


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    """A node with readings of two days and kinds, all of them in files."""
    data = tmp_path_factory.mktemp("node") / "data"
    with NodeProcess(data, *SETTINGS) as node:
        register(node)
        # Each of two runs of the node writes its own files.
        for first in (0, 60):
            measure(node, first)
            assert node.terminate() == 0
            node.start()
        yield node


def register(node: NodeProcess) -> None:
    quantities = {"weather": ("t", "h"), "sea": ("level",)}
    sensors = [
        {"id": f"{kind}-{n}", "kind": kind, "quantities": {name: {"unit": ""} for name in names}}
        for kind, names in quantities.items()
        for n in range(2)
    ]
    request(node, "sensors", sensors)


def measure(node: NodeProcess, first: int) -> None:
    """Send what the sensors measure in a minute."""
    request(node, "readings", [each for n in range(first, first + 60) for each in readings(n)])


def readings(n: int) -> Iterator[dict[str, Any]]:
    """What the sensors measure in one of the 120 seconds."""
    time = (BEGIN + timedelta(seconds=n)).isoformat()
    yield {"sensor": f"weather-{n % 2}", "time": time, "t": float(n), **({"h": 0.5} if n % 3 else {})}
    yield {"sensor": "sea-0", "time": time, "level": -float(n)}


def request(node: NodeProcess, path: str, body: object = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(f"{node.base}/{path}", data=data)) as response:
        return json.load(response)


def means(folder: Path) -> Definition:
    (folder / "means.toml").write_text(MEANS)
    (definition,) = load(folder / "means.toml")
    return definition


def test_a_table_has_every_reading_with_its_day_and_kind(spark: SparkSession, node: NodeProcess) -> None:
    folder = str(node.data / "readings")
    found = events_of(spark.read.option("mergeSchema", "true").parquet(folder).orderBy("time", "offset"))
    items = request(node, "readings?limit=1000")["items"]
    assert len(items) == 240
    assert {name for event in found for name in event} == {
        *("offset", "sensor", "time", "longitude", "latitude", "day", "kind", "t", "h", "level")
    }
    seen = []
    for event in found:
        time = event.pop("time")
        assert isinstance(time, datetime)
        assert (event.pop("offset"), event.pop("day")) != (None, None)
        text = time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        seen.append({"time": text, **{name: value for name, value in event.items() if value is not None}})
    assert seen == items
    table = spark.read.parquet(folder)
    days = {row.day: row["count"] for row in table.groupBy("day").count().collect()}
    assert days == {date.fromisoformat(f"{BEGIN + timedelta(days=n):%Y-%m-%d}"): 120 for n in range(2)}
    assert table.where(f"kind = 'weather' and day = '{BEGIN:%Y-%m-%d}'").count() == 60


def test_a_service_runs_on_the_readings_of_its_topic(
    spark: SparkSession, node: NodeProcess, tmp_path: Path
) -> None:
    past = query_history(spark, means(tmp_path), "", {"readings": str(node.data / "readings")})
    found = [json.loads(line) for line in json_lines(past)]
    expected = {(f"weather-{n}", minute): 29.0 + n + 60 * minute for n in range(2) for minute in range(2)}
    assert len(found) == len(expected)
    assert sorted(event["mean"] for event in found) == sorted(expected.values())


async def empty_log(data: Path) -> None:
    """Remove from the log of a stopped node what nobody needs, as its retention does with time."""
    default = Config()
    config = replace(
        default,
        server=replace(default.server, port=0),
        data=replace(default.data, dir=str(data)),
        journal=replace(default.journal, retention_age=0.0),
    )
    node = Node(config)
    await node.start()
    housekeeping = Housekeeping(
        node.parts.broker, RetentionPolicy.of(config), needed_from=node.parts.needed_from
    )
    await housekeeping.tidy()
    await node.close()


def test_a_service_begins_with_the_kept_readings_and_goes_on_with_the_log(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "kept.toml").write_text(KEPT)
    services = load(tmp_path / "kept.toml")

    def published(node: NodeProcess) -> list[float]:
        options = Options(url=node.url, checkpoint=str(tmp_path / "checkpoints"), once=True, rows=25)
        Job(spark, services, options).run()
        events = [event["data"] for event in request(node, "topics/kept/events?after=0&max=1000")]
        assert all(event.get("h") == (0.5 if event["t"] % 3 else None) for event in events)
        # A request of readings of several sensors is stored by sensor.
        for sensor in ("weather-0", "weather-1"):
            own = [event["t"] for event in events if event["sensor"] == sensor]
            assert own == sorted(own)
        return sorted(event["t"] for event in events)

    with NodeProcess(tmp_path / "data", *SETTINGS) as node:
        register(node)
        for first in (0, 60):
            measure(node, first)
            assert node.terminate() == 0
            asyncio.run(empty_log(node.data))
            node.start()
        assert request(node, "topics/sensors/events?after=0") == []
        measure(node, 120)  # these are in the log, and not in files
        assert published(node) == [float(n) for n in range(180)]
        measure(node, 180)
        assert node.terminate() == 0  # and now all are in files
        node.start()
        measure(node, 240)
        assert published(node) == [float(n) for n in range(300)]
