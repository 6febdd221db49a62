"""The systems of the pipeline benchmark: a node of a checkout, and Kafka, each with its jobs and consumers.

A node is filled once. Each run starts it on a copy of its data directory, so that outputs of earlier runs are
not in its log. Kafka runs all the time and keeps outputs in topics of their own, which do not slow it down.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.request import Request, urlopen

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.tools import kafka_job
from benchmarks.tools.checkouts import Checkout
from benchmarks.tools.pipeline_receipts import Receipts, kafka_consumer, push_consumer
from benchmarks.tools.pipeline_records import FILTER, HALF, LATENESS, SCHEMA, Record
from hpwsn_client import SyncClient

ROOT = Path(__file__).resolve().parents[3]
MASTER, PARTITIONS = "local[2]", 2
ROWS = 50_000
"""The most rows in a batch, in all systems."""
INPUT, OUTPUT = "traffic:anpr", "traffic:out"
TOGETHER = 5000
_OPERATORS = {
    FILTER: f"""op = "filter"\nwhere = "cid < '{HALF}'" """,
    "count": """op = "count"\nby = "cid"\nwindow = "60 s"\noutput = "flow" """,
}


@dataclass(frozen=True)
class Session:
    """A system that is ready for one job: its server's process id, its command, and its consumer."""

    pid: int
    command: Sequence[str]
    environment: dict[str, str]
    receipts: Receipts


class System(Protocol):
    """Something that runs the two jobs."""

    name: str

    def fill(self, records: Sequence[Record]) -> None:
        """Store the backlog, in order."""

    def send(self, record: Record) -> None:
        """Add one record while a session is open."""

    @contextmanager
    def session(self, job: str, folder: Path, once: bool) -> Iterator[Session]:
        """Be ready for a run of a job, whose files go to a folder."""


@dataclass
class Node:
    """A node of a checkout, and `hpwsn streams run` of the same one."""

    checkout: Checkout
    folder: Path
    input_lines: Sequence[str] = ()
    arguments: Sequence[str] = ()
    name: str = field(init=False)

    def __post_init__(self) -> None:
        self.name = f"HPwsn, {self.checkout.name}"
        self._filled = self.folder / "filled"
        self._base = ""

    def fill(self, records: Sequence[Record]) -> None:
        """Store the backlog by POSTs of lines, in order."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._running(self._filled):
            for first in range(0, len(records), TOGETHER):
                self._post(b"\n".join(one.line for one in records[first : first + TOGETHER]))

    def send(self, record: Record) -> None:
        """Publish one record."""
        self._post(record.line)

    def _post(self, lines: bytes) -> None:
        request = Request(f"{self._base}/topics/{INPUT}/events", lines)
        request.add_header("Content-Type", "application/x-ndjson")
        with urlopen(request, timeout=60) as answer:
            answer.read()

    @contextmanager
    def _running(self, data: Path) -> Iterator[int]:
        command = [sys.executable, "-P", "-m", "hpwsn", "serve", "--port", "0", "--data", str(data)]
        with (self.folder / "node.log").open("ab") as log:
            process = subprocess.Popen(
                [*command, "--set", "log.level=error"],
                stdout=subprocess.PIPE,
                stderr=log,
                env=self.checkout.environment(),
                cwd=self.folder,
                text=True,
            )
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if line.startswith("ready "):
                    self._base = line.split()[1].removesuffix("/wsn")
                    break
            else:
                raise RuntimeError(f"the node of {self.checkout.folder} did not start; see {log.name}")
            yield process.pid
        finally:
            process.terminate()
            process.communicate()

    @contextmanager
    def session(self, job: str, folder: Path, once: bool) -> Iterator[Session]:
        """A node on a copy of what is filled, and a push consumer."""
        data, file = folder / "data", folder / f"{job}.toml"
        shutil.copytree(self._filled, data)
        file.write_text(self._definition(job), "utf-8")
        command = [sys.executable, "-P", "-m", "hpwsn", "streams", "run", str(file), "--master", MASTER]
        command += ["--rows", str(ROWS), "--checkpoint", str(folder / "checkpoint"), *self.arguments]
        command += ["--once"] if once else []
        with self._running(data) as pid, push_consumer() as (url, receipts):
            with SyncClient(f"{self._base}/wsn") as client:
                client.subscribe(OUTPUT, url)
            yield Session(
                pid, [*command, "--url", f"{self._base}/wsn"], self.checkout.environment(), receipts
            )
        shutil.rmtree(data)

    def _definition(self, job: str) -> str:
        lines = [
            f'uri = "urn:bench:{job}"',
            f'topic = "{OUTPUT}"',
            "[inputs.anpr]",
            'source = "topic"',
            f'topic = "{INPUT}"',
            f'schema = "{SCHEMA}"',
            f'lateness = "{LATENESS.replace("econds", "")}"',
            *self.input_lines,
            "[[ops]]",
            _OPERATORS[job],
        ]
        return "\n".join([*lines, ""])


class Kafka:
    """A Kafka of scripts/kafka, and the plain jobs of kafka_job.py."""

    name = "Kafka"

    def __init__(self, folder: Path, memory: str = "1g") -> None:
        self._folder, self._memory = folder, memory
        self._outputs = 0

    @contextmanager
    def running(self) -> Iterator["Kafka"]:
        """The server while the block runs."""
        script = str(ROOT / "scripts" / "kafka")
        self._jars = subprocess.run(
            [script, "--jars"], stdout=subprocess.PIPE, text=True, check=True
        ).stdout.strip()
        command = [script, "--folder", str(self._folder), "--port", "0", "--memory", self._memory]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            if not line.startswith("ready "):
                raise RuntimeError("Kafka did not start; the lines above say why")
            self.servers, self.pid = line.split()[1], process.pid
            self._producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 0, "acks": 1})
            yield self
            # It would look for the server for ever.
            del self._producer
        finally:
            process.terminate()
            process.communicate()

    def _create(self, topic: str) -> None:
        client = AdminClient({"bootstrap.servers": self.servers})
        for created in client.create_topics([NewTopic(topic, PARTITIONS, 1)]).values():
            created.result(60)

    def fill(self, records: Sequence[Record]) -> None:
        """Store the backlog; a camera's records are in one partition, in order."""
        self._create("anpr")
        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 20, "acks": 1})
        for number, one in enumerate(records):
            producer.produce("anpr", key=one.cid, value=one.line)
            if number % 1000 == 0:
                producer.poll(0)
            if number % 50_000 == 0:
                producer.flush()
        producer.flush()

    def send(self, record: Record) -> None:
        """Publish one record."""
        self._producer.produce("anpr", key=record.cid, value=record.line)
        self._producer.flush()

    @contextmanager
    def session(self, job: str, folder: Path, once: bool) -> Iterator[Session]:
        """A new topic for outputs, and its consumer."""
        self._outputs += 1
        output = f"out-{self._outputs}"
        self._create(output)
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, kafka_job.__file__, job, "--servers", self.servers, "--input", "anpr"]
        command += ["--output", output, "--checkpoint", str(folder / "checkpoint"), "--jars", self._jars]
        command += ["--schema", SCHEMA, "--below", HALF, "--lateness", LATENESS]
        command += ["--master", MASTER, "--rows", str(ROWS), *(["--once"] if once else ["--linger", "0"])]
        with kafka_consumer(self.servers, output, PARTITIONS) as receipts:
            yield Session(self.pid, command, dict(os.environ), receipts)
