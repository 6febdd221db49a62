"""A real Kafka in a process of its own, started as a developer starts it, and what a test asks it."""

from __future__ import annotations

import os
import selectors
import subprocess
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.harness import ROOT, quiet_port
from tests.needs import need
from tests.patience import PATIENCE

Message = tuple[str, str]
"""Key and value."""


class Kafka:
    """`scripts/kafka` as a child; its port and folder stay the same over a restart."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.servers = f"127.0.0.1:{quiet_port()}"
        self._controller = quiet_port()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        need("Kafka")
        command = [str(ROOT / "scripts" / "kafka"), "--folder", str(self.folder)]
        command += ["--port", self.servers.rpartition(":")[2], "--controller", str(self._controller)]
        # A server that lives for a minute is not worth the second compiler's work.
        env = {**os.environ, "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:-UsePerfData"}
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)
        self._wait_until_ready(self._process)
        return self

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            if selector.select(timeout=PATIENCE) and process.stdout.readline() == self._ready_line():
                return
        self.kill()
        log = self.folder / "console.log"
        raise AssertionError(f"Kafka did not become ready: {log.read_text() if log.exists() else ''}")

    def _ready_line(self) -> bytes:
        return f"ready {self.servers}\n".encode()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE)
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic, and wait until it is there."""
        client = AdminClient({"bootstrap.servers": self.servers})
        for created in client.create_topics([NewTopic(topic, partitions, 1)]).values():
            created.result(PATIENCE)

    def send(self, topic: str, messages: Iterable[Message]) -> None:
        """Publish messages in their order, and wait until Kafka has them."""
        producer = Producer({"bootstrap.servers": self.servers, "acks": "all", "linger.ms": 5})
        for key, value in messages:
            producer.produce(topic, key=key, value=value)
        assert producer.flush(PATIENCE) == 0

    def read(self, topic: str) -> list[Message]:
        """All messages of a topic up to now; those of one partition in their order."""
        settings = {"bootstrap.servers": self.servers, "group.id": "tests", "enable.partition.eof": True}
        consumer = Consumer({**settings, "enable.auto.commit": False})
        try:
            partitions = consumer.list_topics(topic, PATIENCE).topics[topic].partitions
            consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
            found: list[Message] = []
            ended: set[int | None] = set()
            while ended != set(partitions):
                message = consumer.poll(PATIENCE)
                assert message is not None, f"Kafka gave nothing of {topic}"
                if message.error() is not None:
                    ended.add(message.partition())
                    continue
                key, value = message.key(), message.value()
                assert key is not None
                assert value is not None
                found.append((key.decode(), value.decode()))
            return found
        finally:
            consumer.close()


def spark_jars() -> str:
    """The jars that Spark needs for Kafka, as `--jars` takes them."""
    need("Kafka")
    return ",".join(map(str, sorted((ROOT / ".jars" / "kafka" / "spark").glob("*.jar"))))
