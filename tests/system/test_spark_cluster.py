"""`hpwsn streams run` on a real Spark standalone cluster whose workers have HPwsn only from an archive.

A filter and a count by key and minute give what the reference gives, each key in order, nothing lost and
nothing twice: undisturbed, and when a worker, the driver or the node is killed in the middle.
"""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hpwsn.streams.definition.definition import Definition
from hpwsn.streams.definition_files import load
from hpwsn.streams.deployment.worker_archive import FOLDER, python_version
from hpwsn.streams.plan.plan import compute, watermark
from tests.harness import NodeProcess, hpwsn
from tests.patience import eventually, holds
from tests.spark_cluster import SparkCluster
from tests.stream_jobs import JobProcess, as_json, logged, publish

CARS = """
uri = "urn:test:cars"
topic = "cars"

[inputs.seen]
source = "topic"
topic = "seen"
schema = "camera STRING, kind STRING, n BIGINT, time TIMESTAMP"

[[ops]]
op = "filter"
where = "kind = 'car'"
"""
FLOW = """
uri = "urn:test:flow"
topic = "flow"

[inputs.seen]
source = "topic"
topic = "seen"
schema = "camera STRING, kind STRING, n BIGINT, time TIMESTAMP"
lateness = "5 s"

[[ops]]
op = "count"
by = "camera"
window = "60 s"
output = "flow"
"""
EVENTS, CAMERAS, BATCH = 1200, 7, 150
START = datetime(2026, 1, 1, 6, tzinfo=UTC)


def events() -> list[dict[str, Any]]:
    """Two events a second, a little out of order, and one of much later, which ends all windows before it."""
    seconds = [n / 2 - (n % 3) for n in range(EVENTS)]
    given = [
        {
            "camera": f"c{n * n % CAMERAS}",
            "kind": "car" if n % 5 else "lorry",
            "n": n,
            "time": START + timedelta(seconds=after),
        }
        for n, after in enumerate([*seconds, EVENTS + 3600])
    ]
    return as_json(given)


GIVEN = events()
FIRST, REST = GIVEN[: EVENTS // 2], GIVEN[EVENTS // 2 :]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with SparkCluster(tmp_path_factory.mktemp("spark") / "cluster") as running:
        yield running


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    file = tmp_path_factory.mktemp("archive") / "environment.tar.gz"
    done = hpwsn("streams", "pack", "--out", str(file))
    assert done.returncode == 0, done.stderr
    assert f"for Python {python_version()}" in done.stdout
    yield file
    file.unlink()


@dataclass
class Pipeline:
    """A node, and the two services as one job on the cluster."""

    folder: Path
    node: NodeProcess
    cluster: SparkCluster
    environment: dict[str, str]
    arguments: tuple[str, ...]
    services: Sequence[Definition]

    def job(self) -> JobProcess:
        """Start the job, from its checkpoint if there is one."""
        return JobProcess(self.folder, self.environment, self.node, *self.arguments)

    async def begun(self) -> None:
        """Wait until there is some output of both services."""
        await eventually(self._has_output)

    async def _has_output(self) -> bool:
        return all([await logged(self.node, one.topic) for one in self.services])

    async def finished(self) -> None:
        """Wait until there are as many events as the reference gives."""

        async def complete() -> bool:
            found = [len(await logged(self.node, one.topic)) for one in self.services]
            return all(number >= len(expected(one)) for number, one in zip(found, self.services, strict=True))

        await eventually(complete)

    async def in_the_middle(self) -> None:
        """An assertion fails if the services have given all, or nothing."""
        for one in self.services:
            assert 0 < len(await logged(self.node, one.topic)) < len(expected(one))

    async def gave_all_once_and_in_order(self) -> None:
        """An assertion fails unless each topic has what the reference gives."""
        for one in self.services:
            assert by_camera(await logged(self.node, one.topic)) == by_camera(expected(one))


def expected(service: Definition) -> list[dict[str, Any]]:
    """What the reference gives: all, or all windows that the watermark has passed."""
    streams = {"seen": GIVEN}
    return as_json(compute(service, streams, watermark(service, streams)))


def by_camera(given: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found = defaultdict(list)
    for event in given:
        found[event["camera"]].append(event)
    return dict(found)


@pytest.fixture
def pipeline(tmp_path: Path, cluster: SparkCluster, archive: Path) -> Iterator[Pipeline]:
    files = tmp_path / "cars.toml", tmp_path / "flow.toml"
    for file, text in zip(files, (CARS, FLOW), strict=True):
        file.write_text(text)
    arguments = (
        *map(str, files),
        *("--master", cluster.url, "--archive", str(archive), "--rows", str(BATCH)),
        *("--conf", "spark.sql.shuffle.partitions=2"),
    )
    environment = cluster.job_environment(tmp_path / "conf")
    with NodeProcess(tmp_path / "node") as node:
        yield Pipeline(tmp_path, node, cluster, environment, arguments, load(*files))


def test_the_machines_of_the_cluster_have_neither_hpwsn_nor_its_libraries(cluster: SparkCluster) -> None:
    for module in ("hpwsn", "hpwsn_client", "pyarrow", "lxml"):
        command = (f"python{python_version()}", "-c", f"import {module}")
        done = subprocess.run(command, env=cluster.environment(), cwd="/", capture_output=True, text=True)
        assert f"No module named '{module}'" in done.stderr


async def test_two_workers_give_what_the_reference_gives(pipeline: Pipeline) -> None:
    await publish(pipeline.node, "seen", GIVEN)
    with pipeline.job() as job:
        await job.brings(pipeline.finished())
        assert job.terminate() == 0, job.log.read_text()
    await pipeline.gave_all_once_and_in_order()
    for worker in pipeline.cluster.work_folders():
        assert list(worker.glob(f"app-*/*/{FOLDER}/hpwsn/__init__.py"))


async def disturbed(pipeline: Pipeline, job: JobProcess, disturb: Callable[[], None]) -> None:
    """Disturb a job that has half of its input, and is in the middle of that; the rest comes afterwards."""
    await publish(pipeline.node, "seen", FIRST)
    await job.brings(pipeline.begun())
    await pipeline.in_the_middle()
    disturb()


async def test_a_killed_worker_loses_and_repeats_nothing_and_is_replaced(pipeline: Pipeline) -> None:
    with pipeline.job() as job:
        await disturbed(pipeline, job, pipeline.cluster.kill_worker)
        pipeline.cluster.start_worker()
        await publish(pipeline.node, "seen", REST)
        await job.brings(pipeline.finished())
        assert job.terminate() == 0, job.log.read_text()
    await pipeline.gave_all_once_and_in_order()
    pipeline.cluster.wait_for_workers()


async def test_a_killed_driver_goes_on_from_the_shared_checkpoint(pipeline: Pipeline) -> None:
    with pipeline.job() as job:
        await disturbed(pipeline, job, job.kill)
    await publish(pipeline.node, "seen", REST)
    with pipeline.job() as job:
        await job.brings(pipeline.finished())
        assert job.terminate() == 0, job.log.read_text()
    await pipeline.gave_all_once_and_in_order()


async def test_a_killed_node_is_waited_for_and_gets_nothing_twice(pipeline: Pipeline) -> None:
    with pipeline.job() as job:
        await disturbed(pipeline, job, pipeline.node.kill)
        await job.brings(holds(lambda: "waiting for the node" in job.log.read_text()))
        pipeline.node.start()
        await publish(pipeline.node, "seen", REST)
        await job.brings(pipeline.finished())
        assert job.terminate() == 0, job.log.read_text()
    await pipeline.gave_all_once_and_in_order()
