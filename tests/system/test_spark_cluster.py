"""`hpwsn streams run` on a real Spark standalone cluster whose workers have HPwsn only from an archive.

A filter and a count by key and minute give what the reference gives, each key in order, nothing lost and
nothing twice: undisturbed, and when a worker, the driver or the node is killed in the middle. Their input is
an internal topic, so that every worker needs the token, which no text of Spark shows.
"""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psutil
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
CAMERAS, BATCH = 7, 100
BACKLOG, MORE = 300, 100
"""Events of a phase: some batches, in the middle of which something is killed, and those after that."""
PHASES = 4
START = datetime(2026, 1, 1, 6, tzinfo=UTC)


def events(number: int) -> list[dict[str, Any]]:
    """Two events a second, a little out of order, and one of much later, which ends all windows before it."""
    seconds = [n / 2 - (n % 3) for n in range(number)]
    given = [
        {
            "camera": f"c{n * 3 % CAMERAS}",
            "kind": "car" if n % 5 else "lorry",
            "n": n,
            "time": START + timedelta(seconds=after),
        }
        for n, after in enumerate([*seconds, number + 3600])
    ]
    return as_json(given)


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


class Pipeline:
    """A node, the two services as one job on the cluster, and what the services were given so far."""

    def __init__(self, folder: Path, node: NodeProcess, environment: dict[str, str], *options: str) -> None:
        files = folder / "cars.toml", folder / "flow.toml"
        for file, text in zip(files, (CARS, FLOW), strict=True):
            file.write_text(text)
        self.services = load(*files)
        self.node = node
        self._folder, self._environment = folder, environment
        self._arguments = (*map(str, files), *options)
        self._given: list[dict[str, Any]] = []

    def job(self) -> JobProcess:
        """Start the job, from its checkpoint if there is one."""
        return JobProcess(self._folder, self._environment, self.node, *self._arguments)

    async def give(self, given: list[dict[str, Any]]) -> None:
        """Publish input."""
        self._given += given
        await publish(self.node, "seen", given)

    async def begin(self, job: JobProcess, given: list[dict[str, Any]]) -> None:
        """Publish input, and wait until some of its output is there, but not all."""
        before = await self._sizes()
        await self.give(given)

        async def has_begun() -> bool:
            return await self._sizes() != before

        await job.brings(eventually(has_begun))
        assert await self._sizes() != self._expected_sizes()

    async def complete(self, job: JobProcess, given: list[dict[str, Any]]) -> None:
        """Publish input, and wait for all output: it is the reference's, once, and each key in order."""
        await self.give(given)
        wanted = self._expected_sizes()

        async def is_complete() -> bool:
            found = await self._sizes()
            return all(one >= other for one, other in zip(found, wanted, strict=True))

        await job.brings(eventually(is_complete))
        for one in self.services:
            assert by_camera(await logged(self.node, one.topic)) == by_camera(self._expected(one))

    async def _sizes(self) -> list[int]:
        return [len(await logged(self.node, one.topic)) for one in self.services]

    def _expected_sizes(self) -> list[int]:
        return [len(self._expected(one)) for one in self.services]

    def _expected(self, service: Definition) -> list[dict[str, Any]]:
        """What the reference gives: all events, or all windows that the watermark has passed."""
        streams = {"seen": self._given}
        return as_json(compute(service, streams, watermark(service, streams)))


def by_camera(given: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found = defaultdict(list)
    for event in given:
        found[event["camera"]].append(event)
    return dict(found)


@pytest.fixture
def pipeline(tmp_path: Path, cluster: SparkCluster, archive: Path) -> Iterator[Pipeline]:
    options = (
        *("--master", cluster.url, "--archive", str(archive), "--rows", str(BATCH)),
        *("--conf", "spark.sql.shuffle.partitions=2", "--ui", "0"),
        *("--token-file", str(tmp_path / "node" / "job.token")),
    )
    topics = tmp_path / "topics.toml"
    topics.write_text("[topics.seen]\nvisibility = 'internal'\n[topics.cars]\n[topics.flow]\n")
    with NodeProcess(tmp_path / "node", "--topics", str(topics)) as node:
        spark = cluster.job_environment(tmp_path / "conf") | {"SPARK_LOCAL_IP": "127.0.0.1"}
        yield Pipeline(tmp_path, node, spark, *options)


def check_token_is_hidden(node: NodeProcess, job: JobProcess, folders: Sequence[Path]) -> None:
    """Not in a list of processes, Spark's pages, the job's checkpoints, or the logs of job and workers."""
    token = (node.data / "job.token").read_text().strip()
    assert not [process.pid for process in psutil.process_iter() if token in " ".join(cmdline(process))]
    (page,) = re.findall(r"Spark's page: (\S+)", job.log.read_text())
    for path in ("/environment/", "/jobs/", "/StreamingQuery/"):
        with urlopen(page + path) as answer:
            shown = answer.read().decode()
        assert "Spark" in shown
        assert token not in shown
    written = [job.log, *job.log.parent.joinpath("checkpoints").rglob("*")]
    written += [file for folder in folders for file in folder.glob("app-*/*/std*")]
    assert len(written) > 3
    assert not [file for file in written if file.is_file() and token.encode() in file.read_bytes()]


def cmdline(process: psutil.Process) -> list[str]:
    with suppress(psutil.Error):
        return process.cmdline()
    return []


def test_the_machines_of_the_cluster_have_neither_hpwsn_nor_its_libraries(cluster: SparkCluster) -> None:
    for module in ("hpwsn", "hpwsn_client", "pyarrow", "lxml"):
        command = (f"python{python_version()}", "-c", f"import {module}")
        done = subprocess.run(command, env=cluster.environment(), cwd="/", capture_output=True, text=True)
        assert f"No module named '{module}'" in done.stderr


async def test_whatever_is_killed_loses_and_repeats_nothing(
    pipeline: Pipeline, cluster: SparkCluster
) -> None:
    # One job for all of it, because the start of a driver and its executors costs most of the time.
    given = events(PHASES * (BACKLOG + MORE))
    phases = [given[n : n + BACKLOG + MORE] for n in range(0, len(given) - 1, BACKLOG + MORE)]
    with pipeline.job() as job:
        await pipeline.complete(job, phases[0])
        for place in cluster.work_folders():
            assert list(place.glob(f"app-*/*/{FOLDER}/hpwsn/__init__.py"))
        check_token_is_hidden(pipeline.node, job, cluster.work_folders())

        await pipeline.begin(job, phases[1][:BACKLOG])
        cluster.kill_worker()
        cluster.start_worker()
        await pipeline.complete(job, phases[1][BACKLOG:])

        await pipeline.begin(job, phases[2][:BACKLOG])
        pipeline.node.kill()
        await job.brings(holds(lambda: "waiting for the node" in job.log.read_text()))
        pipeline.node.start()
        await pipeline.complete(job, phases[2][BACKLOG:])

        await pipeline.begin(job, phases[3][:BACKLOG])
        job.kill()
    with pipeline.job() as job:
        await pipeline.complete(job, [*phases[3][BACKLOG:], given[-1]])
        assert job.terminate() == 0, job.log.read_text()
