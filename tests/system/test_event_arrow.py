"""Arrow at the topic's events of a real node: pages as record batches, and batches that are published."""

from __future__ import annotations

import io
import json
import os
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import aiohttp
import pyarrow as pa
import pytest

from tests.harness import NodeProcess

ARROW = "application/vnd.apache.arrow.stream"
NOON = datetime(2016, 8, 1, 12, 0, 0, tzinfo=UTC)


def stream_of(*batches: pa.RecordBatch, **options: Any) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batches[0].schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()


async def post(
    node: NodeProcess, topic: str, body: bytes, kind: str = ARROW, **params: str
) -> tuple[int, Any]:
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            f"{node.base}/topics/{topic}/events",
            data=io.BytesIO(body),
            headers={"Content-Type": kind},
            params=params,
        ) as response,
    ):
        return response.status, await response.json()


async def get(node: NodeProcess, topic: str, **params: Any) -> tuple[pa.Table, int]:
    async with (
        aiohttp.ClientSession(headers={"Accept": ARROW}) as session,
        session.get(f"{node.base}/topics/{topic}/events", params=params) as response,
    ):
        body = await response.read()
        assert (response.status, response.content_type) == (200, ARROW), body
        return pa.ipc.open_stream(body).read_all(), int(response.headers["Hpwsn-After"])


async def events(node: NodeProcess, topic: str) -> list[Any]:
    table, _ = await get(node, topic)
    return [json.loads(data) for data in table.column("data").to_pylist()]


async def test_a_page_has_the_columns_of_the_contract(node: NodeProcess) -> None:
    posted = [{"n": 1, "text": 'é"\\\n'}, {"n": 2.5, "tags": ["a"]}]
    await post(node, "a:x", json.dumps(posted).encode(), "application/json", id="batch")
    await post(node, "a:y", b'{"n": 3}', "application/json")
    table, after = await get(node, "a")
    assert table.schema.names == ["topic", "offset", "time", "id", "data"]
    assert table.schema.types == [
        pa.string(),
        pa.int64(),
        pa.timestamp("us", "UTC"),
        pa.string(),
        pa.string(),
    ]
    assert after == 3
    assert table.column("topic").to_pylist() == ["a:x", "a:x", "a:y"]
    assert table.column("offset").to_pylist() == [1, 2, 3]
    assert table.column("id").to_pylist() == ["batch", "batch", None]
    assert [json.loads(data) for data in table.column("data").to_pylist()] == [*posted, {"n": 3}]
    table, after = await get(node, "a", after=1, max=1)
    assert (table.column("offset").to_pylist(), after) == ([2], 2)
    table, after = await get(node, "a", filter="n > 2")
    assert (table.column("offset").to_pylist(), after) == ([2, 3], 3)
    table, after = await get(node, "a", after=3)
    assert (table.num_rows, after) == (0, 3)


async def test_rows_are_published_as_events_and_columns_as_fields(node: NodeProcess) -> None:
    batch = pa.record_batch(
        {
            "text": pa.array(["a", 'é"<&>\n', None]),
            "digits": pa.array(["7", "007", "true"]),
            "count": pa.array([1, None, -3], pa.int32()),
            "speed": pa.array([1.0, float("nan"), 0.1]),
            "on": pa.array([True, False, None]),
            "at": pa.array([NOON, NOON.replace(microsecond=5), None], pa.timestamp("us", "UTC")),
            "price": pa.array([Decimal("1.50"), None, Decimal("2")], pa.decimal128(10, 2)),
            "kind": pa.array(["x", "y", "x"]).dictionary_encode(),
            "tags": pa.array([["a", "b"], [], None]),
            "place": pa.array([{"x": 1}, None, {"x": 2}]),
            "a field": pa.array(["v", "w", "x"], pa.string_view()),
        }
    )
    expected = [
        {
            "text": "a",
            "digits": "7",
            "count": 1,
            "speed": 1.0,
            "on": True,
            "at": "2016-08-01T12:00:00Z",
            "price": 1.5,
            "kind": "x",
            "tags": ["a", "b"],
            "place": {"x": 1},
            "a field": "v",
        },
        {
            "text": 'é"<&>\n',
            "digits": "007",
            "count": None,
            "speed": None,
            "on": False,
            "at": "2016-08-01T12:00:00.000005Z",
            "price": None,
            "kind": "y",
            "tags": [],
            "place": None,
            "a field": "w",
        },
        {
            "text": None,
            "digits": "true",
            "count": -3,
            "speed": 0.1,
            "on": None,
            "at": None,
            "price": 2.0,
            "kind": "x",
            "tags": None,
            "place": {"x": 2},
            "a field": "x",
        },
    ]
    for number, options in enumerate(({}, {"compression": "zstd"}, {"compression": "lz4"})):
        assert await post(node, f"t{number}", stream_of(batch, batch.slice(1, 1), **options)) == (
            202,
            {"first": 4 * number + 1, "last": 4 * number + 4},
        )
        assert await events(node, f"t{number}") == [*expected, expected[1]]


async def test_an_id_is_published_once(node: NodeProcess) -> None:
    body = stream_of(pa.record_batch({"n": pa.array([1, 2])}))
    first = await post(node, "a", body, id="x")
    assert first == (202, {"first": 1, "last": 2})
    assert await post(node, "a", body, id="x") == first
    assert await events(node, "a") == [{"n": 1}, {"n": 2}]


VALID = stream_of(pa.record_batch({"n": pa.array(range(100)), "s": pa.array(["x" * 50] * 100)}))


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"", 400, "Arrow IPC stream"),
        (b'{"n": 1}', 400, "Arrow IPC stream"),
        (VALID[:-200], 400, "Arrow IPC stream"),
        (VALID[:40] + b"\xff" * 20 + VALID[60:], 400, ""),
        (stream_of(pa.record_batch({"n": pa.array([], pa.int64())})), 400, "at least one row"),
        (stream_of(pa.record_batch({"span": pa.array([1], pa.duration("s"))})), 400, "span"),
        (stream_of(pa.record_batch([pa.array([1]), pa.array([1])], ["a", "a"])), 400, "2 times"),
        (stream_of(pa.record_batch({"s": pa.array(["\x01"])})), 400, "XML"),
        (stream_of(pa.record_batch({"n": pa.array(range(10_001))})), 413, "10000"),
        (
            stream_of(pa.record_batch({"s": pa.array(["x" * 100_000_000])}), compression="zstd"),
            413,
            "decompressed",
        ),
        (
            stream_of(pa.record_batch({"s": pa.array(["x" * 10_000] * 9000).dictionary_encode()})),
            413,
            "JSON",
        ),
        (stream_of(pa.record_batch({"n" * 10_000: pa.array(range(9000))})), 413, "JSON"),
        (
            stream_of(pa.record_batch({"n" * 1000: pa.array([[1] * 6] * 9000)})),
            413,
            "the events have more than",
        ),
        (stream_of(pa.record_batch({"tags": pa.array([[1]], pa.list_view(pa.int8()))})), 400, "tags"),
    ],
)
async def test_what_cannot_be_published_is_told_and_nothing_is_stored(
    node: NodeProcess, body: bytes, status: int, words: str
) -> None:
    found, told = await post(node, "a", body)
    assert (found, words in told["error"]) == (status, True), told
    table, after = await get(node, "a")
    assert (table.num_rows, after) == (0, 0)


async def test_a_damaged_stream_never_ends_the_node(node: NodeProcess) -> None:
    for at in range(0, len(VALID), 37):
        damaged = VALID[:at] + bytes([VALID[at] ^ 0x5A]) + VALID[at + 1 :]
        assert (await post(node, "a", damaged))[0] in (202, 400, 413)
    assert (await post(node, "b", VALID))[0] == 202


async def test_without_pyarrow_json_works_and_arrow_says_what_to_install(tmp_path: Path) -> None:
    blocked = tmp_path / "blocked" / "pyarrow"
    blocked.mkdir(parents=True)
    (blocked / "__init__.py").write_text("raise ImportError('No module named pyarrow')\n", "utf-8")
    path = os.pathsep.join([str(blocked.parent), *filter(None, sys.path)])
    with NodeProcess(tmp_path / "data", prefix=("env", f"PYTHONPATH={path}")) as node:
        status, told = await post(node, "a", VALID)
        assert (status, "pip install 'hpwsn[arrow]'" in told["error"]) == (415, True)
        async with (
            aiohttp.ClientSession(headers={"Accept": ARROW}) as session,
            session.get(f"{node.base}/topics/a/events") as response,
        ):
            assert response.status == 406
            assert "pip install 'hpwsn[arrow]'" in (await response.json())["error"]
        assert (await post(node, "a", b'{"n": 1}', "application/json"))[0] == 202
