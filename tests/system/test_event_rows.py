"""Rows of values for programs that read columns, and the HEAD request with which such readers plan."""

from __future__ import annotations

import asyncio
import io
import json
import time
from typing import Any

import aiohttp
import pyarrow as pa
from pyarrow import csv

from tests.harness import NodeProcess
from tests.patience import patience

ROWS = "application/vnd.hpwsn.rows"
EVENTS = [
    {"cid": "c1", "n": 1, "speed": 61.5, "on": True, "note": "first\nline\r\t\\", "zip": "007", "code": "7"},
    {"cid": "京", "n": -2, "speed": 1e-7, "on": False, "note": "<&>\"'", "zip": "", "code": None},
    {"cid": "c3", "n": None, "tags": ["a", "b"], "place": {"x": 1}},
]


async def post(node: NodeProcess, topic: str, events: list[Any]) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{node.base}/topics/{topic}/events", json=events) as response,
    ):
        assert response.status == 202, await response.text()


async def head(node: NodeProcess, topic: str, **params: Any) -> dict[str, int]:
    async with (
        aiohttp.ClientSession() as session,
        session.head(f"{node.base}/topics/{topic}/events", params=params) as response,
    ):
        assert response.status == 200
        found = response.headers.items()
        return {name[6:].lower(): int(value) for name, value in found if name.startswith("Hpwsn-")}


async def get_rows(
    node: NodeProcess, topic: str, *columns: str, **params: Any
) -> tuple[dict[str, Any], list[bytes], int]:
    query = [*params.items(), *[("column", column) for column in columns]]
    async with (
        aiohttp.ClientSession(headers={"Accept": ROWS}) as session,
        session.get(f"{node.base}/topics/{topic}/events", params=query) as response,
    ):
        body = await response.read()
        assert (response.status, response.content_type) == (200, ROWS), body
        first, _, rest = body.partition(b"\n")
        assert not rest or rest.endswith(b"\n")
        return json.loads(first), rest[:-1].split(b"\n") if rest else [], int(response.headers["Hpwsn-After"])


async def test_rows_have_the_columns_asked_for_in_their_order(node: NodeProcess) -> None:
    await post(node, "r:a", EVENTS)
    found, lines, after = await get_rows(node, "r", "n", "cid", "note", "zip", "code", "nothing")
    assert (found["rows"], after) == (3, 3)
    assert [line.decode().split("\x1f") for line in lines] == [
        ["1", "c1", "first\x1dline\x1c\t\\", "007", "7", "\x1a"],
        ["-2", "京", "<&>\"'", "", "\x1a", "\x1a"],
        ["\x1a", "c3", "\x1a", "\x1a", "\x1a", "\x1a"],
    ]
    ((first, count, topic, moment, id_),) = found["runs"]
    assert (first, count, topic, id_) == (1, 3, "r:a", None)
    assert abs(moment / 1e6 - time.time()) < 600
    _, lines, _ = await get_rows(node, "r", "tags", "place", "on", "speed")
    assert [line.decode().split("\x1f") for line in lines] == [
        ["\x1a", "\x1a", "true", "61.5"],
        ["\x1a", "\x1a", "false", "1e-07"],
        ['["a", "b"]', '{"x": 1}', "\x1a", "\x1a"],
    ]


async def test_the_whole_event_is_a_column_too_and_no_column_gives_no_lines(node: NodeProcess) -> None:
    await post(node, "r", EVENTS)
    _, lines, _ = await get_rows(node, "r", "@data", "cid")
    assert [json.loads(line.split(b"\x1f")[0]) for line in lines] == EVENTS
    _, lines, _ = await get_rows(node, "r", "@data")
    assert list(map(json.loads, lines)) == EVENTS
    found, lines, _ = await get_rows(node, "r")
    assert (found["rows"], lines) == (3, [])


async def test_pyarrow_reads_rows_as_documented(node: NodeProcess) -> None:
    await post(node, "r", EVENTS)
    _, lines, _ = await get_rows(node, "r", "zip", "n", "speed", "on", "cid")
    names = ["zip", "n", "speed", "on", "cid"]
    table = csv.read_csv(
        io.BytesIO(b"\n".join([*lines, b""])),
        csv.ReadOptions(column_names=names),
        csv.ParseOptions(delimiter="\x1f", quote_char=False, escape_char=False, ignore_empty_lines=False),
        csv.ConvertOptions(
            null_values=["\x1a"],
            strings_can_be_null=True,
            column_types={
                "zip": pa.string(),
                "n": pa.int64(),
                "speed": pa.float64(),
                "on": pa.bool_(),
                "cid": pa.string(),
            },
        ),
    )
    assert table.to_pylist() == [{name: event.get(name) for name in names} for event in EVENTS]


async def test_rows_of_several_topics_in_a_range_of_offsets_with_a_filter(node: NodeProcess) -> None:
    for n in range(0, 60, 6):
        await post(node, "a:x", [{"n": n}, {"n": n + 1}])
        await post(node, "b", [{"n": n + 2}, {"n": n + 3}])
        await post(node, "c", [{"n": n + 4}, {"n": n + 5}])
    found, lines, after = await get_rows(node, "a", "n", also="c", after=3, upto=20)
    assert ([int(line) + 1 for line in lines], after) == ([5, 6, 7, 8, 11, 12, 13, 14, 17, 18, 19, 20], 20)
    assert [run[:3] for run in found["runs"]][:2] == [[5, 2, "c"], [7, 2, "a:x"]]
    _, lines, after = await get_rows(node, "a", "n", also="c", after=3, upto=20, max=3)
    assert ([int(line) + 1 for line in lines], after) == ([5, 6, 7], 7)
    found, lines, after = await get_rows(node, "a", "n", also="b", filter="n > 5 and not n = 7")
    assert [int(line) for line in lines] == [n for n in range(60) if n > 5 and n != 7 and n % 6 < 4]
    assert ([run[:3] for run in found["runs"]][:2], after) == ([[7, 1, "a:x"], [9, 2, "b"]], 60)
    _, lines, after = await get_rows(node, "a", "n", after=60, upto=58)
    assert (lines, after) == ([], 60)


async def test_a_head_request_tells_what_a_reader_has_before_it(node: NodeProcess) -> None:
    assert await head(node, "a") == {"after": 0, "oldest": 1}
    started = time.time()
    await post(node, "a:x", [{"n": n} for n in range(10)])
    await post(node, "b", [{"n": n} for n in range(10)])
    await post(node, "c", [{"n": n} for n in range(10)])
    assert await head(node, "a", after=4, also="c", max=8) == {
        "after": 30,
        "oldest": 1,
        "waiting": 16,
        "upto": 22,
    }
    assert await head(node, "a", after=4, max=7) == {"after": 30, "oldest": 1, "waiting": 6, "upto": 30}
    assert await head(node, "a", after=4, also="c", upto=21, max=8) == {
        "after": 30,
        "oldest": 1,
        "waiting": 7,
        "upto": 21,
    }
    assert (await head(node, "a", after=4, upto=7, max=2))["upto"] == 6
    assert (await head(node, "a", since=int(started * 1000)))["since"] == 0
    assert (await head(node, "a", since=int(started + 3600) * 1000))["since"] == 30


async def test_a_head_request_waits_for_the_first_event_of_its_topics(node: NodeProcess) -> None:
    await post(node, "a", [{"n": 1}])
    async with patience():
        waiting = asyncio.ensure_future(head(node, "a", also="b", after=1, max=5, wait=300))
        while not waiting.done():
            await post(node, "c", [{"n": 2}])
            await post(node, "b:x", [{"n": 3}])
        found = await waiting
    assert found["waiting"] >= 1
    assert 1 < found["upto"] <= found["after"]


async def test_parameters_that_are_not_valid_are_named(node: NodeProcess) -> None:
    async with aiohttp.ClientSession(headers={"Accept": ROWS}) as session:
        for params in ({"upto": "x"}, {"also": "a::b"}, {"max": "0"}, {"columns": "n"}):
            async with session.get(f"{node.base}/topics/a/events", params=params) as response:
                assert response.status == 400
                assert next(iter(params)) in (await response.json())["error"] or "also" in params
        for params in ({"since": "x"}, {"max": "x"}, {"wait": "x"}, {"upto": "x"}, {"column": "n"}):
            async with session.head(f"{node.base}/topics/a/events", params=params) as response:
                assert response.status == 400
        stream = {"Accept": "text/event-stream"}
        async with session.get(f"{node.base}/topics/a/events?upto=1", headers=stream) as response:
            assert (response.status, "upto" in (await response.json())["error"]) == (400, True)
