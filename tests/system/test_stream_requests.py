"""The effect that the paper on stream data services checks (5.3): 250 requests for a stream of 1,000 events
get the same events from filters on a derived service as from one service per request, a process each."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiohttp
from benchmarks.services.load_processes import Connection, ServiceProcesses
from benchmarks.services.methods import THIS, connections
from benchmarks.services.random_requests import SERVICES, Request, matches, mixed_requests, random_records
from benchmarks.services.stream_bytes import EventLines, get_stream

from tests.harness import NodeProcess
from tests.patience import holds, patience

REQUESTS, EVENTS, SEED = 250, 1000, 18


class Stream(asyncio.Protocol):
    """The numbers of the events that one consumer gets, in their order."""

    def __init__(self, path: str) -> None:
        self.numbers: list[int] = []
        self._path, self._lines = path, EventLines()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.write(get_stream(self._path))  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self.numbers += [json.loads(line)["data"]["n"] for line in self._lines.feed(data)]

    @property
    def has_begun(self) -> bool:
        return self._lines.has_begun


async def opened(addresses: Sequence[Connection]) -> list[Stream]:
    loop, found = asyncio.get_running_loop(), []
    for port, path in addresses:
        _, stream = await loop.create_connection(lambda path=path: Stream(path), "127.0.0.1", port)  # type: ignore[misc]
        found.append(stream)
    await holds(lambda: all(stream.has_begun for stream in found))
    return found


def stream_of_events() -> list[tuple[str, dict[str, Any]]]:
    """Events of both services in turn, each with its topic and its number."""
    each = [random_records(service, EVENTS // 2, SEED) for service in SERVICES]
    pairs = [
        (s.topic, r) for records in zip(*each, strict=True) for s, r in zip(SERVICES, records, strict=True)
    ]
    return [(topic, {**record, "n": number}) for number, (topic, record) in enumerate(pairs)]


def wanted_by(request: Request, events: Sequence[tuple[str, dict[str, Any]]]) -> list[int]:
    records = [record for topic, record in events if topic == request.service.topic]
    [held] = matches([request], records)
    return [record["n"] for record, is_wanted in zip(records, held, strict=True) if is_wanted]


async def test_250_requests_get_the_same_events_by_filters_as_by_a_service_each(tmp_path: Path) -> None:
    requests, events = mixed_requests(REQUESTS, SEED), stream_of_events()
    expected = [wanted_by(request, events) for request in requests]
    assert sum(map(len, expected)) > EVENTS
    with NodeProcess(tmp_path / "node") as node:
        topics = [[request.service.topic] for request in requests]
        with ServiceProcesses(node.port, requests, topics) as services:
            async with patience():
                filtered = await opened(connections(THIS, node.port, requests))
                served = await opened(services.connections)
                # A second stream follows the first: whoever has its last event has all of the first.
                again = [(topic, {**record, "n": record["n"] + EVENTS}) for topic, record in events]
                await publish(node, [*events, *again])
                both = [each + [number + EVENTS for number in each] for each in expected]
                for streams in (filtered, served):
                    await holds(
                        lambda streams=streams: all(  # type: ignore[misc]
                            len(stream.numbers) >= len(numbers)
                            for stream, numbers in zip(streams, both, strict=True)
                        )
                    )
    assert [stream.numbers for stream in filtered] == both
    assert [stream.numbers for stream in served] == both


async def publish(node: NodeProcess, events: Sequence[tuple[str, dict[str, Any]]]) -> None:
    async with aiohttp.ClientSession() as session:
        for service in SERVICES:
            some = [record for topic, record in events if topic == service.topic]
            async with session.post(f"{node.base}/topics/{service.topic}/events", json=some) as answer:
                assert answer.status == 202, await answer.text()
