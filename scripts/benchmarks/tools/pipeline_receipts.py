"""The consumers of the pipeline benchmark: they note when outputs come, and read them only afterwards.

Both run in this process: the push consumer of the node in an event loop, that of Kafka with librdkafka, each
in a thread. What a consumer does while a job runs is to keep the bytes.
"""

import asyncio
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import uvloop
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from benchmarks.tools.sink import Sink, Tally
from hpwsn_client.wsn.operations.notifications import NOTIFICATION_CLOSE

_FIELD = re.compile(rb"<(cid|vid|time|flow)(?:\s[^>]*)?>([^<]*)</")
FETCH = {"fetch.wait.max.ms": 10, "fetch.min.bytes": 1, "queued.max.messages.kbytes": 131_072}
"""How a consumer of Kafka is set up: it hears of a message after at most 10 ms."""


class Receipts(Protocol):
    """What a consumer has received; times are those of time.time."""

    first: float
    last: float

    @property
    def count(self) -> int:
        """How many outputs have come."""

    def outputs(self) -> Iterator[dict[str, str]]:
        """The fields of all outputs in order of arrival."""


class PushReceipts(Tally):
    """Bodies of Notify requests."""

    def __init__(self) -> None:
        super().__init__()
        self.first = self.last = 0.0
        self._bodies: list[bytes] = []

    @property
    def count(self) -> int:
        """How many notifications have come."""
        return self.notifications

    def take(self, data: bytes, start: int, end: int) -> None:
        """Keep one body."""
        super().take(data, start, end)
        self._bodies.append(data[start:end])
        self.last = time.time()
        self.first = self.first or self.last

    def outputs(self) -> Iterator[dict[str, str]]:
        """The fields of all outputs in order of arrival."""
        for body in self._bodies:
            for message in body.split(NOTIFICATION_CLOSE)[:-1]:
                yield {name.decode(): value.decode() for name, value in _FIELD.findall(message)}


@contextmanager
def push_consumer() -> Iterator[tuple[str, PushReceipts]]:
    """The address of a consumer that does as little as one can, and what it receives."""
    receipts, loop = PushReceipts(), uvloop.new_event_loop()
    listening = socket.create_server(("127.0.0.1", 0))
    server = loop.run_until_complete(loop.create_server(lambda: Sink(receipts), sock=listening))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/", receipts
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        server.close()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()


class KafkaReceipts:
    """Values of messages."""

    def __init__(self) -> None:
        self.first = self.last = 0.0
        self._values: list[bytes] = []

    @property
    def count(self) -> int:
        """How many messages have come."""
        return len(self._values)

    def take(self, values: list[bytes]) -> None:
        """Keep some values."""
        self._values += values
        self.last = time.time()
        self.first = self.first or self.last

    def outputs(self) -> Iterator[dict[str, str]]:
        """The fields of all outputs; those of a partition in order of arrival."""
        for value in self._values:
            yield {name: str(field) for name, field in json.loads(value).items()}


@contextmanager
def kafka_consumer(servers: str, topic: str, partitions: int) -> Iterator[KafkaReceipts]:
    """What a consumer of a topic that exists receives from its beginning on."""
    receipts, stopped = KafkaReceipts(), threading.Event()
    settings = {"bootstrap.servers": servers, "group.id": "bench", "enable.auto.commit": False, **FETCH}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(partitions)])

    def follow() -> None:
        while not stopped.is_set():
            # A call for many waits until they have come: wait for one, then take what is there.
            found = consumer.consume(1, 0.1)
            found += consumer.consume(50_000, 0) if found else []
            if values := [value for one in found if one.error() is None and (value := one.value())]:
                receipts.take(values)

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield receipts
    finally:
        stopped.set()
        thread.join()
        consumer.close()


def wait_for(receipts: Receipts, number: int, process_log: Path, seconds: float) -> None:
    """Wait until so many outputs have come; RuntimeError with the end of the job's log if they do not."""
    end = time.monotonic() + seconds
    while receipts.count < number:
        if time.monotonic() > end:
            words = process_log.read_text("utf-8", "replace")[-2000:]
            raise RuntimeError(f"{receipts.count:,} of {number:,} outputs within {seconds:g} s; {words}")
        time.sleep(0.001)
