"""POST /filters/check of a real node: valid filters, and the column at which others are wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.harness import NodeProcess


@pytest.fixture(name="node", scope="module")
def running_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    with NodeProcess(tmp_path_factory.mktemp("node") / "data") as running:
        yield running


async def check(node: NodeProcess, body: Any, method: str = "POST") -> tuple[int, dict[str, Any]]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    url = f"{node.base}/filters/check"
    async with aiohttp.ClientSession() as session, session.request(method, url, data=data) as response:
        return response.status, await response.json()


@pytest.mark.parametrize(
    ("text", "dialect", "indexed"),
    [
        ('speed > 60 and has(keywords, "fire")', "predicates", True),
        ("  speed > 60  ", "predicates", True),
        ("/hp:event/speed > 60", "xpath", True),
        ("count(//speed[. > 60]) > 1", "xpath", False),
    ],
)
async def test_a_valid_filter_has_a_dialect(
    node: NodeProcess, text: str, dialect: str, indexed: bool
) -> None:
    assert await check(node, {"filter": text}) == (200, {"ok": True, "dialect": dialect, "indexed": indexed})
    told = await check(node, {"filter": text, "dialect": dialect, "topic": None})
    assert told == (200, {"ok": True, "dialect": dialect, "indexed": indexed})


@pytest.mark.parametrize(
    ("text", "dialect", "column"),
    [
        ("speed > ", "predicates", 8),
        ("speed >> 60", "predicates", 8),
        ("   speed >> 60", "predicates", 11),
        ('vid = "京B34C91" nor x = 1', "predicates", 17),
        ('vid = "京B34', "predicates", 7),
        ("speed > true", "predicates", 7),
        ("speed > 1 and speed < 0", "predicates", None),
        ("x" * 5000, "predicates", None),
        ("speed = = 60", "xpath", 9),
        ("  speed = = 60", "xpath", 11),
        ("京 = = 60", "xpath", 5),
        ("//a[b > 3", "xpath", 10),
        ("count(", "xpath", 7),
        ("a[1]]", "xpath", 5),
        ("'a:b' = x:c", "xpath", 9),
        ("1 + lowercase(a)", "xpath", 5),
        ("a > $limit", "xpath", 5),
        ("contains(a)", "xpath", None),
        ("   ", None, 1),
        ("", None, 1),
    ],
)
async def test_a_wrong_filter_has_a_column(
    node: NodeProcess, text: str, dialect: str | None, column: int | None
) -> None:
    status, told = await check(node, {"filter": text, "dialect": dialect})
    assert (status, set(told), told["column"]) == (400, {"error", "column"}, column)
    assert told["error"]


async def test_a_filter_that_no_event_of_a_service_can_match_is_wrong_on_its_topic(node: NodeProcess) -> None:
    service = {
        "topic": "traffic:flow",
        "instance": "here",
        "state": "running",
        "attributes": {"flow": "double"},
        "constraints": {"flow": "> 0"},
    }
    async with aiohttp.ClientSession() as session:
        url = f"{node.base}/streams/urn:example:flow"
        async with session.put(url, json=service) as response:
            assert response.status == 200, await response.text()
    assert (await check(node, {"filter": "flow < 0"}))[0] == 200
    assert (await check(node, {"filter": "flow > 1", "topic": "traffic:flow"}))[0] == 200
    status, told = await check(node, {"filter": "flow < 0", "topic": "traffic:flow"})
    assert (status, set(told), told["column"]) == (400, {"error", "column"}, None)
    assert "flow" in told["error"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        {},
        {"filter": 1},
        {"filter": None},
        {"filter": "a = 1", "colour": "red"},
        {"filter": "a = 1", "dialect": "sql"},
        {"filter": "a = 1", "topic": "a b"},
    ],
)
async def test_a_wrong_request_is_refused_in_words(node: NodeProcess, body: Any) -> None:
    status, told = await check(node, body)
    assert status == 400
    assert told["error"]


async def test_a_reader_learns_the_column_too(node: NodeProcess) -> None:
    async with aiohttp.ClientSession() as session:
        url = f"{node.base}/topics/a/events"
        async with session.get(url, params={"filter": "//a[b > 3"}) as response:
            assert (response.status, (await response.json())["column"]) == (400, 10)


async def test_other_methods_are_refused(node: NodeProcess, tmp_path: Path) -> None:
    assert (await check(node, b"", "PUT"))[0] == 405
