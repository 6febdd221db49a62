"""The readers of the data source without Spark: planned ranges of which retention removes a part."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hpwsn.broker.housekeeping import Housekeeping, RetentionPolicy
from hpwsn.node import Node
from hpwsn.settings import Config
from hpwsn.streams.spark.reading import broker_link
from hpwsn.streams.spark.reading.batch_reader import TopicBatchReader
from hpwsn.streams.spark.reading.broker_link import BrokerLink
from hpwsn.streams.spark.reading.range_reading import DataLossError
from hpwsn.streams.spark.reading.read_options import OptionError, parse_read_options
from hpwsn.streams.spark.reading.stream_reader import TopicStreamReader

SCHEMA = pa.schema([("n", pa.int64())])


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    """A node in this process that keeps nothing when its housekeeping is called."""
    default = Config()
    running = Node(
        replace(
            default,
            server=replace(default.server, port=0, drain_timeout=0.2),
            data=replace(default.data, dir=str(tmp_path / "data")),
            journal=replace(default.journal, retention_age=0.0),
        )
    )
    await running.start()
    yield running
    for kept in broker_link._kept.values():
        for link in kept:
            link.close()
    await running.close()


async def tidy(node: Node) -> None:
    await Housekeeping(node.parts.broker, RetentionPolicy.of(node.config)).tidy()


async def publish(node: Node, topic: str, *numbers: int) -> None:
    link = BrokerLink(node.port.listening_url)
    lines = "".join(json.dumps({"n": number}) + "\n" for number in numbers).encode()
    await asyncio.to_thread(link.publish, topic, lines, f"{topic} {numbers[0]}")
    link.close()


def stream_of(node: Node, **options: str) -> TopicStreamReader:
    given = {"url": node.port.listening_url, "subscribe": "t", **options}
    return TopicStreamReader(parse_read_options(given, stream=True), SCHEMA)


def batch_of(node: Node, **options: str) -> TopicBatchReader:
    given = {"url": node.port.listening_url, "subscribe": "t", **options}
    return TopicBatchReader(parse_read_options(given, stream=False), SCHEMA)


async def planned(reader: TopicBatchReader) -> list[list[int]]:
    """The rows of each partition."""
    parts = await asyncio.to_thread(reader.partitions)
    return [await asyncio.to_thread(rows, reader, part) for part in parts]


def rows(reader: TopicBatchReader | TopicStreamReader, part: object) -> list[int]:
    return [number for batch in reader.read(part) for number in batch.column("n").to_pylist()]


async def test_a_batch_that_was_planned_fails_when_its_events_are_removed(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    await publish(node, "t", *range(10))
    strict, lax = batch_of(node), batch_of(node, failOnDataLoss="false")
    (part,) = await asyncio.to_thread(strict.partitions)
    assert await asyncio.to_thread(rows, strict, part) == list(range(10))
    await tidy(node)
    await publish(node, "t", 10)
    with pytest.raises(DataLossError, match="from offset 1 to 10 may be lost"):
        await asyncio.to_thread(rows, strict, part)
    with caplog.at_level(logging.WARNING):
        assert await asyncio.to_thread(rows, lax, part) == []
    assert caplog.text.count("may be lost") == 1
    # What is planned now begins with what is left.
    assert await planned(batch_of(node)) == await planned(batch_of(node, startingTimestamp="0")) == [[10]]


async def test_a_batch_of_a_stream_that_runs_again_fails_when_its_events_are_removed(node: Node) -> None:
    await publish(node, "t", *range(10))
    first = stream_of(node, startingOffsets="1")
    start = await asyncio.to_thread(first.initialOffset)
    end = await asyncio.to_thread(first.latestOffset, start, first.getDefaultReadLimit())
    await tidy(node)
    again = stream_of(node, startingOffsets="1")
    (part,) = await asyncio.to_thread(again.partitions, start, end)
    with pytest.raises(DataLossError, match="from offset 1 to 10 may be lost"):
        await asyncio.to_thread(rows, again, part)


async def test_a_stream_that_waited_for_an_event_has_lost_none_of_other_topics(node: Node) -> None:
    await publish(node, "other", *range(10))
    first = stream_of(node, startingOffsets="1")
    start, limit = await asyncio.to_thread(first.initialOffset), first.getDefaultReadLimit()
    assert await asyncio.to_thread(first.latestOffset, start, limit) == start == {"offset": 0}
    await tidy(node)
    await publish(node, "t", 1, 2)
    end = await asyncio.to_thread(first.latestOffset, start, limit)
    assert end == {"offset": 12, "partitions": 1, "searched": 10}
    for reader in (first, stream_of(node)):
        (part,) = await asyncio.to_thread(reader.partitions, start, end)
        assert await asyncio.to_thread(rows, reader, part) == [1, 2]


async def test_partitions_have_equally_many_events_wherever_they_lie(node: Node) -> None:
    await publish(node, "other", *range(1000))
    await publish(node, "t", *range(8))
    await publish(node, "other", -1, -2)
    four = [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert await planned(batch_of(node, minPartitions="4")) == four
    reader = stream_of(node, minPartitions="4")
    start, end = {"offset": 0}, {"offset": 1008, "partitions": 4}
    parts = await asyncio.to_thread(reader.partitions, start, end)
    await publish(node, "t", *range(8, 100))
    assert await asyncio.to_thread(reader.partitions, start, end) == parts
    assert [await asyncio.to_thread(rows, reader, part) for part in parts] == four


async def test_a_stream_cannot_start_beyond_the_end_of_the_log(node: Node) -> None:
    await publish(node, "t", 1, 2)
    assert await asyncio.to_thread(stream_of(node, startingOffsets="3").initialOffset) == {"offset": 2}
    with pytest.raises(OptionError, match=r"startingOffsets is 4, which is beyond the end .* up to 3"):
        await asyncio.to_thread(stream_of(node, startingOffsets="4").initialOffset)
