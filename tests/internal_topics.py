"""A node with internal topics, and what tests of internal topics publish and read.

After an internal notification each test publishes a public one, and waits for it where the internal one must
not be: deliveries keep their order, so nothing internal can come later.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.harness import NodeProcess
from tests.patience import eventually
from tests.raw_soap import NAMES, call, send

TREE = """\
[topics.traffic]
[topics.traffic.anpr]
visibility = "internal"
[topics.traffic.anpr.lane1]
[topics.traffic.flow]
[topics.elsewhere]
"""
PUBLIC_TREE = TREE.replace('"internal"', '"public"')
PLATE = "B34C91"


@pytest.fixture(name="tree")
def internal_tree(tmp_path: Path) -> Path:
    """A topic file with internal topics."""
    file = tmp_path / "topics.toml"
    file.write_text(TREE)
    return file


@pytest.fixture(name="node")
def internal_node(tmp_path: Path, tree: Path) -> Iterator[NodeProcess]:
    """A node with this file."""
    with NodeProcess(tmp_path / "data", "--topics", str(tree)) as running:
        yield running


def token(node: NodeProcess) -> str:
    """The token of jobs."""
    return (node.data / "job.token").read_text().strip()


def shows(node: NodeProcess) -> dict[str, str]:
    """The header of a job."""
    return {"Authorization": f"Bearer {token(node)}"}


async def post(node: NodeProcess, topic: str, *events: Any) -> None:
    """Publish JSON events."""
    reply = await send(
        f"{node.base}/topics/{topic}/events", json.dumps(list(events)).encode(), "application/json"
    )
    assert reply.status == 202, reply.body


async def publish_both(node: NodeProcess, mark: str = "mark") -> None:
    """A plate on the internal topics, then a mark on a public one."""
    await post(node, "traffic:anpr", {"vid": PLATE}, {"vid": PLATE})
    await post(node, "traffic:anpr:lane1", {"vid": PLATE})
    await post(node, "traffic:flow", {"mark": mark})


async def get(
    node: NodeProcess, path: str, method: str = "GET", headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    """The status, headers and body of an answer."""
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, f"{node.base}{path}", headers=headers or {}) as response,
    ):
        return response.status, dict(response.headers), await response.read()


async def on_file(node: NodeProcess, tree: Path, text: str, internal: bool) -> None:
    """Write the topic file, and wait until the running node has read it."""
    tree.write_text(text)

    async def taken() -> bool:
        status, _, _ = await get(node, "/topics/traffic:anpr/events?max=1", "HEAD")
        return (status == 401) is internal

    await eventually(taken)


async def pulled(point: str) -> list[str]:
    """What a pull point has, once it has something."""
    found: list[str] = []

    async def some() -> bool:
        reply = await call(point, "<w:GetMessages/>")
        found.extend("".join(m.itertext()) for m in reply.content.iterfind(".//w:Message", NAMES))
        return bool(found)

    await eventually(some)
    return found
