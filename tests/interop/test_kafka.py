"""Stream services beside a real Kafka: its messages become events, and events become its messages."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from hpwsn.streams.definition.schema import json_of
from hpwsn.streams.generator import Traffic, anpr
from hpwsn_client import SyncClient
from tests.consumer import Consumer
from tests.harness import ROOT, NodeProcess, environment
from tests.kafka import Kafka, Message, spark_jars
from tests.needs import need
from tests.patience import PATIENCE
from tests.raw_soap import call, subscribe
from tests.spark import cheap_environment
from tests.stream_jobs import JobProcess, undo_last_commit

SERVICE = """
uri = "urn:test:seen"
topic = "traffic:seen"

[inputs.anpr]
source = "kafka"
servers = "{servers}"
topic = "anpr"
schema = "cid STRING, vid STRING, time TIMESTAMP"

[[ops]]
op = "filter"
where = "cid < 'cam-004'"
"""


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    with Kafka(tmp_path_factory.mktemp("kafka")) as running:
        yield running


def records(number: int) -> list[dict[str, Any]]:
    events = islice(anpr(9, Traffic(cameras=8)), number)
    return [{name: json_of(value) for name, value in event.items()} for event in events]


def by_camera(events: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        found[event["cid"]].append(event)
    return found


def pushed(consumer: Consumer) -> list[dict[str, Any]]:
    """The events that the node has pushed, in order of arrival."""
    return [
        {child.tag: child.text for child in message.iterfind(".//{urn:hpwsn:1}event/*")}
        for message in consumer.messages()
    ]


def messages_of(events: Iterable[dict[str, Any]]) -> list[Message]:
    return [(event["cid"], json.dumps(event, ensure_ascii=False)) for event in events]


async def test_messages_become_events_once_and_in_order_though_the_job_is_killed(
    kafka: Kafka, node: NodeProcess, tmp_path: Path
) -> None:
    given = records(1200)
    wanted = [event for event in given if event["cid"] < "cam-004"]
    kafka.create("anpr", 2)
    kafka.send("anpr", messages_of(given[:800]))
    (tmp_path / "seen.toml").write_text(SERVICE.format(servers=kafka.servers))
    arguments = ("seen.toml", "--rows", "100", "--master", "local[1]", "--jars", spark_jars())
    spark = cheap_environment(tmp_path / "conf")
    async with Consumer() as consumer:
        await call(node.url, subscribe(consumer.url, "traffic:seen"))
        with JobProcess(tmp_path, spark, node, *arguments) as job:
            await job.brings(consumer.wait(lambda c: bool(c.requests)))
            job.kill()
        undo_last_commit(tmp_path / "checkpoints")
        kafka.send("anpr", messages_of(given[800:]))
        with JobProcess(tmp_path, spark, node, *arguments) as job:
            await job.brings(consumer.wait(lambda c: len(c.messages()) >= len(wanted)))
            assert job.terminate() == 0, job.log.read_text()
        assert by_camera(pushed(consumer)) == by_camera(wanted)


def test_the_program_of_the_documentation_copies_a_topic_to_kafka(
    kafka: Kafka, node: NodeProcess, tmp_path: Path
) -> None:
    flows = [{"cid": f"cam-{n % 7}", "flow": n} for n in range(700)]
    with SyncClient(node.url) as client:
        client.notify_many(
            ("traffic:flow", f"<flow><cid>{one['cid']}</cid><flow>{one['flow']}</flow></flow>")
            for one in flows
        )
    kafka.create("flows", 2)
    page = (ROOT / "docs" / "streams.md").read_text("utf-8")
    program = re.search(r"```text\n# to_kafka\.py\n(.*?)```", page, re.DOTALL)
    assert program is not None
    (tmp_path / "to_kafka.py").write_text(program[1])
    spark = cheap_environment(tmp_path / "conf")
    spark["PYSPARK_SUBMIT_ARGS"] = f"--master local[1] --jars {spark_jars()} pyspark-shell"
    spark["PYSPARK_PYTHON"] = sys.executable
    for _ in range(2):
        # The second run continues from the checkpoint, and has nothing to copy.
        done = subprocess.run(
            [sys.executable, "to_kafka.py", node.url, kafka.servers],
            cwd=tmp_path,
            env=environment() | spark,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done.stderr
    copied = kafka.read("flows")
    assert all(json.loads(value)["cid"] == key for key, value in copied)
    assert by_camera(json.loads(value) for _, value in copied) == by_camera(flows)


def test_the_benchmark_beside_kafka_runs_a_job_on_both_and_compares_outputs(tmp_path: Path) -> None:
    need("Kafka")
    paths = os.pathsep.join([str(ROOT / "scripts"), environment()["PYTHONPATH"]])
    command = [sys.executable, "-m", "benchmarks", "pipeline", "--rows", "3000", "--rounds", "1"]
    done = subprocess.run(
        [*command, "--jobs", "filter", "--output", str(tmp_path)],
        cwd=tmp_path,
        env=environment() | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "pipeline.json").read_text("utf-8"))["rows"]
    outputs = {row["name"]: row["note"] for row in rows if row["name"].startswith("filter, rows/s ·")}
    assert set(outputs) == {"filter, rows/s · Kafka", "filter, rows/s · HPwsn, after"}
    assert all(note.startswith("equal to the reference") for note in outputs.values())
